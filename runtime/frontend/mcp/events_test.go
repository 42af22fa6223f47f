package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/hermesd/hermesd/runtime/disclosure"
	"github.com/hermesd/hermesd/runtime/frontend"
)

func opened(t *testing.T, e *events, session string) context.Context {
	t.Helper()
	ctx := frontend.WithAgent(t.Context(), &disclosure.Agent{Name: "desk"})
	if err := e.Open(ctx, session, ""); err != nil {
		t.Fatal(err)
	}
	return ctx
}

func replay(t *testing.T, e *events, session, stream string, index int) (got []string, failed error) {
	t.Helper()
	for data, err := range e.After(t.Context(), session, stream, index) {
		if err != nil {
			return got, err
		}
		got = append(got, string(data))
	}
	return got, nil
}

func TestEventsAreReplayedAfterTheLastSeen(t *testing.T) {
	e := newEvents(1, 1000)
	ctx := opened(t, e, "s")
	if err := e.Open(ctx, "s", "r"); err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{"", "one", "two"} {
		if err := e.Append(ctx, "s", "r", []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := replay(t, e, "s", "r", 1); err != nil || !slices.Equal(got, []string{"two"}) {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := replay(t, e, "s", "r", 2); err != nil || len(got) > 0 {
		t.Errorf("nothing new: %q, %v", got, err)
	}
	if _, err := replay(t, e, "s", "unknown", 0); !errors.Is(err, errForgotten) {
		t.Errorf("an unknown stream: %v", err)
	}
}

func TestEventsAreBounded(t *testing.T) {
	e := newEvents(4, 1000)
	ctx := opened(t, e, "s")
	for i := range maxStreams + 10 {
		if err := errors.Join(e.Open(ctx, "s", fmt.Sprint(i)), e.Append(ctx, "s", fmt.Sprint(i), make([]byte, 400))); err != nil {
			t.Fatal(err)
		}
	}
	if e.bytes > 1000 || e.order.Len() > 2 || len(e.sessions["s"].streams) != 3 {
		t.Errorf("%d bytes, %d streams", e.bytes, e.order.Len())
	}
	if _, err := replay(t, e, "s", "0", 0); !errors.Is(err, errForgotten) {
		t.Errorf("the oldest stream: %v", err)
	}
	for range 1000 {
		if err := e.Append(ctx, "s", "", []byte("change")); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := replay(t, e, "s", "", -1); err != nil || len(got) != maxOwnEvents {
		t.Errorf("the session's own stream: %d, %v", len(got), err)
	}
	if _, err := replay(t, e, "s", "", 3); !errors.Is(err, errForgotten) {
		t.Errorf("what was dropped of it: %v", err)
	}
	opened(t, e, "t")
	if err := e.Open(ctx, "u", ""); !errors.Is(err, errTooManySessions) {
		t.Errorf("a third session, when two are free: %v", err)
	}
	other := frontend.WithAgent(t.Context(), &disclosure.Agent{Name: "other"})
	if err := e.Open(other, "u", ""); err != nil {
		t.Errorf("another agent's: %v", err)
	}
	for _, s := range []string{"s", "t", "u"} {
		if err := e.SessionClosed(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	if e.bytes != 0 || e.order.Len() != 0 || len(e.sessions) != 0 {
		t.Errorf("left over: %+v", e)
	}
}
