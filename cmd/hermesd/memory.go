package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// gcPercent fits a daemon that decodes much and keeps little: the collector runs when four times the live heap has been
	// allocated, which halves the CPU of a call.
	gcPercent = 400
	// memoryFloor and memoryShare bound what that may take, in bytes and as a multiple of the live heap: a burst, such as
	// forty servers that list their tools at once, must not stay resident.
	memoryFloor = 72 << 20
	memoryShare = 6
	retune      = 10 * time.Second
)

// tuneMemory sets the garbage collector until ctx ends. GOGC and GOMEMLIMIT, where the operator sets them, hold instead.
func tuneMemory(ctx context.Context) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	tick := time.NewTicker(retune)
	defer tick.Stop()
	for {
		metrics.Read(live)
		debug.SetMemoryLimit(max(memoryFloor, memoryShare*int64(live[0].Value.Uint64())))
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
