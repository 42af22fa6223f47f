// Package pluginsdk is all that the author of a hermesd plugin in Go imports.
//
// A plugin is a program whose main calls [Serve] with a [Plugin]. Each of its tools is a Go function with a typed input
// and output, from which [NewTool] makes the JSON Schema that agents see:
//
//	type Input struct {
//		City  string `json:"city" jsonschema:"name of the city"`
//		Units string `json:"units,omitempty" jsonschema:"unit system" enum:"metric,imperial"`
//	}
//	type Output struct {
//		Temperature float64 `json:"temperature"`
//	}
//
//	func current(ctx context.Context, in Input) (Output, error) { … }
//
//	func main() {
//		pluginsdk.Serve(&pluginsdk.Plugin{
//			Name: "weather", Version: "1.0.0",
//			Tools: []pluginsdk.Tool{
//				pluginsdk.NewTool("weather", "Current weather for a city.", current, &pluginsdk.ToolOptions{ReadOnly: true}),
//			},
//		})
//	}
//
// The daemon starts the program and speaks hermes.plugin.v1 with it. Started by hand, the same program answers help,
// describe, docs and invoke, so that a tool can be tried without a daemon.
//
// # Calls
//
// A handler is an ordinary function with a context. The host runs calls at the same time, except calls of one tool that
// is not ParallelSafe; the SDK itself does not serialise them. The context ends when the caller cancels, when the deadline
// passes and when the host goes. [CurrentCall] tells who calls: what a plugin keeps between calls belongs to that agent
// and must not be shown to another. [Progress] and [Logger] reach the caller while the call runs, [AskHuman], [CallTool],
// [Sample] and [Store] ask something of the host.
//
// # Errors
//
// A plain error becomes the code "tool_failed" with its text, which the model reads: say what happened and what to do
// next. An [*Error] carries more, see [Errorf]. A panic in a handler becomes the code "plugin_panic" and the process
// lives on; a panic in a goroutine that a handler starts ends the process, as in every Go program.
//
// # Output
//
// Whatever the plugin prints on stdout goes to stderr, so that it cannot break the protocol. The default [log/slog]
// logger and the log package write to the daemon's log.
package pluginsdk
