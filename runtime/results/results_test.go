package results_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/results"
	"github.com/hermesd/hermesd/runtime/tool"
)

func open(t *testing.T, o results.Options) (*results.Store, string) {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	s, err := results.Open(&o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, filepath.Join(o.Dir, "results")
}

var idIn = regexp.MustCompile(`result_read \{"id":"([a-z0-9]+)","offset":(\d+)\}`)

// idOf is the id that a shortened result names.
func idOf(t *testing.T, r *tool.Result) string {
	t.Helper()
	m := idIn.FindStringSubmatch(r.Text())
	if m == nil {
		t.Fatalf("no id in %.300q", r.Text())
	}
	return m[1]
}

func TestWhatFitsIsLeftAlone(t *testing.T) {
	s, dir := open(t, results.Options{MaxChars: 10, Preview: 4})
	for name, r := range map[string]*tool.Result{
		"empty":                           {},
		"exactly as long":                 tool.TextResult("0123456789"),
		"characters are counted":          tool.TextResult("日本語日本語日本語日"),
		"an image is not text":            {Content: []tool.Content{tool.Image("image/png", make([]byte, 100)), tool.Text("x")}},
		"structured content of that size": {Structured: json.RawMessage(`{"a":1234}`)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := s.Fit("ann", "s1", r); got != r {
				t.Errorf("changed to %s", got.Text())
			}
		})
	}
	if files(t, dir) != 0 {
		t.Error("something was kept")
	}
}

func files(t *testing.T, dir string) int {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestABigResultIsReadPieceByPiece(t *testing.T) {
	whole := strings.Repeat("日本語 text\n", 5000)
	for name, r := range map[string]*tool.Result{
		"a text":                  {Content: []tool.Content{tool.Text(whole)}},
		"several texts":           {Content: []tool.Content{tool.Text(whole[:30000]), tool.Text(whole[30001:])}},
		"a failure":               {Content: []tool.Content{tool.Text(whole)}, IsError: true},
		"text and the same value": {Content: []tool.Content{tool.Text(`["` + strings.Repeat("x", 20000) + `"]`)}, Structured: json.RawMessage(`["` + strings.Repeat("x", 20000) + `"]`)},
		"only a value":            {Structured: json.RawMessage(`["` + strings.Repeat("x", 20000) + `"]`)},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := open(t, results.Options{MaxChars: 9000, Preview: 100})
			want := r.Text()
			if want == "" {
				want = string(r.Structured)
			}
			short := s.Fit("ann", "s1", r)
			if first, _ := short.Content[0].AsText(); first != string([]rune(want)[:100]) {
				t.Errorf("the preview is %q", first)
			}
			if short.IsError != r.IsError || short.Structured != nil || short.Size() > 2000 {
				t.Errorf("the agent gets %d bytes, failed %t, structured %d bytes", short.Size(), short.IsError, len(short.Structured))
			}
			id := idOf(t, short)
			if !strings.Contains(string(short.Content[2]), `"uri":"hermesd://results/`+id+`"`) {
				t.Errorf("no link to it: %s", short.Content[2])
			}
			info, err := os.Stat(filepath.Join(dir, id))
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("its file: %v, %v", info, err)
			}
			read := string([]rune(want)[:100])
			for offset, n := 100, 0; ; n++ {
				p, terr := s.Read("ann", "s1", id, offset, 7777)
				if terr != nil {
					t.Fatal(terr)
				}
				read += p.Text
				if fit := s.Fit("ann", "s1", p.Result()); fit.Size() > 40000 || idIn.MatchString(fit.Text()) != (p.Next > 0) {
					t.Fatalf("a page does not fit: %.200s", fit.Text())
				}
				if p.Next == 0 {
					break
				}
				offset = p.Next
			}
			if read != want {
				t.Errorf("the pieces are %d bytes, the whole %d", len(read), len(want))
			}
		})
	}
}

func TestAPageIsNeverTooBig(t *testing.T) {
	s, _ := open(t, results.Options{MaxChars: 5000, Preview: 10})
	id := idOf(t, s.Fit("ann", "s1", tool.TextResult(strings.Repeat("x", 20000))))
	p, err := s.Read("ann", "s1", id, 0, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	if r := p.Result(); s.Fit("ann", "s1", r) != r {
		t.Error("the page was shortened itself")
	}
}

func TestMediaAndSmallValuesStay(t *testing.T) {
	s, _ := open(t, results.Options{MaxChars: 1000, Preview: 10})
	image := tool.Image("image/png", []byte("png"))
	got := s.Fit("ann", "s1", &tool.Result{Content: []tool.Content{image, tool.Text(strings.Repeat("x", 2000))}, Structured: json.RawMessage(`{"n":1}`), Meta: json.RawMessage(`{"a":1}`)})
	if string(got.Structured) != `{"n":1}` || string(got.Meta) != `{"a":1}` || string(got.Content[len(got.Content)-1]) != string(image) {
		t.Errorf("%+v", got)
	}
	p, err := s.Read("ann", "s1", idOf(t, got), 2000, 0)
	if err != nil || p.Text != "\n\nstructuredContent:\n{\"n\":1}" {
		t.Errorf("the whole ends with %+v, %v", p, err)
	}
}

func TestAnIDWorksForItsOwnSessionOnly(t *testing.T) {
	s, dir := open(t, results.Options{MaxChars: 10, Preview: 1})
	id := idOf(t, s.Fit("ann", "s1", tool.TextResult(strings.Repeat("x", 20))))
	outside := filepath.Join(filepath.Dir(dir), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, who := range map[string][3]string{
		"another agent":      {"bob", "s1", id},
		"another session":    {"ann", "s2", id},
		"a guess":            {"ann", "s1", "aaaaaaaaaaaaaaaaaaaaaaaaaa"},
		"a path":             {"ann", "s1", "../secret"},
		"nothing":            {"ann", "s1", ""},
		"the id in capitals": {"ann", "s1", strings.ToUpper(id)},
	} {
		if p, err := s.Read(who[0], who[1], who[2], 0, 0); err == nil || err.Code != tool.NotAvailable {
			t.Errorf("%s reads %+v, %v", name, p, err)
		}
	}
	for name, at := range map[string][2]int{"before its beginning": {-1, 1}, "behind its end": {21, 1}, "less than nothing": {0, -1}} {
		if p, err := s.Read("ann", "s1", id, at[0], at[1]); err == nil || err.Code != tool.InvalidArguments {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	s.EndSession("ann", "s2")
	if _, err := s.Read("ann", "s1", id, 0, 0); err != nil {
		t.Error(err)
	}
	s.EndSession("ann", "s1")
	if _, err := s.Read("ann", "s1", id, 0, 0); err == nil || files(t, dir) != 0 {
		t.Error("it outlives its session")
	}
}

func TestTheQuotaHolds(t *testing.T) {
	s, dir := open(t, results.Options{MaxChars: 10, Preview: 1, Quota: 1000})
	keep := func(n int) *tool.Result { return s.Fit("ann", "s1", tool.TextResult(strings.Repeat("x", n))) }
	first, second := idOf(t, keep(400)), idOf(t, keep(400))
	if _, err := s.Read("ann", "s1", first, 0, 1); err != nil {
		t.Fatal(err)
	}
	third := idOf(t, keep(400))
	for id, kept := range map[string]bool{first: true, second: false, third: true} {
		if _, err := s.Read("ann", "s1", id, 0, 1); (err == nil) != kept {
			t.Errorf("kept: %v, want %t", err, kept)
		}
	}
	if n := files(t, dir); n != 2 {
		t.Errorf("%d files", n)
	}
	if r := keep(1001); idIn.MatchString(r.Text()) || !strings.Contains(r.Text(), "The rest is lost: it is bigger than all that may be kept") {
		t.Errorf("cut in silence: %s", r.Text())
	}
}

func TestADiskThatRefusesIsSaid(t *testing.T) {
	s, dir := open(t, results.Options{MaxChars: 10, Preview: 1})
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if r := s.Fit("ann", "s1", tool.TextResult(strings.Repeat("x", 20))); !strings.Contains(r.Text(), "The rest is lost") {
		t.Error(r.Text())
	}
}

func TestWhatNobodyReadsIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, dir := open(t, results.Options{MaxChars: 10, Preview: 1})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		id := idOf(t, s.Fit("ann", "s1", tool.TextResult(strings.Repeat("x", 20))))
		time.Sleep(50 * time.Minute)
		if _, err := s.Read("ann", "s1", id, 0, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Minute)
		if n := files(t, dir); n != 1 {
			t.Error("it was removed although it was read")
		}
		time.Sleep(12 * time.Minute)
		if n := files(t, dir); n != 0 {
			t.Error("it is still there")
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestADaemonBeforeThisOneLeavesNothing(t *testing.T) {
	state := t.TempDir()
	left := filepath.Join(state, "results", "left")
	if err := os.MkdirAll(filepath.Dir(left), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(left, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, results.Options{Dir: state})
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
	if _, err := results.Open(&results.Options{}); err == nil {
		t.Error("no directory is fine")
	}
}

func TestTheBuiltInTool(t *testing.T) {
	s, _ := open(t, results.Options{MaxChars: 2000, Preview: 1})
	p := results.NewTool(s)
	d := &p.Offer().Tools[0]
	if p.Offer().Status.State != provider.Ready || d.Name != results.ToolName || !json.Valid(d.InputSchema) || p.Identity().Source != tool.SourceBuiltin {
		t.Errorf("%+v", d)
	}
	id := idOf(t, s.Fit("ann", "s1", tool.TextResult(strings.Repeat("x", 5000))))
	invoke := func(agent, args string) (*tool.Result, error) {
		return p.Invoke(t.Context(), &provider.Request{Definition: d, Call: &tool.Call{Agent: agent, Session: "s1", Arguments: json.RawMessage(args)}})
	}
	r, err := invoke("ann", `{"id":"`+id+`","offset":4990}`)
	if err != nil || r.Text() != "xxxxxxxxxx\n[This is the end of the result.]" {
		t.Errorf("%v, %v", r, err)
	}
	for args, want := range map[string]tool.Code{`{"id":"x"}`: tool.NotAvailable, `{"id":1}`: tool.InvalidArguments, `{"name":"x"}`: tool.InvalidArguments} {
		if _, err := invoke("ann", args); tool.CodeOf(err) != want {
			t.Errorf("%s: %v", args, err)
		}
	}
	if _, err := invoke("bob", `{"id":"`+id+`"}`); tool.CodeOf(err) != tool.NotAvailable {
		t.Errorf("another agent: %v", err)
	}
}

func TestManyAtOnce(t *testing.T) {
	s, dir := open(t, results.Options{MaxChars: 10, Preview: 1, Quota: 500})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for n := range 50 {
				r := s.Fit("ann", "s1", tool.TextResult(strings.Repeat("x", 50+n)))
				if m := idIn.FindStringSubmatch(r.Text()); m != nil {
					s.Read("ann", "s1", m[1], 0, 0) //nolint:errcheck // it may have made room for others
				}
				if n%10 == 0 {
					s.EndSession("ann", "s1")
				}
			}
		})
	}
	wg.Wait()
	s.EndSession("ann", "s1")
	if diff := cmp.Diff(0, files(t, dir)); diff != "" {
		t.Errorf("files are left: %s", diff)
	}
}
