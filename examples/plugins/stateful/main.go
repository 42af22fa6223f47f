// Command stateful is an example of a plugin that keeps something between calls: counters in the host's store, which
// survive restarts, and a scratch value in memory, which does not. Both belong to the agent that calls; no agent sees
// another's.
package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/hermesd/hermesd/pluginsdk"
)

type counter struct {
	Name string `json:"name" jsonschema:"name of the counter" pattern:"^[a-z0-9-]{1,64}$"`
}

type amount struct {
	counter
	By int `json:"by,omitempty" jsonschema:"how much to add; negative takes away" default:"1"`
}

type value struct {
	Value int `json:"value"`
}

type text struct {
	Text string `json:"text" maxLength:"10000"`
}

// keeper is the plugin's state.
type keeper struct {
	store pluginsdk.Store

	mu      sync.Mutex        // of the counters, too: reading and writing one must not be torn apart
	scratch map[string]string // by agent
}

// key is where a counter of the calling agent lies. Agents' names have no slash.
func key(ctx context.Context, name string) string {
	return "counter/" + pluginsdk.CurrentCall(ctx).Agent + "/" + name
}

func (k *keeper) read(ctx context.Context, name string) (int, error) {
	raw, found, err := k.store.Get(ctx, key(ctx, name))
	if err != nil || !found {
		return 0, err
	}
	n, err := strconv.Atoi(string(raw))
	if err != nil {
		return 0, fmt.Errorf("the counter %q is damaged: %w", name, err)
	}
	return n, nil
}

func (k *keeper) add(ctx context.Context, in amount) (value, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n, err := k.read(ctx, in.Name)
	if err != nil {
		return value{}, err
	}
	n += in.By
	return value{n}, k.store.Put(ctx, key(ctx, in.Name), []byte(strconv.Itoa(n)))
}

func (k *keeper) get(ctx context.Context, in counter) (value, error) {
	n, err := k.read(ctx, in.Name)
	return value{n}, err
}

func (k *keeper) write(ctx context.Context, in text) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.scratch[pluginsdk.CurrentCall(ctx).Agent] = in.Text
	return "kept until the plugin restarts", nil
}

func (k *keeper) recall(ctx context.Context, _ struct{}) (text, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return text{k.scratch[pluginsdk.CurrentCall(ctx).Agent]}, nil
}

func plugin() *pluginsdk.Plugin {
	k := &keeper{scratch: map[string]string{}}
	here := new(false)
	return &pluginsdk.Plugin{
		Name: "stateful", Version: "1.0.0", License: "Apache-2.0", Description: "Counters and a scratch pad, for each agent its own.",
		Capabilities: []string{pluginsdk.CanStore},
		Tools: []pluginsdk.Tool{
			pluginsdk.NewTool("counter_add", "Add to a counter of your own and say what it is now.", k.add,
				&pluginsdk.ToolOptions{Toolset: "stateful", Destructive: new(false), OpenWorld: here}),
			pluginsdk.NewTool("counter_get", "Say what a counter of your own is.", k.get,
				&pluginsdk.ToolOptions{Toolset: "stateful", ReadOnly: true, ParallelSafe: true, OpenWorld: here, Examples: []any{counter{Name: "visits"}}}),
			pluginsdk.NewTool("scratch_write", "Replace your scratch pad.", k.write,
				&pluginsdk.ToolOptions{Toolset: "stateful", Idempotent: true, OpenWorld: here}),
			pluginsdk.NewTool("scratch_read", "Read your scratch pad.", k.recall,
				&pluginsdk.ToolOptions{Toolset: "stateful", ReadOnly: true, ParallelSafe: true, OpenWorld: here, Examples: []any{struct{}{}}}),
		},
	}
}

func main() { pluginsdk.Serve(plugin()) }
