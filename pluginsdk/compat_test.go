package pluginsdk_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/hermesd/hermesd/internal/testbin"
	"github.com/hermesd/hermesd/pluginsdk"
	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"github.com/hermesd/hermesd/pluginsdk/plugintest"
	"github.com/hermesd/hermesd/pluginsdk/plugintest/wire"
)

// A plugin that was built once must go on working. testdata/compat/VERSION keeps what the program internal/testbin/compat,
// built with that version of the SDK, and its host said to each other. `go test -run Compat -update` keeps the present
// version's conversation if none is kept yet; a kept one is never written again.

func transcriptPath(version string) string {
	return filepath.Join("testdata", "compat", version, "transcript.json")
}

// calls are what is said in a kept conversation, besides the introduction.
var compatCalls = []struct {
	tool, args string
	code       pluginsdk.Code // of the error that it ends with
}{
	{"greet", `{"name":"Ada"}`, ""},
	{"greet", `{"name":"Ada","times":2,"tone":"gruff"}`, ""},
	{"greet", `{"name":""}`, pluginsdk.InvalidArguments},
	{"repeat", `{"bytes":100}`, ""},
	{"repeat", `{"bytes":100000}`, ""}, // in pieces: see compatLimit
	{"blocks", `{}`, ""},
	{"fail", `{}`, pluginsdk.DownstreamFailed},
	{"ask", `{}`, ""},
	{"delegate", `{}`, ""},
	{"panic", `{}`, "plugin_panic"},
}

// compatLimit is the largest message in a kept conversation, in bytes.
const compatLimit = 64 << 10

func TestCompatIsKept(t *testing.T) {
	path := transcriptPath(pluginsdk.Version)
	if _, err := os.Stat(path); err == nil {
		return
	}
	if flag.Lookup("update").Value.String() != "true" {
		t.Fatalf("%s is missing: keep this version's conversation with: go test -run Compat -update", path)
	}
	raw, err := json.MarshalIndent(record(t), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(raw, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// record makes a conversation with the program of today.
func record(t *testing.T) *testbin.Transcript {
	t.Helper()
	list := []struct {
		rpc     string
		request proto.Message
	}{
		{"Describe", &pb.DescribeRequest{}},
		{"Configure", &pb.ConfigureRequest{Config: []byte(`{"greeting":"Hi"}`), Provider: "compat", StateDir: "/state", MaxMessageBytes: compatLimit}},
		{"ListTools", &pb.ListToolsRequest{}},
		{"CheckAvailability", &pb.CheckAvailabilityRequest{}},
		{"Intercept", &pb.InterceptRequest{Payload: []byte(`{"event":"pre_call","tool_name":"forbidden","args":{}}`)}},
	}
	for i, c := range compatCalls {
		list = append(list, struct {
			rpc     string
			request proto.Message
		}{"Invoke", &pb.InvokeRequest{CallId: fmt.Sprint("call-", i), Tool: c.tool, Arguments: []byte(c.args), Agent: "desk", Session: "s", Attended: true, Granted: []string{"ask_human", "call_tool"}}})
	}
	transcript := &testbin.Transcript{SDK: "hermesd-go/" + pluginsdk.Version}
	s := openCompat(t)
	for _, e := range list {
		request, err := proto.MarshalOptions{Deterministic: true}.Marshal(e.request)
		if err != nil {
			t.Fatal(err)
		}
		transcript.Exchanges = append(transcript.Exchanges, say(t, s, testbin.Exchange{RPC: e.rpc, Request: request}))
	}
	return transcript
}

func openCompat(t *testing.T) *wire.Session {
	t.Helper()
	s, err := wire.Program{Path: testbin.Build(t, "internal/testbin/compat", "GOFLAGS=-trimpath")}.Open(t.Context(), &wire.OpenOptions{MaxMessageBytes: compatLimit})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// say sends an exchange's request and returns the exchange with what comes back.
func say(t *testing.T, s *wire.Session, e testbin.Exchange) testbin.Exchange {
	t.Helper()
	request, _ := testbin.Messages(e.RPC)
	if err := proto.Unmarshal(e.Request, request); err != nil {
		t.Fatal(err)
	}
	e.Responses, e.Answers = nil, nil
	keep := func(m proto.Message, err error) {
		if err != nil {
			t.Fatalf("%s: %v", e.RPC, err)
		}
		raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		e.Responses = append(e.Responses, raw)
	}
	switch r := request.(type) {
	case *pb.DescribeRequest:
		m, err := s.Describe(t.Context(), r)
		keep(m, err)
	case *pb.ConfigureRequest:
		m, err := s.PluginClient.Configure(t.Context(), r)
		keep(m, err)
	case *pb.CheckAvailabilityRequest:
		m, err := s.CheckAvailability(t.Context(), r)
		keep(m, err)
	case *pb.InterceptRequest:
		m, err := s.Intercept(t.Context(), r)
		keep(m, err)
	case *pb.ListToolsRequest:
		stream, err := s.ListTools(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		for page, err := stream.Recv(); !errors.Is(err, io.EOF); page, err = stream.Recv() {
			keep(page, err)
		}
	case *pb.InvokeRequest:
		e.Answers = sayCall(t, s, r, keep)
	}
	return e
}

// sayCall keeps every event of a call, and answers its host requests.
func sayCall(t *testing.T, s *wire.Session, r *pb.InvokeRequest, keep func(proto.Message, error)) (answers [][]byte) {
	t.Helper()
	stream, err := s.Invoke(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for event, err := stream.Recv(); !errors.Is(err, io.EOF); event, err = stream.Recv() {
		keep(event, err)
		if event.GetHostRequest() == nil {
			continue
		}
		answer := &pb.AnswerRequest{Id: event.GetHostRequest().GetId(), Answer: &pb.AnswerRequest_AskHuman{
			AskHuman: &pb.AskHumanAnswer{Action: "accept", Content: []byte(`{"choice":"blue"}`)},
		}}
		if event.GetHostRequest().GetCallTool() != nil {
			answer.Answer = &pb.AnswerRequest_CallTool{CallTool: &pb.Result{Content: [][]byte{[]byte(`{"type":"text","text":"from another"}`)}}}
		}
		raw, err := proto.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, raw)
		if _, err := s.Answer(t.Context(), answer); err != nil {
			t.Fatal(err)
		}
	}
	return answers
}

func eachTranscript(t *testing.T, test func(t *testing.T, path string, kept *testbin.Transcript)) {
	t.Helper()
	paths, err := filepath.Glob(transcriptPath("*"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			kept, err := testbin.ReadTranscript(path)
			if err != nil {
				t.Fatal(err)
			}
			test(t, path, kept)
		})
	}
}

// A plugin of today's SDK answers what hosts said then as a plugin of then did.
func TestCompatAPluginOfTodayAnswersTheHostsOfThen(t *testing.T) {
	eachTranscript(t, func(t *testing.T, _ string, kept *testbin.Transcript) {
		s := openCompat(t)
		for i, e := range kept.Exchanges {
			now := say(t, s, e)
			if diff := cmp.Diff(readable(t, e), readable(t, now), protocmp.Transform()); diff != "" {
				t.Errorf("exchange %d, %s (-then +now):\n%s", i, e.RPC, diff)
			}
		}
	})
}

// readable decodes an exchange's responses, and brings what may differ without meaning anything else to one form: the order of
// keys in JSON, the build, the hash over the bytes of definitions, the ids of host requests, and the text of a panic's stack.
func readable(t *testing.T, e testbin.Exchange) []proto.Message {
	t.Helper()
	var list []proto.Message
	for _, raw := range e.Responses {
		_, m := testbin.Messages(e.RPC)
		if err := proto.Unmarshal(raw, m); err != nil {
			t.Fatal(err)
		}
		switch m := m.(type) {
		case *pb.DescribeResponse:
			m.Build, m.ConfigSchema = nil, canonical(t, m.GetConfigSchema())
		case *pb.ListToolsResponse:
			m.Hash = ""
			for _, d := range m.GetTools() {
				d.InputSchema, d.OutputSchema, d.Meta = canonical(t, d.GetInputSchema()), canonical(t, d.GetOutputSchema()), canonical(t, d.GetMeta())
			}
		case *pb.InvokeResponse:
			if m.GetHostRequest() != nil {
				m.GetHostRequest().Id = ""
			}
			if m.GetError() != nil {
				// Texts are for people and may become better; code, pointer, blame and retryability are the contract.
				m.GetError().Message, m.GetError().Detail = "", ""
			}
		}
		list = append(list, m)
	}
	return list
}

func canonical(t *testing.T, raw []byte) []byte {
	t.Helper()
	if len(raw) == 0 {
		return nil
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The host of today runs a plugin of then as it was run then: the golden files hold what agents got.
func TestCompatTheHostOfTodayRunsThePluginOfThen(t *testing.T) {
	eachTranscript(t, func(t *testing.T, path string, _ *testbin.Transcript) {
		abs, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		s := plugintest.StartBinary(t, testbin.Build(t, "internal/testbin/replay"), &plugintest.Options{
			Args: []string{abs}, Config: map[string]string{"greeting": "Hi"},
			Host: &plugintest.Host{
				AskHuman: func(pluginsdk.Question) (pluginsdk.Answer, error) { return plugintest.Choose("blue"), nil },
				CallTool: func(string, json.RawMessage) (*pluginsdk.Result, error) {
					return pluginsdk.TextResult("from another"), nil
				},
			},
		})
		if want, got := []string{"greet", "repeat", "blocks", "fail", "ask", "delegate", "panic"}, s.Tools(t); !cmp.Equal(want, got) {
			t.Errorf("tools %v, want %v", got, want)
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), "00-greet.golden.json")); err == nil {
			update := flag.Lookup("update").Value
			before := update.String()
			if err := update.Set("false"); err != nil { // what is kept stays
				t.Fatal(err)
			}
			defer func() {
				if err := update.Set(before); err != nil {
					t.Error(err)
				}
			}()
		}
		for i, c := range compatCalls {
			step := plugintest.Step{
				Tool: c.tool, Args: c.args, Agent: "desk", Error: c.code,
				Golden: filepath.Join("compat", filepath.Base(filepath.Dir(path)), fmt.Sprintf("%02d-%s", i, c.tool)),
			}
			if c.tool == "repeat" { // the text is long and says nothing
				step.Golden = ""
				step.Check = func(t testing.TB, o *plugintest.Outcome) {
					if want := map[string]int{`{"bytes":100}`: 100, `{"bytes":100000}`: 100_000}[c.args]; len(o.Text()) != want {
						t.Errorf("%d bytes, want %d", len(o.Text()), want)
					}
				}
			}
			s.Run(t, plugintest.Case{Name: fmt.Sprintf("%d %s", i, c.tool), Steps: []plugintest.Step{step}})
		}
	})
}
