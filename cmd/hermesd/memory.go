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
	// allocated, which takes a fifth off the CPU of a call.
	gcPercent = 400
	// memoryFloor and memoryShare bound what that may take, in bytes and as a multiple of the live heap, under load.
	memoryFloor = 72 << 20
	memoryShare = 4
	// What a burst took, such as forty servers that list their tools at once, goes back to the system as soon as less than
	// quiet bytes were allocated in one interval while more than keep bytes are held.
	retune = 2 * time.Second
	quiet  = 8 << 20
	keep   = 64 << 20
)

// tuneMemory sets the garbage collector until ctx ends. GOGC and GOMEMLIMIT, where the operator sets them, hold instead.
func tuneMemory(ctx context.Context) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"},
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
	}
	tick := time.NewTicker(retune)
	defer tick.Stop()
	for before := uint64(0); ; {
		metrics.Read(samples)
		live, allocated := samples[0].Value.Uint64(), samples[1].Value.Uint64()
		held := samples[2].Value.Uint64() - samples[3].Value.Uint64()
		debug.SetMemoryLimit(max(memoryFloor, memoryShare*int64(live)))
		if allocated-before < quiet && held > max(keep, 3*live) {
			debug.FreeOSMemory()
		}
		before = allocated
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
