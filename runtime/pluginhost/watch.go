package pluginhost

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
)

const (
	// healthEvery is how often an idle process is asked whether it still answers.
	healthEvery = 10 * time.Second
	// healthTimeout is how long one answer may take; the second that fails in a row ends the process.
	healthTimeout = 2 * time.Second
	// relistEvery bounds how often a plugin can make the host list its tools.
	relistEvery = time.Second
	// watchPause is the first wait before a broken Watch is opened again; it doubles up to watchPauseMax.
	watchPause, watchPauseMax = time.Second, 30 * time.Second
	// maxWatchRequests is how many host requests outside a call are answered at once.
	maxWatchRequests = 4
)

// attend looks after a running process until it ends: it must answer Health, and tools that are not available are asked
// about again.
func (p *Provider) attend(i *instance) {
	ticker := time.NewTicker(healthEvery)
	defer ticker.Stop()
	checked := time.Now()
	for {
		select {
		case <-ticker.C:
		case <-i.recheck:
		case <-i.ctx.Done():
			return
		}
		if err := i.healthy(); err != nil {
			if i.ctx.Err() == nil {
				p.supervisor.Failed(err)
			}
			return
		}
		p.supervisor.Succeeded()
		if time.Since(checked) >= checkLife && len(p.verdicts.unmet()) > 0 {
			checked = time.Now()
			p.checkAll(i.ctx, i)
		}
	}
}

// healthy asks twice, since a machine under load may be late once.
func (i *instance) healthy() (err error) {
	for range 2 {
		ctx, cancel := context.WithTimeout(i.ctx, healthTimeout)
		_, err = i.Health(ctx, &pb.HealthRequest{})
		cancel()
		if err == nil || status.Code(err) == codes.Unimplemented {
			return nil
		}
	}
	return rpcError("the plugin's process does not answer: Health", err)
}

// doubt makes attend ask now.
func (i *instance) doubt() {
	select {
	case i.recheck <- struct{}{}:
	default:
	}
}

// watch listens to what the plugin says outside calls, until the process ends.
func (p *Provider) watch(i *instance) {
	events := newWatchEvents(p, i)
	defer events.close()
	for pause := watchPause; ; pause = min(2*pause, watchPauseMax) {
		err := events.listen()
		if i.ctx.Err() != nil || status.Code(err) == codes.Unimplemented {
			return
		}
		p.opts.Logger.Debug("plugin's Watch ended; it is opened again", "error", err)
		if !sleep(i.ctx, pause) {
			return
		}
	}
}

// sleep waits unless ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// watchEvents works on the events of a Watch, apart from the stream, so that a slow answer does not block it.
type watchEvents struct {
	p        *Provider
	i        *instance
	relist   chan struct{} // capacity 1
	checks   chan []string // capacity 1; what does not fit becomes "all"
	requests *requests
	done     chan struct{}
}

func newWatchEvents(p *Provider, i *instance) *watchEvents {
	w := &watchEvents{
		p: p, i: i, relist: make(chan struct{}, 1), checks: make(chan []string, 1), done: make(chan struct{}),
		requests: &requests{provider: p, instance: i, slots: make(chan struct{}, maxWatchRequests)},
	}
	go w.work()
	return w
}

// close waits until nothing works on an event any more; the instance's context has ended.
func (w *watchEvents) close() {
	<-w.done
	w.requests.wait()
}

func (w *watchEvents) listen() error {
	stream, err := w.i.Watch(w.i.ctx, &pb.WatchRequest{})
	if err != nil {
		return err
	}
	for {
		event, err := stream.Recv()
		if err != nil {
			return err
		}
		switch e := event.GetEvent().(type) {
		case *pb.WatchResponse_ToolsChanged:
			select {
			case w.relist <- struct{}{}:
			default: // one is as good as many
			}
		case *pb.WatchResponse_AvailabilityChanged:
			w.check(e.AvailabilityChanged.GetTools())
		case *pb.WatchResponse_HostRequest:
			w.requests.answer(w.i.ctx, e.HostRequest, nil)
		case *pb.WatchResponse_Log:
			w.p.log.Event(e.Log.GetLevel(), e.Log.GetLogger(), e.Log.GetData())
		}
	}
}

func (w *watchEvents) check(tools []string) {
	select {
	case w.checks <- tools:
		return
	default:
	}
	select { // something waits already: one question about all instead of two
	case <-w.checks:
	default:
	}
	select {
	case w.checks <- nil:
	default:
	}
}

func (w *watchEvents) work() {
	defer close(w.done)
	for {
		select {
		case <-w.relist:
			if err := w.p.relist(w.i.ctx, w.i); err != nil && w.i.ctx.Err() == nil && !errors.Is(err, context.Canceled) {
				w.p.opts.Logger.Warn("plugin's changed tools could not be listed; the old ones stay", "error", err)
			}
			if !sleep(w.i.ctx, relistEvery) {
				return
			}
		case tools := <-w.checks:
			w.p.recheck(w.i.ctx, w.i, tools)
		case <-w.i.ctx.Done():
			return
		}
	}
}
