package mcpclient_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/providerlog"
)

func TestAColdServerIsWarmedAndStartedAnewAndItsWordsOutliveIt(t *testing.T) {
	o := fault(t)
	o.Lazy, o.CacheDir = true, filepath.Join(t.TempDir(), "cache")
	first := start(t, o)
	first.ready()
	first.stop()

	r := start(t, o)
	if offer := r.Offer(); offer.Status.State != provider.Installed || len(offer.Tools) == 0 || offer.Status.Healthy() {
		t.Errorf("cold: %+v", offer.Status)
	}
	r.Warm()
	pid := r.await("warm", func(o *provider.Offer) bool { return o.Status.State == provider.Ready }).Status.PID
	r.Restart()
	offer := r.await("another process", func(o *provider.Offer) bool { return o.Status.State == provider.Ready && o.Status.PID != pid })
	if !offer.Status.Healthy() || offer.Status.Restarts != 0 {
		t.Errorf("started anew: %+v", offer.Status)
	}
	deadline := time.After(patience)
	for {
		lines, more := r.Log().After(0)
		n := 0
		for _, l := range lines {
			if l.From == providerlog.FromStderr && strings.Contains(l.Text, "is up") {
				n++
			}
		}
		if n == 2 {
			return
		}
		select {
		case <-more:
		case <-deadline:
			t.Fatalf("the words of both processes are not there: %+v", lines)
		}
	}
}
