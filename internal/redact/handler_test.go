package redact_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/internal/redact"
)

type named struct{ name string }

func (n named) String() string { return "name=" + n.name }

type valuer struct{ text string }

func (v valuer) LogValue() slog.Value { return slog.GroupValue(slog.String("inner", v.text)) }

type panics struct{}

func (panics) String() string               { panic("hunter22\nx") }
func (panics) MarshalJSON() ([]byte, error) { panic("no") }

func TestNothingThatIsLoggedShowsASecret(t *testing.T) {
	secret := "hunter22\n\"x\\y\""
	for name, log := range map[string]func(*slog.Logger){
		"a message":             func(l *slog.Logger) { l.Info("it said " + secret) },
		"a text":                func(l *slog.Logger) { l.Info("m", "k", secret) },
		"a key":                 func(l *slog.Logger) { l.Info("m", secret, "v") },
		"an error":              func(l *slog.Logger) { l.Info("m", "error", fmt.Errorf("GET /: %w", errors.New(secret))) },
		"a quoting error":       func(l *slog.Logger) { l.Info("m", "error", fmt.Errorf("bad header %q", secret)) },
		"a Stringer":            func(l *slog.Logger) { l.Info("m", "who", named{secret}) },
		"a LogValuer":           func(l *slog.Logger) { l.Info("m", "who", valuer{secret}) },
		"a list":                func(l *slog.Logger) { l.Info("m", "args", []string{"--token", secret}) },
		"a map":                 func(l *slog.Logger) { l.Info("m", "env", map[string]any{"K": []any{secret}}) },
		"a pointer to a struct": func(l *slog.Logger) { l.Info("m", "v", &struct{ A *string }{&secret}) },
		"bytes":                 func(l *slog.Logger) { l.Info("m", "raw", []byte(secret)) },
		"JSON":                  func(l *slog.Logger) { l.Info("m", "raw", json.RawMessage(inJSON(secret))) },
		"JSON in a text":        func(l *slog.Logger) { l.Info("m", "raw", inJSON(inJSON(secret))) },
		"a group":               func(l *slog.Logger) { l.Info("m", slog.Group("g", slog.Group("h", "k", secret))) },
		"an attribute of the logger": func(l *slog.Logger) {
			l.With("k", secret, slog.Group("g", "k", secret)).WithGroup("open").With("k", secret).Info("m")
		},
		"a panic while it prints": func(l *slog.Logger) { l.Info("m", "v", panics{}) },
	} {
		for format, handler := range map[string]func(io.Writer) slog.Handler{
			"text": func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, nil) },
			"json": func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, nil) },
		} {
			t.Run(name+" as "+format, func(t *testing.T) {
				m := &redact.Masker{}
				m.Set("", secret, "hunter22")
				var b bytes.Buffer
				log(slog.New(m.Handler(handler(&b))))
				if strings.Contains(b.String(), "hunter22") || strings.Contains(b.String(), `x\`) || !strings.Contains(b.String(), "m") {
					t.Error(b.String())
				}
			})
		}
	}
}

func TestWhatHoldsNoSecretKeepsItsForm(t *testing.T) {
	say := func(l *slog.Logger) {
		l.With("provider", "p").WithGroup("g").Info("m", "n", 1, "list", []string{"a"}, "error", io.EOF, "raw", json.RawMessage(`{"a":1}`), slog.Group("h", "k", true))
	}
	noTime := &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}
	var plain, masked bytes.Buffer
	say(slog.New(slog.NewJSONHandler(&plain, noTime)))
	say(slog.New(redact.New("hunter22").Handler(slog.NewJSONHandler(&masked, noTime))))
	if plain.String() != masked.String() {
		t.Errorf("%s became %s", &plain, &masked)
	}
}
