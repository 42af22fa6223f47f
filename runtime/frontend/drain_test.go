package frontend

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hermesd/hermesd/runtime/tool"
)

func TestADrainingDeskLetsCallsEndAndNoneBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Desk{}
		if err := d.drain.enter(false); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		go func() {
			time.Sleep(3 * time.Second) // a call that runs; synctest's clock
			if err := d.drain.enter(true); err != nil {
				t.Errorf("what a running call calls is part of it: %v", err)
			}
			d.drain.leave()
			d.drain.leave()
		}()
		d.Drain(t.Context())
		if waited := time.Since(begun); waited != 3*time.Second {
			t.Errorf("waited %v", waited)
		}
		if err := d.drain.enter(false); tool.CodeOf(err) != tool.ShuttingDown {
			t.Errorf("a new call: %v", err)
		}
		d.Drain(t.Context()) // a second time waits for nothing
	})
}

func TestADrainEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Desk{}
		if err := d.drain.enter(false); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		d.Drain(ctx)
		if waited := time.Since(begun); waited != time.Second {
			t.Errorf("waited %v", waited)
		}
	})
}
