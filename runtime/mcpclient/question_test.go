package mcpclient_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

func TestProgressAndLogLinesComeInOrderBeforeTheResult(t *testing.T) {
	r := start(t, fault(t))
	r.ready()
	var got []string
	host := &provider.Host{
		OnProgress: func(p tool.Progress) { got = append(got, fmt.Sprintf("%v/%v %s", p.Done, p.Total, p.Note)) },
		OnLog:      func(l tool.LogRecord) { got = append(got, fmt.Sprintf("%s %s %s", l.Level, l.Logger, l.Data)) },
	}
	r.text("progress", "{}", host)
	want := []string{"1/3 step 1", `warning fault {"step":1}`, "2/3 step 2", `warning fault {"step":2}`, "3/3 step 3", `warning fault {"step":3}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestQuestionsOfAServer(t *testing.T) {
	r := start(t, fault(t))
	r.ready()
	var asked provider.Question
	host := &provider.Host{
		OnAsk: func(_ context.Context, q provider.Question) (provider.Answer, error) {
			asked = q
			return provider.Answer{Action: "accept", Content: json.RawMessage(`{"z":1,"a":2}`)}, nil
		},
		OnSample: func(_ context.Context, params json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{"role":"assistant","seen":` + string(params) + `}`), nil
		},
	}
	t.Run("a form goes to the human as it is", func(t *testing.T) {
		r := r.on(t)
		got := r.text("ask", `{"message":"Who?","requestedSchema":{"type":"object","properties":{"z":{"type":"integer"},"a":{"type":"integer"}}}}`, host)
		if got != `{"action":"accept","content":{"z":1,"a":2}}` {
			t.Error(got)
		}
		want := provider.Question{Message: "Who?", Schema: json.RawMessage(`{"type":"object","properties":{"z":{"type":"integer"},"a":{"type":"integer"}}}`)}
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("so does a page to open", func(t *testing.T) {
		r := r.on(t)
		r.text("ask", `{"mode":"url","message":"Sign in","url":"https://example.org/","elicitationId":"e1"}`, host)
		if diff := cmp.Diff(provider.Question{Message: "Sign in", URL: "https://example.org/", ID: "e1"}, asked); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("sampling goes to the model as it is", func(t *testing.T) {
		r := r.on(t)
		if got := r.text("sample", `{"z":1,"messages":[]}`, host); got != `{"role":"assistant","seen":{"z":1,"messages":[]}}` {
			t.Error(got)
		}
	})
	t.Run("folders are nobody's to have here: the server would keep them for other clients", func(t *testing.T) {
		r := r.on(t)
		asked := &provider.Host{OnRoots: func(context.Context) (json.RawMessage, error) {
			t.Error("the client was asked")
			return json.RawMessage(`{"roots":[]}`), nil
		}}
		for _, host := range []*provider.Host{asked, nil} {
			if got := r.text("roots", "{}", host); !strings.Contains(got, `-32601`) || !strings.Contains(got, "many clients") {
				t.Error(got)
			}
		}
	})
	t.Run("an agent that cannot be asked is a clear refusal", func(t *testing.T) {
		r := r.on(t)
		if got := r.text("ask", `{"message":"?"}`, nil); !strings.Contains(got, `-32601`) || !strings.Contains(got, "cannot ask a human") {
			t.Error(got)
		}
	})
	t.Run("with calls of several agents running nobody is asked the wrong thing", func(t *testing.T) {
		r := r.on(t)
		ctx, cancel := context.WithCancel(t.Context())
		strangers := r.request("hang", "{}", host)
		strangers.Call.Agent = "stranger"
		var other sync.WaitGroup
		begun := make(chan struct{})
		other.Go(func() {
			close(begun)
			r.fails(ctx, strangers, tool.Cancelled)
		})
		<-begun
		deadline := time.Now().Add(patience)
		for { // until the stranger's call is under way
			got := r.text("ask", `{"message":"?"}`, host)
			if strings.Contains(got, "several callers") {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("questions were passed on all the time")
			}
		}
		cancel()
		other.Wait()
	})
}

func TestACallThatNeedsAPageOpenedFirst(t *testing.T) {
	r := start(t, fault(t))
	r.ready()
	t.Run("says so to an agent that cannot show one", func(t *testing.T) {
		r := r.on(t)
		e := r.fails(t.Context(), r.request("page", "{}", nil), tool.Unsupported)
		if e.Extra["url"] != "https://example.org/" {
			t.Errorf("the error carries %v", e.Extra)
		}
	})
	t.Run("is not repeated when the human declines", func(t *testing.T) {
		r := r.on(t)
		r.fails(t.Context(), r.request("page", "{}", &provider.Host{OnAsk: func(context.Context, provider.Question) (provider.Answer, error) {
			return provider.Answer{Action: "decline"}, nil
		}}), tool.ToolFailed)
	})
	t.Run("runs when the server says that the page is done", func(t *testing.T) {
		r := r.on(t)
		got := r.text("page", "{}", &provider.Host{OnAsk: func(_ context.Context, q provider.Question) (provider.Answer, error) {
			if q.URL != "https://example.org/" || q.ID != "p1" {
				t.Errorf("asked %+v", q)
			}
			r.text("complete", "{}", nil)
			return provider.Answer{Action: "accept"}, nil
		}})
		if got != "welcome" {
			t.Error(got)
		}
	})
}
