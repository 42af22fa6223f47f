package pluginhost

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"github.com/hermesd/hermesd/runtime/tool"
)

func TestAFailingCheckSoonAfterASuccessIsAFlake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var v verdicts
		steps := []struct {
			wait   time.Duration
			answer string // of a check; "" is available
			want   string // what counts
			flake  bool
			fresh  bool // just before: the earlier answer still counts
		}{
			{answer: "down", want: "down"}, // never worked: believed at once
			{wait: 29 * time.Second, answer: "", fresh: true},
			{wait: 31 * time.Second, answer: "down", flake: true},
			{answer: "down", flake: true}, // a flake is not kept: it is asked again
			{wait: 28 * time.Second, answer: "down", flake: true},
			{wait: 2 * time.Second, answer: "down", want: "down"}, // a minute after the last success
			{wait: time.Second, answer: "down", want: "down", fresh: true},
			{wait: time.Hour, answer: ""},
		}
		for i, s := range steps {
			time.Sleep(s.wait)
			if _, fresh := v.fresh("t"); fresh != s.fresh {
				t.Errorf("step %d: fresh %v", i, fresh)
			}
			counts, flake := v.note("t", s.answer)
			if counts != s.want || flake != s.flake {
				t.Errorf("step %d: %q, flake %v; want %q, %v", i, counts, flake, s.want, s.flake)
			}
		}
		v.announce("t", "signed out") // the plugin's own word is no flake
		if got := v.reason("t"); got != "signed out" {
			t.Errorf("reason %q", got)
		}
		v.keep(nil)
		if got := v.unmet(); len(got) != 0 {
			t.Errorf("kept %v", got)
		}
	})
}

func checked(o *Options, list ...*pb.ToolDefinition) ([]tool.Definition, map[tool.Name]string) {
	return o.definitions(list, faultsOf(list))
}

func TestAMalformedDefinitionIsRefusedAlone(t *testing.T) {
	good := func(edit func(*pb.ToolDefinition)) *pb.ToolDefinition {
		d := &pb.ToolDefinition{Name: "t", InputSchema: []byte(`{"type":"object"}`)}
		edit(d)
		return d
	}
	tests := map[string]struct {
		def  *pb.ToolDefinition
		want string // part of the reason; "" if accepted
	}{
		"a small one":              {good(func(*pb.ToolDefinition) {}), ""},
		"no name":                  {good(func(d *pb.ToolDefinition) { d.Name = "" }), "its name has 0 bytes"},
		"a long name":              {good(func(d *pb.ToolDefinition) { d.Name = strings.Repeat("x", 300) }), "its name has 300 bytes"},
		"no schema":                {good(func(d *pb.ToolDefinition) { d.InputSchema = nil }), "not a JSON object"},
		"a schema that is no JSON": {good(func(d *pb.ToolDefinition) { d.InputSchema = []byte(`{"type":`) }), "not a JSON object"},
		"a schema of another type": {good(func(d *pb.ToolDefinition) { d.InputSchema = []byte(`{"type":"array"}`) }), `want "object"`},
		"a schema of no known type": {good(func(d *pb.ToolDefinition) {
			d.InputSchema = []byte(`{"type":"object","properties":{"a":{"type":"strnig"}}}`)
		}), "input schema cannot be used"},
		"a schema that refers abroad": {good(func(d *pb.ToolDefinition) {
			d.InputSchema = []byte(`{"type":"object","properties":{"a":{"$ref":"http://localhost:1/x"}}}`)
		}), "input schema cannot be used"},
		"a bad output schema":       {good(func(d *pb.ToolDefinition) { d.OutputSchema = []byte(`{"type":3}`) }), "output schema cannot be used"},
		"a made-up coldness":        {good(func(d *pb.ToolDefinition) { d.Coldness = "tepid" }), `coldness is "tepid"`},
		"an example that is a list": {good(func(d *pb.ToolDefinition) { d.Examples = [][]byte{[]byte(`{}`), []byte(`[]`)} }), "example 2"},
		"a meta that is a text":     {good(func(d *pb.ToolDefinition) { d.Meta = []byte(`"x"`) }), "its meta"},
		"a novel as description":    {good(func(d *pb.ToolDefinition) { d.Description = strings.Repeat("x", maxDescription+1) }), "its description has"},
		"a heavy definition":        {good(func(d *pb.ToolDefinition) { d.Title = strings.Repeat("x", maxDefinition) }), "its definition has"},
		"too many keywords":         {good(func(d *pb.ToolDefinition) { d.Keywords = make([]string, maxKeywords+1) }), "65 keywords"},
	}
	o, err := (&Options{Name: "p", Path: "x", StateDir: "x"}).withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tools, refused := checked(o, tt.def, &pb.ToolDefinition{Name: "other", InputSchema: []byte(`{"type":"object"}`)})
			if n := len(tools); n != 1 && tt.want != "" || n != 2 && tt.want == "" {
				t.Errorf("%d tools", n)
			}
			reason := refused[o.fullName(tt.def.GetName())]
			if !strings.Contains(reason, tt.want) || tt.want == "" && reason != "" {
				t.Errorf("reason %q, want %q", reason, tt.want)
			}
		})
	}
}

func TestOfTwoToolsWithOneNameTheFirstStays(t *testing.T) {
	o := &Options{Name: "p", Logger: slog.New(slog.DiscardHandler)}
	object := []byte(`{"type":"object"}`)
	tools, refused := checked(o,
		&pb.ToolDefinition{Name: "a", Description: "broken"},
		&pb.ToolDefinition{Name: "a", Description: "good", InputSchema: object},
		&pb.ToolDefinition{Name: "a", Description: "late", InputSchema: object})
	if len(tools) != 1 || tools[0].Description != "good" || len(refused) != 0 {
		t.Errorf("tools %v, refused %v", tools, refused)
	}
}

func TestNamesAndColdnessFollowTheOperatorsBlock(t *testing.T) {
	tests := map[string]struct {
		opts     Options
		own      string
		coldness string
		want     tool.Definition
	}{
		"a third party's word on coldness does not count": {Options{}, "t", "core", tool.Definition{Name: "t", Source: tool.SourcePlugin, Coldness: tool.External}},
		"a built-in's does":              {Options{Builtin: true}, "t", "cold", tool.Definition{Name: "t", Source: tool.SourceBuiltin, Coldness: tool.Cold}},
		"a built-in may say nothing":     {Options{Builtin: true}, "t", "", tool.Definition{Name: "t", Source: tool.SourceBuiltin, Coldness: tool.External}},
		"a prefix comes first":           {Options{Prefix: "wx"}, "now", "", tool.Definition{Name: "wx__now", Source: tool.SourcePlugin, Coldness: tool.External}},
		"every name becomes a valid one": {Options{}, "über.all", "", tool.Definition{Name: tool.FullName("über.all"), Source: tool.SourcePlugin, Coldness: tool.External}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := tt.opts
			o.Name, o.Logger = "p", slog.New(slog.DiscardHandler)
			object := []byte(`{"type":"object"}`)
			tools, refused := checked(&o, &pb.ToolDefinition{Name: tt.own, Coldness: tt.coldness, InputSchema: object})
			tt.want.OwnName, tt.want.SourceName, tt.want.InputSchema = tt.own, "p", object
			if diff := cmp.Diff([]tool.Definition{tt.want}, tools); diff != "" || len(refused) != 0 {
				t.Errorf("refused %v (-want +got):\n%s", refused, diff)
			}
			if !tool.ValidName(tools[0].Name) {
				t.Errorf("name %q", tools[0].Name)
			}
		})
	}
}

// The pipeline takes its deadline from the definition, and its own where that has none: what the block says must be there.
func TestACallTimeoutOfTheBlockIsTheToolsOwn(t *testing.T) {
	object := []byte(`{"type":"object"}`)
	for name, tt := range map[string]struct {
		block time.Duration
		tool  uint64
		want  time.Duration
	}{
		"nobody says":                  {},
		"the block says":               {block: time.Hour, want: time.Hour},
		"the tool says":                {tool: 1000, want: time.Second},
		"the tool says less":           {block: time.Hour, tool: 1000, want: time.Second},
		"the tool says more":           {block: time.Second, tool: 3_600_000, want: time.Hour},
		"the tool says more than ever": {tool: 1 << 62, want: maxCallTime},
	} {
		t.Run(name, func(t *testing.T) {
			o := &Options{Name: "p", CallTimeout: tt.block, Logger: slog.New(slog.DiscardHandler)}
			tools, _ := checked(o, &pb.ToolDefinition{Name: "t", InputSchema: object, TimeoutMs: tt.tool})
			if tools[0].Timeout != tt.want {
				t.Errorf("got %v, want %v", tools[0].Timeout, tt.want)
			}
		})
	}
}

func TestAResultIsTheSameHoweverItIsCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.String(), 0, 5).Draw(t, "texts")
		c := &collector{limit: 1 << 20}
		var want []tool.Content
		for _, text := range texts {
			block := tool.Text(text)
			want = append(want, block)
			for rest := []byte(block); ; {
				n := rapid.IntRange(0, len(rest)).Draw(t, "cut")
				if err := c.chunk(&pb.Chunk{Data: rest[:n], Last: n == len(rest)}); err != nil {
					t.Fatal(err)
				}
				if n == len(rest) {
					break
				}
				rest = rest[n:]
			}
		}
		got, err := c.finish(&pb.Result{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.Content); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestTheKeySpaceKeepsWhatWasPut(t *testing.T) {
	dir := t.TempDir()
	k := &keySpace{dir: filepath.Join(dir, "keys"), former: filepath.Join(dir, "own", "store")}
	ask := func(op pb.Store_Operation, key string, value []byte) *pb.AnswerRequest {
		return k.answer(t.Context(), &pb.Store{Operation: op, Key: key, Value: value})
	}
	want := func(what string, got *pb.AnswerRequest, want *pb.StoreAnswer) {
		t.Helper()
		if diff := cmp.Diff(want, got.GetStore(), protocmp.Transform()); diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", what, got.GetError(), diff)
		}
	}
	want("get nothing", ask(pb.Store_OPERATION_GET, "a", nil), &pb.StoreAnswer{})
	want("list nothing", ask(pb.Store_OPERATION_LIST, "", nil), &pb.StoreAnswer{})
	for _, key := range []string{"a", "a/b", "../../etc/passwd", strings.Repeat("k", maxKey)} {
		want("put", ask(pb.Store_OPERATION_PUT, key, []byte("v"+key)), &pb.StoreAnswer{Found: true})
		want("get", ask(pb.Store_OPERATION_GET, key, nil), &pb.StoreAnswer{Found: true, Value: []byte("v" + key)})
	}
	want("list", ask(pb.Store_OPERATION_LIST, "a", nil), &pb.StoreAnswer{Found: true, Keys: []string{"a", "a/b"}})
	want("delete", ask(pb.Store_OPERATION_DELETE, "a", nil), &pb.StoreAnswer{Found: true})
	want("delete again", ask(pb.Store_OPERATION_DELETE, "a", nil), &pb.StoreAnswer{})
	for what, answer := range map[string]*pb.AnswerRequest{
		"a long key":     ask(pb.Store_OPERATION_PUT, strings.Repeat("k", maxKey+1), nil),
		"no key":         ask(pb.Store_OPERATION_GET, "", nil),
		"a big value":    ask(pb.Store_OPERATION_PUT, "b", make([]byte, maxValue+1)),
		"no operation":   ask(99, "b", nil),
		"a damaged file": damaged(t, k),
	} {
		if answer.GetError() == nil {
			t.Errorf("%s was accepted: %v", what, answer)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("outside the store: %v, %v", entries, err)
	}
	for range maxKeys {
		if ask(pb.Store_OPERATION_PUT, rapid.StringMatching(`[a-z]{12}`).Example(), nil).GetError() != nil {
			return
		}
	}
	t.Error("there is no limit to the number of keys")
}

func damaged(t *testing.T, k *keySpace) *pb.AnswerRequest {
	t.Helper()
	path := filepath.Join(k.dir, fileOf("c"))
	if err := os.WriteFile(path, []byte{0}, 0o600); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(path)
	return k.answer(t.Context(), &pb.Store{Key: "c"})
}

func TestTheCacheForgetsWhenAnythingItDependsOnChanges(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "plugin.js")
	write := func(text string) {
		if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("1")
	o := &Options{Name: "p", CacheDir: filepath.Join(dir, "cache"), Args: []string{script}, Config: []byte(`{}`)}
	k := &knowledge{
		digest: "d", describe: &pb.DescribeResponse{Name: "n", ContractMin: 1, ContractMax: 1},
		tools: []*pb.ToolDefinition{{Name: "t"}}, unmet: map[string]string{"t": "why"},
	}
	if err := newCache(o).save(k); err != nil {
		t.Fatal(err)
	}
	load := func(o *Options, digest string) *knowledge {
		t.Helper()
		k, err := newCache(o).load(digest)
		if err != nil {
			t.Error(err)
		}
		return k
	}
	got := load(o, "d")
	if got == nil || !got.cached || !proto.Equal(got.describe, k.describe) || !proto.Equal(got.tools[0], k.tools[0]) || got.unmet["t"] != "why" {
		t.Fatalf("got %+v", got)
	}
	if load(o, "another binary") != nil {
		t.Error("another binary has the same tools")
	}
	changed := *o
	changed.Config = []byte(`{"a":1}`)
	if load(&changed, "d") != nil {
		t.Error("another configuration has the same tools")
	}
	write("22")
	if load(o, "d") != nil {
		t.Error("another script has the same tools")
	}
	if err := newCache(o).save(k); err != nil {
		t.Fatal(err)
	}
	if files, err := os.ReadDir(o.CacheDir); err != nil || len(files) != 1 {
		t.Errorf("files %v, %v", files, err)
	}
}

func TestABinaryIsHashedAgainOnlyWhenItChanged(t *testing.T) {
	p := &program{path: filepath.Join(t.TempDir(), "plugin")}
	write := func(text string) {
		if err := os.WriteFile(p.path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	digest := func() string {
		t.Helper()
		f, _, digest, err := p.open()
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		return digest
	}
	write("one")
	first := digest()
	p.mu.Lock()
	p.digest = "remembered"
	p.mu.Unlock()
	if got := digest(); got != "remembered" {
		t.Errorf("hashed again: %s", got)
	}
	write("two")
	if got := digest(); got == first || got == "remembered" {
		t.Errorf("a changed file has the digest %s", got)
	}
}

func TestABinaryWithoutAnEndIsNotHashed(t *testing.T) {
	p := &program{path: filepath.Join(t.TempDir(), "plugin")}
	if err := os.WriteFile(p.path, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(p.path, 10<<30); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := p.open(); err == nil || !strings.Contains(err.Error(), "it is no plugin") {
		t.Errorf("error %v", err)
	}
}

func FuzzKnowledge(f *testing.F) {
	f.Add([]byte(`{"describe":"CgFu","tools":""}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		k, err := decodeKnowledge(bytes.NewReader(raw))
		if err == nil && !tool.ValidName(k.describe.GetName()) {
			t.Errorf("accepted the name %q", k.describe.GetName())
		}
	})
}

func FuzzEntry(f *testing.F) {
	f.Add(encodeEntry("key", []byte("value")))
	f.Fuzz(func(t *testing.T, raw []byte) {
		key, value, err := decodeEntry(raw)
		if err == nil && !bytes.Equal(encodeEntry(key, value), raw) {
			t.Errorf("%q is not what %q encodes to", raw, key)
		}
	})
}

func FuzzDefinition(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{}}`), []byte(`{}`), "core")
	o := &Options{Name: "p", Logger: slog.New(slog.DiscardHandler)}
	f.Fuzz(func(t *testing.T, schema, example []byte, coldness string) {
		tools, _ := checked(o, &pb.ToolDefinition{Name: "t", InputSchema: schema, Examples: [][]byte{example}, Coldness: coldness})
		for _, d := range tools {
			if !isObject(d.InputSchema) || !isObject(d.Examples[0]) || d.Coldness != tool.External {
				t.Errorf("accepted %+v", d)
			}
		}
	})
}

func FuzzResult(f *testing.F) {
	f.Add([]byte(`{"type":"text","text":"a"}`), []byte(`{"n":1}`), []byte(`{}`), true)
	f.Fuzz(func(t *testing.T, block, structured, meta []byte, last bool) {
		c := &collector{limit: 1 << 16}
		if c.chunk(&pb.Chunk{Data: block, Last: last}) != nil {
			return
		}
		result, err := c.finish(&pb.Result{Content: [][]byte{block}, Structured: structured, Meta: meta})
		if err == nil && result.Size() > 1<<16 {
			t.Errorf("a result of %d bytes", result.Size())
		}
	})
}
