package frontend_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hermesd/hermesd/runtime/frontend"
)

func TestASessionEndsOnceItIsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var ended []string
		s := &frontend.Sessions{Idle: 10 * time.Minute, OnEnd: func(agent, session string) {
			mu.Lock()
			defer mu.Unlock()
			ended = append(ended, agent+" "+session)
		}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		look := func(want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			slices.Sort(ended)
			if !slices.Equal(ended, want) {
				t.Errorf("ended are %q, want %q", ended, want)
			}
			ended = nil
		}
		s.ID("desk", "a", "")
		s.ID("desk", "b", "")
		s.ID("other", "b", "")
		implicit := s.ID("desk", "", "client")
		for range 9 {
			time.Sleep(time.Minute)
			s.ID("desk", "a", "")
		}
		look()
		time.Sleep(2 * time.Minute)
		look("desk "+implicit, "desk desk/b", "other other/b")
		if again := s.ID("desk", "", "client"); again == implicit {
			t.Error("a session that has ended lives on")
		}
		s.ID("desk", "b/a", "")
		s.ID("other", "a", "")
		s.End("desk", "a")
		look("desk desk/a")
		s.End("desk", "a")
		s.End("desk", "")
		look()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestTheSessionsThatAreRememberedAreBounded(t *testing.T) {
	ended := 0
	s := &frontend.Sessions{OnEnd: func(string, string) { ended++ }}
	for i := range 10_100 {
		s.ID("desk", fmt.Sprint(i), "")
	}
	if ended != 100 {
		t.Errorf("%d ended", ended)
	}
	for i := range 5_000 {
		s.ID("desk", "", fmt.Sprint(i))
	}
	if ended != 5_100 {
		t.Errorf("%d ended", ended)
	}
	unnamed := s.ID("desk", "", "0")
	for i := range 4_999 {
		s.ID("other", fmt.Sprint(i), "")
	}
	if again := s.ID("desk", "", "0"); again != unnamed {
		t.Errorf("the session is %s instead of %s, which was used last", again, unnamed)
	}
}
