package mcpclient_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/runtime/mcpclient"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

const note = "note://a?x=1#y"

// told waits until a server's update of note is told.
func told(t *testing.T, server *mcp.Server, updates <-chan struct{}) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond) // the server notes a subscription after it has answered
	defer tick.Stop()
	for deadline := time.After(patience); ; {
		if err := server.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: note}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-updates:
			return
		case <-tick.C:
		case <-deadline:
			t.Fatal("an update was not told")
		}
	}
}

func TestALazyServerWithSubscribersIsNotStoppedAndComesBackByItself(t *testing.T) {
	asked := make(chan string, 10)
	server := newLibrary(mcp.ServerOptions{SupportedProtocolVersions: []string{"2025-11-25"}, SubscribeHandler: func(_ context.Context, r *mcp.SubscribeRequest) error {
		asked <- r.Params.URI
		return nil
	}})
	opts := mcpclient.Options{URL: serve(t, streamableHandler(t, server, nil)).URL, Resources: true, Lazy: true, IdleTimeout: 200 * time.Millisecond}
	idle := func(o *provider.Offer) bool { return o.Status.State == provider.Installed }
	r := start(t, opts)
	r.ready() // to list its tools
	updates := make(chan struct{}, 1)
	cancel, err := r.Subscribe(t.Context(), note, func() {
		select {
		case updates <- struct{}{}:
		default:
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	<-asked

	opts.URL = serve(t, streamableHandler(t, newLibrary(mcp.ServerOptions{}), nil)).URL
	other := start(t, opts) // without subscribers
	other.ready()
	other.await("the other to be stopped", idle)
	if s := r.Offer().Status; s.State != provider.Ready {
		t.Fatalf("it is %s", s.State)
	}
	told(t, server, updates)

	for session := range server.Sessions() {
		session.Close() // the server forgets the session, and with it the subscription
	}
	select {
	case <-asked:
	case <-time.After(patience):
		t.Fatal("the subscription was not asked for again")
	}
	told(t, server, updates)

	cancel()
	r.await("the server to be stopped when nobody listens", idle)
}

func TestASubscriptionThatIsRefusedIsRefusedToEveryWhoAsked(t *testing.T) {
	const listeners = 4
	asking, answer := make(chan struct{}, listeners), make(chan struct{})
	server := newLibrary(mcp.ServerOptions{SupportedProtocolVersions: []string{"2025-11-25"}, SubscribeHandler: func(context.Context, *mcp.SubscribeRequest) error {
		asking <- struct{}{}
		<-answer
		return errors.New("not this one")
	}})
	r := start(t, mcpclient.Options{URL: serve(t, streamableHandler(t, server, nil)).URL, Resources: true})
	r.ready()
	var all, joining sync.WaitGroup
	subscribe := func() {
		defer all.Done()
		joining.Done()
		if _, err := r.Subscribe(t.Context(), note, func() {}); tool.CodeOf(err) != tool.DownstreamFailed {
			t.Errorf("told %v", err)
		}
	}
	all.Add(listeners)
	joining.Add(listeners)
	go subscribe()
	<-asking
	for range listeners - 1 {
		go subscribe()
	}
	joining.Wait()
	close(answer)
	all.Wait()
}

// Whoever leaves as another comes must not take the other's subscription along.
func TestASubscriptionOutlivesOthersThatComeAndGo(t *testing.T) {
	var mu sync.Mutex
	subscribed := false // as the server has it
	set := func(on bool) error {
		mu.Lock()
		defer mu.Unlock()
		if subscribed == on {
			t.Errorf("the server was told twice in a row that there are listeners: %v", on)
		}
		subscribed = on
		return nil
	}
	server := newLibrary(mcp.ServerOptions{SupportedProtocolVersions: []string{"2025-11-25"},
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return set(true) },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return set(false) },
	})
	r := start(t, mcpclient.Options{URL: serve(t, streamableHandler(t, server, nil)).URL, Resources: true})
	r.ready()
	updates := make(chan struct{}, 1)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 20 {
				cancel, err := r.Subscribe(t.Context(), note, func() {})
				if err != nil {
					t.Error(err)
					return
				}
				cancel()
			}
		})
	}
	all.Wait()
	cancel, err := r.Subscribe(t.Context(), note, func() {
		select {
		case updates <- struct{}{}:
		default:
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer cancel()
	told(t, server, updates)
}
