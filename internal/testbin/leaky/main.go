// Leaky is a plugin that shows the secrets that it was given wherever it can say something, for the tests of masking.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"

	"github.com/hermesd/hermesd/pluginsdk"
)

// secrets are the environment variables that it shows.
func secrets() []string { return []string{os.Getenv("LEAKY_VALUE"), os.Getenv("LEAKY_CERT")} }

// spell writes the secrets in every way that a program may: as they are, as JSON, as JSON in JSON, quoted.
func spell() string {
	var text string
	for _, s := range secrets() {
		raw := inJSON(map[string]string{"token": s})
		text += fmt.Sprintf("plain %s json %s twice %s quoted %q\n", s, raw, inJSON(map[string]string{"body": raw}), s)
	}
	return text
}

func inJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// shout prints the secrets on standard output and error: as text, and as hclog's JSON, whose text and fields the host reads.
func shout() {
	line := inJSON(map[string]any{"@level": "error", "@message": "said " + spell(), "key": secrets()[0], secrets()[0]: 1, "nested": map[string]any{"all": secrets()}})
	for _, fd := range []int{1, 2} {
		if _, err := syscall.Write(fd, []byte(spell()+line+"\n")); err != nil {
			panic(err)
		}
	}
	slog.Error("said "+spell(), "key", secrets()[0], "error", errors.New(spell()), "all", secrets())
}

type input struct {
	Note string `json:"note,omitempty"`
}

func leak(ctx context.Context, _ input) (string, error) {
	shout()
	pluginsdk.Progress(ctx, 1, 2, spell())
	pluginsdk.Logger(ctx).Warn("said "+spell(), "all", secrets())
	err := pluginsdk.Errorf(pluginsdk.ToolFailed, "said %s", spell()).WithDetail("said %s", spell())
	err.Extra = map[string]any{"request": map[string]any{"headers": secrets(), "raw": spell()}}
	return "", err
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "die" {
		shout()
		os.Exit(3)
	}
	pluginsdk.Serve(&pluginsdk.Plugin{
		Name: "leaky", Version: "1.0.0", Description: "Shows its secrets.",
		Tools: []pluginsdk.Tool{
			pluginsdk.NewTool("leak", "Shows the secrets.", leak, &pluginsdk.ToolOptions{ReadOnly: true}),
			pluginsdk.NewTool("leak_unless_asked", "Shows the secrets, if a human agrees.", leak, nil),
			pluginsdk.NewTool("leak_locked", "Is not available, and shows the secrets in the reason.", leak, &pluginsdk.ToolOptions{
				Available: func(context.Context) error { return errors.New(spell()) },
			}),
		},
		Run: func(context.Context) error {
			shout()
			return errors.New(spell())
		},
	})
}
