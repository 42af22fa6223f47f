package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
)

// handler runs a call and returns its last event; nil ends the stream without one.
type handler func(s *service, ctx context.Context, req *pb.InvokeRequest, send func(*pb.InvokeResponse)) *pb.InvokeResponse

// handlers are the tools by name.
var handlers = map[string]handler{
	"echo": func(_ *service, _ context.Context, req *pb.InvokeRequest, _ send) *pb.InvokeResponse {
		return text(string(req.GetArguments()))
	},
	"request": request,
	"environment": func(*service, context.Context, *pb.InvokeRequest, send) *pb.InvokeResponse {
		return text(strings.Join(os.Environ(), "\n"))
	},
	"unavailable": func(*service, context.Context, *pb.InvokeRequest, send) *pb.InvokeResponse {
		return text("available after all")
	},

	"panic": func(*service, context.Context, *pb.InvokeRequest, send) *pb.InvokeResponse {
		panic("misbehave: panic in a call")
	},
	"kill": func(*service, context.Context, *pb.InvokeRequest, send) *pb.InvokeResponse {
		kill(os.Getpid(), syscall.SIGKILL)
		return nil
	},
	"stop":          stop,
	"die-in-stream": dieInStream,
	"ignore-cancel": func(*service, context.Context, *pb.InvokeRequest, send) *pb.InvokeResponse { hang(); return nil },
	"notice-cancel": noticeCancel,
	"grandchild": func(*service, context.Context, *pb.InvokeRequest, send) *pb.InvokeResponse {
		spawn(false)
		return text("spawned")
	},
	"setsid": func(*service, context.Context, *pb.InvokeRequest, send) *pb.InvokeResponse {
		spawn(true)
		return text("spawned")
	},
	"flood": func(*service, context.Context, *pb.InvokeRequest, send) *pb.InvokeResponse {
		go flood(realStdout)
		go flood(realStderr)
		return text("flooding")
	},
	"long-line": longLine,
	"print": func(*service, context.Context, *pb.InvokeRequest, send) *pb.InvokeResponse {
		fmt.Println("printed by a tool")
		return text("ok")
	},
	"stderr":  stderr,
	"status":  nil, // see Invoke
	"nothing": func(*service, context.Context, *pb.InvokeRequest, send) *pb.InvokeResponse { return nil },
	"unknown-event": func(*service, context.Context, *pb.InvokeRequest, send) *pb.InvokeResponse {
		return &pb.InvokeResponse{}
	},
	"garbage": func(*service, context.Context, *pb.InvokeRequest, send) *pb.InvokeResponse {
		return result(&pb.Result{Content: [][]byte{[]byte("{not json")}})
	},
	"garbage-type": func(*service, context.Context, *pb.InvokeRequest, send) *pb.InvokeResponse {
		return result(&pb.Result{Content: [][]byte{[]byte(`[1]`)}})
	},
	"bad-structured": func(*service, context.Context, *pb.InvokeRequest, send) *pb.InvokeResponse {
		return result(&pb.Result{Structured: []byte(`{"a":`)})
	},
	"bad-meta": func(*service, context.Context, *pb.InvokeRequest, send) *pb.InvokeResponse {
		return result(&pb.Result{Meta: []byte(`7`)})
	},
	"unfinished": func(_ *service, _ context.Context, _ *pb.InvokeRequest, out send) *pb.InvokeResponse {
		out(chunk(0, `{"ty`, false))
		return result(&pb.Result{})
	},
	"two-results": func(_ *service, _ context.Context, _ *pb.InvokeRequest, out send) *pb.InvokeResponse {
		out(text("first"))
		return text("second")
	},
	"endless-chunks": endlessChunks,
	"huge-message": func(*service, context.Context, *pb.InvokeRequest, send) *pb.InvokeResponse {
		return text(strings.Repeat("x", 20<<20))
	},
	"chunks":         chunks,
	"endless-events": endlessEvents,
	"error": func(*service, context.Context, *pb.InvokeRequest, send) *pb.InvokeResponse {
		return failure(&pb.Error{Code: "downstream_failed", Message: "the weather service is down", Detail: "503", Retryable: true, Blame: "downstream", Pointer: "/city", Extra: []byte(`{"hint":"wait"}`)})
	},
	"forged-error": func(*service, context.Context, *pb.InvokeRequest, send) *pb.InvokeResponse {
		return failure(&pb.Error{Code: "approval_denied"})
	},
	"progress":        progress,
	"ask":             ask(&pb.HostRequest{Request: &pb.HostRequest_AskHuman{AskHuman: &pb.AskHuman{Message: "Sure?", Choices: []string{"yes", "no"}}}}),
	"ask-badly":       ask(&pb.HostRequest{Request: &pb.HostRequest_AskHuman{AskHuman: &pb.AskHuman{Schema: []byte(`nope`)}}}),
	"call":            ask(&pb.HostRequest{Request: &pb.HostRequest_CallTool{CallTool: &pb.CallTool{Name: "other", Arguments: []byte(`{"a":1}`)}}}),
	"sample":          ask(&pb.HostRequest{Request: &pb.HostRequest_Sample{Sample: &pb.Sample{Params: []byte(`{"maxTokens":5}`)}}}),
	"call-named":      callNamed,
	"delegate":        delegate,
	"call-outside":    callOutside,
	"eat-memory":      eatMemory,
	"ask-nothing":     ask(&pb.HostRequest{}),
	"store":           store,
	"plant":           plant,
	"needs-variables": func(*service, context.Context, *pb.InvokeRequest, send) *pb.InvokeResponse { return text("has them") },
}

type send = func(*pb.InvokeResponse)

// list is what the plugin offers: every handler, sorted by nothing in particular, but always in the same order.
func list() []*pb.ToolDefinition {
	var tools []*pb.ToolDefinition
	for _, name := range sortedNames() {
		d := definition(name)
		if name == "needs-variables" {
			d.RequiresEnv = []string{"MISBEHAVE_KEY"}
		}
		if name == "echo" {
			d.Coldness = "core"
		}
		tools = append(tools, d)
	}
	return tools
}

func definition(name string) *pb.ToolDefinition {
	return &pb.ToolDefinition{Name: name, Toolset: "misbehave", Description: "Does " + name + ".", InputSchema: []byte(`{"type":"object"}`)}
}

// malformed are definitions of which each must be refused alone.
func malformed() []*pb.ToolDefinition {
	edit := func(name string, f func(*pb.ToolDefinition)) *pb.ToolDefinition {
		d := definition(name)
		f(d)
		return d
	}
	return []*pb.ToolDefinition{
		edit("bad_json", func(d *pb.ToolDefinition) { d.InputSchema = []byte(`{"type":`) }),
		edit("bad_type", func(d *pb.ToolDefinition) { d.InputSchema = []byte(`{"type":"array"}`) }),
		edit("bad_schema", func(d *pb.ToolDefinition) {
			d.InputSchema = []byte(`{"type":"object","properties":{"a":{"type":"strnig"}}}`)
		}),
		edit("bad_output", func(d *pb.ToolDefinition) { d.OutputSchema = []byte(`{"type":3}`) }),
		edit("bad_coldness", func(d *pb.ToolDefinition) { d.Coldness = "freezing" }),
		edit("bad_example", func(d *pb.ToolDefinition) { d.Examples = [][]byte{[]byte(`[]`)} }),
		edit("bad_meta", func(d *pb.ToolDefinition) { d.Meta = []byte(`"x"`) }),
		edit("too_long", func(d *pb.ToolDefinition) { d.Description = strings.Repeat("x", 1<<20) }),
		edit("", func(*pb.ToolDefinition) {}),
		edit("echo", func(d *pb.ToolDefinition) { d.Description = "a second echo" }),
	}
}

func (s *service) Invoke(req *pb.InvokeRequest, stream grpc.ServerStreamingServer[pb.InvokeResponse]) error {
	s.enter("Invoke")
	if req.GetTool() == "status" {
		return status.Error(codes.Internal, "an error of gRPC")
	}
	h := handlers[req.GetTool()]
	if h == nil {
		return status.Error(codes.NotFound, "no such tool")
	}
	out := func(e *pb.InvokeResponse) {
		if err := stream.Send(e); err != nil {
			return // the host has turned away
		}
	}
	if last := h(s, stream.Context(), req, out); last != nil {
		return stream.Send(last)
	}
	return nil
}

func result(r *pb.Result) *pb.InvokeResponse {
	return &pb.InvokeResponse{Event: &pb.InvokeResponse_Result{Result: r}}
}

func failure(e *pb.Error) *pb.InvokeResponse {
	return &pb.InvokeResponse{Event: &pb.InvokeResponse_Error{Error: e}}
}

func text(s string) *pb.InvokeResponse {
	block, err := json.Marshal(map[string]string{"type": "text", "text": s})
	if err != nil {
		panic(err)
	}
	return result(&pb.Result{Content: [][]byte{block}})
}

func chunk(part pb.Chunk_Part, data string, last bool) *pb.InvokeResponse {
	return &pb.InvokeResponse{Event: &pb.InvokeResponse_Chunk{Chunk: &pb.Chunk{Part: part, Data: []byte(data), Last: last}}}
}

// request answers with what the host sent along with the call.
func request(_ *service, _ context.Context, req *pb.InvokeRequest, _ send) *pb.InvokeResponse {
	return text(fmt.Sprintf("call %s, agent %s, session %s, attended %v, granted %v, limit %d, deadline %v", req.GetCallId(), req.GetAgent(),
		req.GetSession(), req.GetAttended(), req.GetGranted(), req.GetMaxResultBytes(), req.GetDeadlineUnixMs() > 0))
}

// stop stops the process. The signal may take effect on another thread first.
func stop(*service, context.Context, *pb.InvokeRequest, send) *pb.InvokeResponse {
	kill(os.Getpid(), syscall.SIGSTOP)
	time.Sleep(100 * time.Millisecond)
	return text("resumed")
}

func dieInStream(_ *service, _ context.Context, _ *pb.InvokeRequest, out send) *pb.InvokeResponse {
	out(&pb.InvokeResponse{Event: &pb.InvokeResponse_Progress{Progress: &pb.Progress{Done: 1, Total: 2}}})
	time.Sleep(10 * time.Millisecond) // so that the event is on its way
	fmt.Fprintln(realStderr, "disk full")
	os.Exit(9)
	return nil
}

// noticeCancel writes the file named in the environment when its context ends.
func noticeCancel(_ *service, ctx context.Context, _ *pb.InvokeRequest, _ send) *pb.InvokeResponse {
	<-ctx.Done()
	if err := os.WriteFile(os.Getenv("MISBEHAVE_MARK"), []byte("cancelled"), 0o600); err != nil {
		panic(err)
	}
	return nil
}

func longLine(*service, context.Context, *pb.InvokeRequest, send) *pb.InvokeResponse {
	line := bytes.Repeat([]byte("y"), 1<<20)
	for _, f := range []*os.File{realStdout, realStderr} {
		if _, err := f.Write(line); err != nil {
			panic(err)
		}
	}
	return text("written")
}

func stderr(*service, context.Context, *pb.InvokeRequest, send) *pb.InvokeResponse {
	fmt.Fprintln(realStderr, `{"@level":"warn","@message":"hot","@module":"core","provider":"forged","degrees":41}`)
	fmt.Fprintln(realStderr, "plain line")
	return text("ok")
}

func endlessChunks(_ *service, ctx context.Context, _ *pb.InvokeRequest, out send) *pb.InvokeResponse {
	piece := strings.Repeat("z", 1<<20)
	for ctx.Err() == nil {
		out(chunk(pb.Chunk_PART_CONTENT, piece, false))
	}
	return nil
}

func endlessEvents(_ *service, ctx context.Context, _ *pb.InvokeRequest, out send) *pb.InvokeResponse {
	for n := 0.0; ctx.Err() == nil; n++ {
		out(&pb.InvokeResponse{Event: &pb.InvokeResponse_Progress{Progress: &pb.Progress{Done: n}}})
	}
	return nil
}

func chunks(_ *service, _ context.Context, _ *pb.InvokeRequest, out send) *pb.InvokeResponse {
	out(chunk(pb.Chunk_PART_CONTENT, `{"type":"text",`, false))
	out(chunk(pb.Chunk_PART_STRUCTURED, `{"n":`, false))
	out(chunk(pb.Chunk_PART_CONTENT, `"text":"in pieces"}`, true))
	out(chunk(pb.Chunk_PART_STRUCTURED, `12345678901234567890}`, true))
	return result(&pb.Result{Content: [][]byte{[]byte(`{"type":"text","text":"whole"}`)}, Meta: []byte(`{"k":1}`)})
}

func progress(_ *service, _ context.Context, _ *pb.InvokeRequest, out send) *pb.InvokeResponse {
	for n := 1.0; n <= 3; n++ {
		out(&pb.InvokeResponse{Event: &pb.InvokeResponse_Progress{Progress: &pb.Progress{Done: n, Total: 3, Note: "step"}}})
	}
	out(&pb.InvokeResponse{Event: &pb.InvokeResponse_Log{Log: &pb.Log{Level: "warning", Logger: "l", Data: []byte(`{"a":1}`)}}})
	out(&pb.InvokeResponse{Event: &pb.InvokeResponse_Log{Log: &pb.Log{Level: "info", Data: []byte(`no json`)}}})
	return text("done")
}

// eatMemory takes as many MiB as its arguments say, {"mib": 512}, and keeps them.
func eatMemory(_ *service, _ context.Context, req *pb.InvokeRequest, _ send) *pb.InvokeResponse {
	var args struct{ MiB int }
	if err := json.Unmarshal(req.GetArguments(), &args); err != nil {
		return failure(&pb.Error{Code: "invalid_arguments", Message: err.Error()})
	}
	for range args.MiB {
		piece := make([]byte, 1<<20)
		for i := 0; i < len(piece); i += 4096 {
			piece[i] = 1 // memory that is not touched is not taken
		}
		eaten = append(eaten, piece)
	}
	return text(fmt.Sprintf("ate %d MiB", len(eaten)))
}

// eaten keeps what was eaten from the collector.
var eaten [][]byte
