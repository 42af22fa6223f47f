package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/tool"
)

// beginTask makes a task that is due in a minute.
func beginTask(t *testing.T, s *tasks, agent string, cancel context.CancelFunc) *task {
	t.Helper()
	made := s.begin(agent, time.Second, time.Now().Add(time.Minute), cancel)
	if made == nil {
		t.Fatal("there is no place")
	}
	return made
}

func TestATaskIsKeptAsLongAsItsAgentWasTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTasks(10 * time.Minute)
		done, over := beginTask(t, s, "a", func() {}), beginTask(t, s, "a", func() {})
		s.end(done, taskCompleted, json.RawMessage(`{}`))
		s.end(over, taskCancelled, nil)
		if v := s.seed(done); v.TTL != (11 * time.Minute).Milliseconds() {
			t.Errorf("told %d ms", v.TTL)
		}
		time.Sleep(11*time.Minute - time.Second)
		for _, task := range []*task{done, over} {
			if _, err := s.view("a", task.id); err != nil {
				t.Error("gone before its time")
			}
		}
		time.Sleep(2 * time.Second)
		for _, task := range []*task{done, over} {
			if _, err := s.view("a", task.id); !errors.Is(err, errNoTask) {
				t.Errorf("after its time: %v", err)
			}
		}
		if len(s.byID) != 0 || !s.places.Fits("b", maxTasks) || !s.bytes.Fits("b", maxTaskBytes) {
			t.Error("places are still taken")
		}
	})
}

func TestTenThousandTasksLeaveNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTasks(10 * time.Minute)
		result := json.RawMessage(`{"content":[]}`)
		for range 10_000 / 500 {
			for i := range 500 {
				made := beginTask(t, s, "a", func() {})
				switch i % 3 {
				case 0:
					s.end(made, taskCompleted, result)
				case 1:
					s.end(made, taskFailed, result)
				case 2:
					if err := s.cancelTask("a", made.id); err != nil {
						t.Fatal(err)
					}
					s.end(made, taskCompleted, result)
				}
			}
			time.Sleep(12 * time.Minute)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.byID) != 0 || !s.places.Might("b", maxTasks) || !s.bytes.Might("b", maxTaskBytes) {
			t.Errorf("%d tasks are left, or their places", len(s.byID))
		}
	})
}

// A call of several tools may go on long after the one that made it a task was due.
func TestATaskIsKeptWhileItsCallRunsAndAsLongAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTasks(10 * time.Minute)
		defer s.dropAll()
		long := beginTask(t, s, "a", func() { t.Error("it was cancelled") })
		time.Sleep(3 * time.Hour)
		v, err := s.view("a", long.id)
		if err != nil || v.Status != taskWorking || v.TTL < (3*time.Hour).Milliseconds() {
			t.Fatalf("while it runs: %+v, %v", v, err)
		}
		s.end(long, taskCompleted, json.RawMessage(`{}`))
		if v, err := s.view("a", long.id); err != nil || v.TTL != (3*time.Hour+10*time.Minute).Milliseconds() {
			t.Errorf("at its end: %+v, %v", v, err)
		}
		time.Sleep(10*time.Minute - time.Second)
		if _, err := s.view("a", long.id); err != nil {
			t.Error("gone before its time")
		}
		time.Sleep(2 * time.Second)
		if _, err := s.view("a", long.id); !errors.Is(err, errNoTask) {
			t.Errorf("after its time: %v", err)
		}
	})
}

func TestAnAgentHasNoMoreTasksThanItsShare(t *testing.T) {
	s := newTasks(time.Minute)
	defer s.dropAll()
	for range maxTasks / 2 {
		beginTask(t, s, "greedy", func() {})
	}
	h := &handover{tasks: s, agent: "greedy", became: make(chan struct{})}
	if h.begin(t.Context(), time.Second); h.now() != nil {
		t.Error("a task beyond the share")
	}
	h.end(false, &frontend.Tried{Result: tool.TextResult("plain")}) // it was none
	h.agent = "modest"
	h.begin(t.Context(), time.Second)
	first := h.now()
	if h.begin(t.Context(), time.Second); first == nil || h.now() != first {
		t.Error("another agent has no place, or two for one call")
	}
}

func TestOldResultsMakeRoomForNewOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTasks(time.Hour)
		defer s.dropAll()
		quarter := json.RawMessage(bytes.Repeat([]byte{'1'}, maxTaskResult))
		var all []*task
		for range 3 {
			made := beginTask(t, s, "a", func() {})
			s.end(made, taskCompleted, quarter)
			all = append(all, made)
			time.Sleep(time.Second)
		}
		if _, err := s.view("a", all[0].id); err == nil {
			t.Error("the oldest stayed")
		}
		for _, kept := range all[1:] {
			if v, err := s.view("a", kept.id); err != nil || len(v.Result) != len(quarter) {
				t.Errorf("a newer one: %v", err)
			}
		}
		huge := beginTask(t, s, "a", func() {})
		s.end(huge, taskCompleted, json.RawMessage(bytes.Repeat([]byte{'1'}, maxTaskResult+1)))
		if v, err := s.view("a", huge.id); err != nil || !bytes.Contains(v.Result, []byte("result_too_large")) {
			t.Errorf("what is more than one may be: %v", err)
		}
		for _, agent := range []string{"b", "c"} {
			for range 8 {
				s.end(beginTask(t, s, agent, func() {}), taskCompleted, quarter[:1<<21])
			}
		}
		small := beginTask(t, s, "d", func() {})
		s.end(small, taskCompleted, quarter[:1<<20])
		s.end(beginTask(t, s, "d", func() {}), taskCompleted, quarter)
		if v, err := s.view("d", small.id); err != nil || len(v.Result) != 1<<20 {
			t.Errorf("a result went for another that had no room without it: %v", err)
		}
		other := beginTask(t, s, "b", func() {})
		s.end(other, taskFailed, json.RawMessage(`{}`))
		if v, err := s.view("b", other.id); err != nil || v.Status != taskFailed {
			t.Errorf("another agent: %v", err)
		}
	})
}

func TestTheFirstEndOfATaskCounts(t *testing.T) {
	s := newTasks(time.Minute)
	defer s.dropAll()
	cancelled := beginTask(t, s, "a", func() {})
	if err := s.cancelTask("a", cancelled.id); err != nil {
		t.Fatal(err)
	}
	s.end(cancelled, taskCompleted, json.RawMessage(`{}`))
	s.tell(cancelled, "late")
	if v, err := s.view("a", cancelled.id); err != nil || v.Status != taskCancelled || v.Result != nil || v.Message != "" {
		t.Errorf("%+v %v", v, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.ask(ctx, cancelled, sdk.InputRequestMap{"q": &sdk.ListRootsParams{}}); err == nil || len(cancelled.open) > 0 {
		t.Error("it asks when it has ended")
	}
}

// A run may give a question up while the request that is to carry it takes it.
func TestAQuestionThatIsGivenUpIsNotKept(t *testing.T) {
	p := newParked(time.Minute, newTasks(time.Minute))
	q := &question{}
	p.drop(q)
	if p.hold(q) || len(p.waiting) > 0 {
		t.Error("it waits for ever")
	}
}

// Whatever a client sends about tasks is refused, or taken without harm.
func FuzzTaskRequest(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tasks/update","params":{"taskId":"x","inputResponses":{"1-q":{"action":"accept","content":{"a":1}}}}}`), "x")
	f.Add([]byte(`{"id":[],"method":"tasks/get","params":{"taskId":7}}`), "")
	f.Add([]byte(`{"method":"tasks/cancel","params":[]}`), "y")
	s := newTasks(time.Hour)
	asking := s.begin("a", time.Second, time.Time{}, func() {})
	f.Cleanup(s.dropAll)
	f.Fuzz(func(t *testing.T, body []byte, header string) {
		if !json.Valid(body) {
			return // checked before
		}
		w := httptest.NewRecorder()
		r := httptest.NewRequest("POST", Path, nil)
		r.Header.Set(nameHeader, header)
		if !namesTask(w, r.Header, body) && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s was refused with %s", body, w.Body)
		}
		var m struct{ Params taskParams }
		if json.Unmarshal(body, &m) != nil {
			return
		}
		for _, request := range []sdk.InputRequest{&sdk.ElicitParams{}, &sdk.CreateMessageWithToolsParams{}, &sdk.ListRootsParams{}} {
			asking.open = map[string]*taskInput{"1-q": {"q", request, &taskQuestion{left: 1, given: sdk.InputResponseMap{}, done: make(chan struct{})}}}
			if err := s.answer("a", asking.id, m.Params.Inputs); err != nil && len(asking.open) != 1 {
				t.Errorf("%s was refused, and taken: %v", body, err)
			}
		}
	})
}
