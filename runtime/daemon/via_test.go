package daemon

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
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

func TestDaemonsThatHaveGoneTakeNoRoomFromOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newVia()
		for i := range maxVia {
			leave, err := a.enter(fmt.Sprint("gone-", i))
			if err != nil {
				t.Fatal(err)
			}
			leave()
		}
		time.Sleep(viaLinger + time.Second)
		if _, err := a.enter("here"); err != nil {
			t.Fatal(err)
		}
		if got := a.String(); got != a.id+",here" {
			t.Errorf("%s", got)
		}
	})
}

// FuzzVia holds that what a client says of itself is bounded, never hides a circle, and is forgotten.
func FuzzVia(f *testing.F) {
	f.Add("", 0)
	f.Add("x, y,,x", 1)
	f.Add(strings.Repeat("z,", 2*maxVia), 0)
	f.Add(strings.Repeat("long", 20), 2)
	f.Fuzz(func(t *testing.T, from string, at int) {
		v := newVia()
		leave, err := v.enter(from)
		if err != nil {
			t.Fatalf("%q is refused: %v", from, err)
		}
		told := strings.Split(v.String(), ",")
		if told[0] != v.id || len(told) > maxVia+1 {
			t.Errorf("%q became %q", from, told)
		}
		for _, id := range told[1:] {
			if id == "" || len(id) > 64 || id != strings.TrimSpace(id) {
				t.Errorf("%q became %q", from, told)
			}
		}
		leave()
		for id, x := range v.above {
			if x.open != 0 {
				t.Errorf("%q is still here", id)
			}
		}
		ids := strings.Split(from, ",")
		if len(ids) > maxVia-1 {
			return // no daemon says so many
		}
		if _, err := v.enter(strings.Join(slices.Insert(ids, min(max(at, 0), len(ids)), v.id), ",")); err == nil {
			t.Errorf("%q with its own id at %d was let in", from, at)
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
