//lint:file-ignore SA1019 logging and sampling are deprecated from 2026-07-28, and what the clients before it have

package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
	"github.com/hermesd/hermesd/runtime/tool"
)

func TestProgressLogsAndCancellation(t *testing.T) {
	for name, version := range generations {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 1)
			p := providertest.New("jobs",
				providertest.Tool{
					Definition: tool.Definition{Name: "jobs_run"},
					Handler: func(_ context.Context, req *provider.Request) (*tool.Result, error) {
						for i := range 3 {
							req.Host.Progress(tool.Progress{Done: float64(i + 1), Total: 3, Note: "step"})
						}
						req.Host.Log(tool.LogRecord{Level: "info", Logger: "jobs", Data: json.RawMessage(`"working"`)})
						req.Host.Log(tool.LogRecord{Level: "debug", Data: json.RawMessage(`"too low"`)})
						return tool.TextResult("done"), nil
					},
				},
				providertest.Tool{
					Definition: tool.Definition{Name: "jobs_hang"},
					Handler: func(ctx context.Context, req *provider.Request) (*tool.Result, error) {
						req.Host.Progress(tool.Progress{Done: 1})
						<-ctx.Done()
						ended <- ctx.Err()
						return nil, ctx.Err()
					},
				},
			)
			e := serve(t, p)
			progress, logs := make(chan string, 10), make(chan string, 10)
			s := e.connect(t, version, &sdk.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
					progress <- fmt.Sprintf("%v %g/%g %s", r.Params.ProgressToken, r.Params.Progress, r.Params.Total, r.Params.Message)
				},
				LoggingMessageHandler: func(_ context.Context, r *sdk.LoggingMessageRequest) {
					logs <- fmt.Sprintf("%s %s %v", r.Params.Level, r.Params.Logger, r.Params.Data)
				},
			})
			params := &sdk.CallToolParams{Name: "jobs_run", Meta: sdk.Meta{"io.modelcontextprotocol/logLevel": "info"}}
			params.SetProgressToken("t1")
			if _, err := s.CallTool(t.Context(), params); err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				if got, want := <-progress, fmt.Sprintf("t1 %d/3 step", i+1); got != want {
					t.Errorf("progress %q, want %q", got, want)
				}
			}
			if got := <-logs; got != "info jobs working" {
				t.Errorf("log %q", got)
			}

			ctx, cancel := context.WithCancel(t.Context())
			hang := &sdk.CallToolParams{Name: "jobs_hang"}
			hang.SetProgressToken("t2")
			failed := make(chan error, 1)
			go func() { _, err := s.CallTool(ctx, hang); failed <- err }()
			<-progress
			cancel()
			if err := <-ended; err != context.Canceled {
				t.Errorf("the tool's context: %v", err)
			}
			if err := <-failed; err == nil {
				t.Error("the client got a result")
			}
			if len(logs) > 0 {
				t.Errorf("a debug line passed: %s", <-logs)
			}
		})
	}
}

func TestElicitation(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`)
	for name, version := range generations {
		t.Run(name, func(t *testing.T) {
			runs := 0
			p := providertest.New("forms", providertest.Tool{
				Definition: tool.Definition{Name: "forms_ask"},
				Handler: func(ctx context.Context, req *provider.Request) (*tool.Result, error) {
					runs++
					var all []string
					for range 2 {
						a, err := req.Host.Ask(ctx, provider.Question{Message: "where?", Schema: schema})
						if err != nil {
							return nil, err
						}
						all = append(all, a.Action+" "+string(a.Content))
					}
					return tool.TextResult(strings.Join(all, "; ")), nil
				},
			})
			e := serve(t, p)
			asked := 0
			s := e.connect(t, version, &sdk.ClientOptions{ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				asked++
				if r.Params.Message != "where?" {
					t.Errorf("asked %q", r.Params.Message)
				}
				return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"city": fmt.Sprint("Lyon", asked)}}, nil
			}})
			got := text(t, call(t, s, "forms_ask", nil))
			if want := `accept {"city":"Lyon1"}; accept {"city":"Lyon2"}`; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if asked != 2 || runs != 1 {
				t.Errorf("asked %d times in %d runs", asked, runs)
			}

			without := e.connect(t, version, nil)
			r := call(t, without, "forms_ask", nil)
			if got := text(t, r); !r.IsError || !strings.Contains(got, "unsupported") {
				t.Errorf("a client that cannot be asked: %s", got)
			}
		})
	}
}

func TestSampling(t *testing.T) {
	p := providertest.New("writer", providertest.Tool{
		Definition: tool.Definition{Name: "writer_draft"},
		Handler: func(ctx context.Context, req *provider.Request) (*tool.Result, error) {
			raw, err := req.Host.Sample(ctx, json.RawMessage(`{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":10}`))
			if err != nil {
				return nil, err
			}
			return tool.TextResult(string(raw)), nil
		},
	})
	e := serve(t, p)
	s := e.connect(t, older, &sdk.ClientOptions{CreateMessageHandler: func(context.Context, *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
		return &sdk.CreateMessageResult{Model: "m", Role: "assistant", Content: &sdk.TextContent{Text: "hello"}}, nil
	}})
	if got := text(t, call(t, s, "writer_draft", nil)); !strings.Contains(got, `"hello"`) {
		t.Errorf("got %s", got)
	}
}

func TestNothingIsToldAfterTheAnswer(t *testing.T) {
	hosts := make(chan *provider.Host, 1)
	e := serve(t, providertest.New("jobs", providertest.Tool{
		Definition: tool.Definition{Name: "jobs_run"},
		Handler: func(_ context.Context, req *provider.Request) (*tool.Result, error) {
			hosts <- req.Host
			return tool.TextResult("done"), nil
		},
	}))
	conn := stream(t, e)
	lines := bufio.NewReader(conn)
	send := func(line string) {
		if _, err := io.WriteString(conn, line+"\n"); err != nil {
			t.Error(err)
		}
	}
	var m struct{ ID int }
	go send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`)
	readLine(t, lines, &m)
	go send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"jobs_run","_meta":{"progressToken":"p"}}}`)
	readLine(t, lines, &m)
	host := <-hosts
	host.Progress(tool.Progress{Done: 1})
	host.Log(tool.LogRecord{Level: "error", Data: json.RawMessage(`"late"`)})
	go send(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	if readLine(t, lines, &m); m.ID != 3 {
		t.Errorf("got %+v", m)
	}
}
