package daemon

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hermesd/hermesd/runtime/mcpclient"
)

func TestACircleOfDaemonsIsRefused(t *testing.T) {
	a, b, c := newVia(), newVia(), newVia()
	for name, tt := range map[string]struct {
		from func() string
		want string // "": let in
	}{
		"a client that is no daemon":                   {func() string { return "" }, ""},
		"another daemon":                               {b.String, ""},
		"a daemon behind another":                      {func() string { return b.id + ", " + c.id }, ""},
		"the daemon itself":                            {a.String, "is this daemon itself"},
		"a daemon that takes its tools from here":      {func() string { return b.id + "," + a.id }, "would be a circle"},
		"one behind another that takes them from here": {func() string { return b.id + "," + c.id + "," + a.id }, "would be a circle"},
	} {
		t.Run(name, func(t *testing.T) {
			leave, err := a.enter(tt.from())
			if err == nil {
				leave()
			}
			if got := err != nil; got != (tt.want != "") || got && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestADaemonTellsItsServersWhoTakesItsTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newVia()
		leave, err := a.enter("x,y")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // an open stream
		if got := a.String(); got != a.id+",x,y" {
			t.Errorf("while they are here: %s", got)
		}
		leave()
		time.Sleep(viaLinger)
		if got := a.String(); got != a.id+",x,y" {
			t.Errorf("between two requests: %s", got)
		}
		time.Sleep(time.Second)
		if got := a.String(); got != a.id {
			t.Errorf("long after them: %s", got)
		}
		for range 3 {
			if _, err := a.enter(strings.Repeat("z"+time.Now().String()+",", 1000)); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(strings.Split(a.String(), ",")); n > maxVia+1 {
			t.Errorf("%d ids are kept", n)
		}
	})
}

func TestTheEndpointAnswersItsOwnDaemonWithAnErrorInJSON(t *testing.T) {
	v := newVia()
	served := 0
	h := v.handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }))
	for from, want := range map[string]int{"": 200, "another": 200, v.String(): 421} {
		r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
		if from != "" {
			r.Header.Set(mcpclient.ViaHeader, from)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("from %q: %d", from, w.Code)
		}
		if want == 421 && (!strings.Contains(w.Body.String(), `"message":"this MCP server is this daemon itself`) || w.Header().Get("Content-Type") != "application/json") {
			t.Errorf("%s", w.Body)
		}
	}
	if served != 2 {
		t.Errorf("%d were served", served)
	}
}
