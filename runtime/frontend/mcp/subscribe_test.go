package mcp

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestOfSessionsThatSubscribeAtOnceOneBegins(t *testing.T) {
	const resources, sessions = 20_000, 4
	var s subscriptions
	var began [resources]atomic.Int32
	var all sync.WaitGroup
	for range sessions {
		session := &sdk.ServerSession{}
		all.Go(func() {
			for i := range resources {
				if s.begin(fmt.Sprint(i), session, func() {}) {
					began[i].Add(1)
				}
			}
		})
	}
	all.Wait()
	for i := range began {
		if n, x := began[i].Load(), s.byURI[fmt.Sprint(i)]; n != 1 || len(x.sessions) != sessions {
			t.Fatalf("resource %d: %d sessions began a subscription, %d of %d have it", i, n, len(x.sessions), sessions)
		}
	}
}
