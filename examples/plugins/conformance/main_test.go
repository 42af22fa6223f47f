package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"image/png"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hermesd/hermesd/pluginsdk"
	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
)

// TestMain lets this test binary be the plugin, as a person would start it by hand.
func TestMain(m *testing.M) {
	if os.Getenv("CONFORMANCE_TEST_PLUGIN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// serve serves the plugin in process.
func serve(t *testing.T) pb.PluginClient {
	t.Helper()
	s, err := pluginsdk.NewServer(plugin())
	if err != nil {
		t.Fatal(err)
	}
	lis, srv := bufconn.Listen(1<<20), grpc.NewServer()
	pb.RegisterPluginServer(srv, s)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(lis) }()
	conn, err := grpc.NewClient("passthrough:plugin", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		srv.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return pb.NewPluginClient(conn)
}

// invoke runs a tool and returns every event. answer answers host requests.
func invoke(t *testing.T, c pb.PluginClient, tool, args string, answer func(*pb.HostRequest) *pb.AnswerRequest) []*pb.InvokeResponse {
	t.Helper()
	stream, err := c.Invoke(t.Context(), &pb.InvokeRequest{Tool: tool, Arguments: []byte(args)})
	if err != nil {
		t.Fatal(err)
	}
	var events []*pb.InvokeResponse
	for {
		e, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return events
		}
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
		if r := e.GetHostRequest(); r != nil {
			a := answer(r)
			a.Id = r.GetId()
			if _, err := c.Answer(t.Context(), a); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func last(events []*pb.InvokeResponse) *pb.Result { return events[len(events)-1].GetResult() }

func TestContentIsWhatTheSuiteWants(t *testing.T) {
	c := serve(t)
	var pixel bytes.Buffer
	for tool, want := range map[string][]string{ // the keys that the suite looks at
		"test_simple_text":            {`{"type":"text","text":"This is a simple text response for testing."}`},
		"test_image_content":          {`{"type":"image","data":"*","mimeType":"image/png"}`},
		"test_audio_content":          {`{"type":"audio","data":"*","mimeType":"audio/wav"}`},
		"test_embedded_resource":      {`{"type":"resource","resource":{"uri":"test://embedded-resource","mimeType":"text/plain","text":"This is an embedded resource content."}}`},
		"test_multiple_content_types": {`{"type":"text","text":"Multiple content types test:"}`, `{"type":"image","data":"*","mimeType":"image/png"}`, `{"type":"resource","resource":{"uri":"test://mixed-content-resource","mimeType":"application/json","text":"{\"test\":\"data\",\"value\":123}"}}`},
		"test_reconnection":           {`{"type":"text","text":"Reconnection test completed successfully. If you received this, the client properly reconnected after stream closure."}`},
	} {
		r := last(invoke(t, c, tool, `{}`, nil))
		var got []string
		for _, b := range r.GetContent() {
			var block struct {
				Type string `json:"type"`
				Data []byte `json:"data"`
			}
			if err := json.Unmarshal(b, &block); err != nil {
				t.Fatal(err)
			}
			text := string(b)
			if block.Data != nil {
				var head struct{ Data string }
				if err := json.Unmarshal(b, &head); err != nil {
					t.Fatal(err)
				}
				text = strings.Replace(text, head.Data, "*", 1)
				if block.Type == "image" {
					pixel.Reset()
					pixel.Write(block.Data)
				}
			}
			got = append(got, text)
		}
		if diff := cmp.Diff(want, got); diff != "" || r.GetIsError() {
			t.Errorf("%s: %s", tool, diff)
		}
	}
	img, err := png.Decode(&pixel)
	if err != nil || img.Bounds().Dx() != 1 {
		t.Errorf("the image is no PNG of one pixel: %v", err)
	}
	if s := silence(); string(s[:4]) != "RIFF" || string(s[8:16]) != "WAVEfmt " || int(s[4]) != len(s)-8 {
		t.Errorf("the audio is no WAV file: %x", s)
	}
}

func TestAFailureIsAnErrorResultWithItsText(t *testing.T) {
	r := last(invoke(t, serve(t), "test_error_handling", `{}`, nil))
	if !r.GetIsError() || len(r.GetContent()) != 1 || !strings.Contains(string(r.GetContent()[0]), "This tool intentionally returns an error for testing") {
		t.Errorf("result = %v", r)
	}
}

func TestLogLinesAndProgressComeWhileTheToolRuns(t *testing.T) {
	c := serve(t)
	var lines, steps []string
	for _, e := range invoke(t, c, "test_tool_with_logging", `{}`, nil) {
		if l := e.GetLog(); l != nil {
			lines = append(lines, l.GetLevel()+" "+string(l.GetData()))
		}
	}
	if diff := cmp.Diff([]string{`info "Tool execution started"`, `info "Tool processing data"`, `info "Tool execution completed"`}, lines); diff != "" {
		t.Error(diff)
	}
	for _, e := range invoke(t, c, "test_tool_with_progress", `{}`, nil) {
		if p := e.GetProgress(); p != nil {
			steps = append(steps, p.GetNote())
			if p.GetTotal() != 100 {
				t.Errorf("total = %g", p.GetTotal())
			}
		}
	}
	if diff := cmp.Diff([]string{"Completed step 0 of 100", "Completed step 50 of 100", "Completed step 100 of 100"}, steps); diff != "" {
		t.Error(diff)
	}
}

func TestEveryFormReachesTheHostAsItIsAndItsAnswerComesBack(t *testing.T) {
	c := serve(t)
	for tool, tc := range map[string]struct {
		args, message string
		form          json.RawMessage
		text          string
	}{
		"test_elicitation":                  {`{"message":"Who are you?"}`, "Who are you?", userForm, `User response: action=accept, content={"a":1}`},
		"test_elicitation_sep1034_defaults": {`{}`, "Please fill in the form.", defaultsForm, `Elicitation completed: action=accept, content={"a":1}`},
		"test_elicitation_sep1330_enums":    {`{}`, "Please fill in the form.", enumsForm, `Elicitation completed: action=accept, content={"a":1}`},
	} {
		events := invoke(t, c, tool, tc.args, func(r *pb.HostRequest) *pb.AnswerRequest {
			if a := r.GetAskHuman(); a.GetMessage() != tc.message || !bytes.Equal(a.GetSchema(), tc.form) {
				t.Errorf("%s asks %v", tool, a)
			}
			return &pb.AnswerRequest{Answer: &pb.AnswerRequest_AskHuman{AskHuman: &pb.AskHumanAnswer{Action: "accept", Content: []byte(`{"a":1}`)}}}
		})
		var block struct{ Text string }
		if err := json.Unmarshal(last(events).GetContent()[0], &block); err != nil || block.Text != tc.text {
			t.Errorf("%s = %q, %v", tool, block.Text, err)
		}
	}
	declined := invoke(t, c, "test_elicitation_sep1034_defaults", `{}`, func(*pb.HostRequest) *pb.AnswerRequest {
		return &pb.AnswerRequest{Answer: &pb.AnswerRequest_AskHuman{AskHuman: &pb.AskHumanAnswer{Action: "decline"}}}
	})
	if !strings.Contains(string(last(declined).GetContent()[0]), "action=decline, content={}") {
		t.Errorf("declined: %v", last(declined))
	}
}

func TestSamplingCarriesThePromptAndTheAnswer(t *testing.T) {
	events := invoke(t, serve(t), "test_sampling", `{"prompt":"Say hi"}`, func(r *pb.HostRequest) *pb.AnswerRequest {
		if got := string(r.GetSample().GetParams()); got != `{"maxTokens":100,"messages":[{"content":{"text":"Say hi","type":"text"},"role":"user"}]}` {
			t.Errorf("params = %s", got)
		}
		return &pb.AnswerRequest{Answer: &pb.AnswerRequest_Sample{Sample: []byte(`{"role":"assistant","content":{"type":"text","text":"hi"},"model":"m"}`)}}
	})
	if !strings.Contains(string(last(events).GetContent()[0]), "LLM response: hi") {
		t.Errorf("result = %v", last(events))
	}
}

func TestTheSchemaOf2020IsListedByteForByte(t *testing.T) {
	stream, err := serve(t).ListTools(t.Context(), &pb.ListToolsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	page, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if len(page.GetTools()) != 14 {
		t.Errorf("%d tools", len(page.GetTools()))
	}
	for _, d := range page.GetTools() {
		if d.GetName() == "json_schema_2020_12_tool" {
			if !bytes.Equal(d.GetInputSchema(), schema2020) {
				t.Errorf("schema = %s", d.GetInputSchema())
			}
			return
		}
	}
	t.Error("the tool is not listed")
}

func TestByHandTheProgramDescribesItselfAndRunsATool(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		`"name": "test_image_content"`:                {"describe"},
		"This is a simple text response for testing.": {"invoke", "test_simple_text"},
	} {
		cmd := exec.CommandContext(t.Context(), self, args...)
		cmd.Env = append(os.Environ(), "CONFORMANCE_TEST_PLUGIN=1")
		out, err := cmd.Output()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v = %s, %v", args, out, err)
		}
	}
}
