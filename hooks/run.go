package hooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hermesd/hermesd/runtime/tool"
)

const (
	// skipFor is how long a hook that was late is not run.
	skipFor = time.Minute
	// maxLate is how many runs of one hook may be past their time and not over: more are not started.
	maxLate = 3
	// reportEvery bounds how often the log is told that one hook fails.
	reportEvery = time.Minute
)

// hook is a configured hook and what is known of its health.
type hook struct {
	Hook
	log *slog.Logger

	mu       sync.Mutex
	skip     time.Time // not before
	late     int
	failing  bool
	reported time.Time
	unsaid   int // failures since then that the log was not told of
}

type ending struct {
	answer Answer
	err    error
}

// run runs the hook once, within its time. A run that does not end when its time is over is left behind and counted.
func (h *hook) run(ctx context.Context, p *payload) (Answer, error) {
	if err := h.open(); err != nil {
		return Answer{}, err
	}
	raw, err := json.Marshal(p)
	if err != nil {
		h.failed(err)
		return Answer{}, fmt.Errorf("the event cannot be encoded: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, h.Timeout, errLate)
	defer cancel()
	ended := make(chan ending, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				ended <- ending{err: fmt.Errorf("it panicked: %v", v)}
			}
		}()
		a, err := h.Runner.Run(ctx, p.Event, raw)
		ended <- ending{a, err}
	}()
	var e ending
	select {
	case e = <-ended:
	case <-ctx.Done():
		e = h.wait(ended)
		if e.err == nil {
			e = ending{err: context.Cause(ctx)} // an answer that came too late
		}
	}
	switch {
	case e.err == nil:
		h.worked()
		return e.answer, nil
	case context.Cause(ctx) == errLate:
		err = fmt.Errorf("it took longer than %s and was ended; it is skipped for %s", h.Timeout, skipFor)
		h.mu.Lock()
		h.skip = time.Now().Add(skipFor)
		h.mu.Unlock()
	case ctx.Err() != nil:
		return Answer{}, ctx.Err() // the caller went: the hook is not to blame
	default:
		err = e.err
	}
	h.failed(err)
	return Answer{}, err
}

// errLate is the cause of a context whose time for a hook is over.
var errLate = errors.New("the hook is late")

// killGrace is how long a run whose context has ended may take to end: a process group is killed in less.
const killGrace = 100 * time.Millisecond

// wait gives a run whose time is over a moment to end, and leaves it behind if it does not.
func (h *hook) wait(ended <-chan ending) ending {
	timer := time.NewTimer(killGrace)
	defer timer.Stop()
	select {
	case e := <-ended:
		return e
	case <-timer.C:
	}
	h.mu.Lock()
	h.late++
	h.mu.Unlock()
	go func() {
		<-ended
		h.mu.Lock()
		defer h.mu.Unlock()
		h.late--
	}()
	return ending{err: errLate}
}

// open refuses a run of a hook that is skipped.
func (h *hook) open() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if left := time.Until(h.skip); left > 0 {
		return fmt.Errorf("it was late and is skipped for another %s", left.Round(time.Second))
	}
	if h.late >= maxLate {
		return fmt.Errorf("%d of its runs are still under way past their time", h.late)
	}
	return nil
}

// failed tells the log when a hook begins to fail, not of every failure after that.
func (h *hook) failed(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failing || time.Since(h.reported) < reportEvery {
		h.failing = true
		h.unsaid++
		h.log.Debug("hook failed again", "error", err)
		return
	}
	h.log.Warn("hook fails", "error", err, "on_error", string(h.OnError), "failures_not_logged", h.unsaid)
	h.failing, h.reported, h.unsaid = true, time.Now(), 0
}

func (h *hook) worked() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.skip = time.Time{}
	if h.failing {
		h.failing = false
		h.log.Info("hook works again", "failures_not_logged", h.unsaid)
	}
}

// refuse is what an agent reads of a hook that had to run and could not. The cause is the operator's.
func (h *hook) refuse(cause error, format string, args ...any) *tool.Error {
	return tool.Errorf(tool.HookFailed, "%s: the operator's hook %q failed; tell the operator", fmt.Sprintf(format, args...), h.Name).
		WithDetail("%v", cause)
}
