package plugintest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/pluginsdk"
)

// The flag is this package's only state: package testing reads flags before any test runs, so that it has to be there by
// then. A test package that wants to know it, too, asks flag.Lookup("update").
var update = flag.Bool("update", false, "write the golden files of plugintest anew")

// Case is a conversation with a plugin: steps that are taken one after the other, on one instance.
type Case struct {
	Name  string // the sentence that it proves
	Steps []Step
}

// Step is one call and what is expected of it. With none of the expectations set, the call must give a result.
type Step struct {
	Tool  string
	Args  any    // as [Session.Call] takes them
	Agent string // who calls; "" is "agent-1"

	// Want is the structured result, or the text where there is none: a value that marshals to the JSON that is expected,
	// or a string for a text.
	Want any
	// Contains is a part of the text.
	Contains string
	// Error is the code of the error that is expected, and Pointer the argument at fault.
	Error   pluginsdk.Code
	Pointer string
	// Golden keeps the whole outcome in testdata/NAME.golden.json and compares with it from then on. `go test -update`
	// writes the files.
	Golden string
	// Check looks at the outcome further.
	Check func(testing.TB, *Outcome)
}

// Run takes the steps of the cases, each case as a subtest, on this session.
func (s *Session) Run(t *testing.T, cases ...Case) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			for i := range c.Steps {
				s.step(t, fmt.Sprintf("step %d (%s)", i+1, c.Steps[i].Tool), &c.Steps[i])
			}
		})
	}
}

func (s *Session) step(t *testing.T, name string, step *Step) {
	t.Helper()
	agent := step.Agent
	if agent == "" {
		agent = defaultAgent
	}
	o := s.CallAs(t, agent, step.Tool, step.Args)
	if o.Code() != step.Error {
		t.Fatalf("%s: code %q (%s), want %q", name, o.Code(), message(o), step.Error)
	}
	if step.Pointer != "" && o.Err.Pointer != step.Pointer {
		t.Errorf("%s: the argument at fault is %q, want %q", name, o.Err.Pointer, step.Pointer)
	}
	if step.Want != nil {
		if err := compare(o, step.Want); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if text := o.Text() + message(o); !strings.Contains(text, step.Contains) {
		t.Errorf("%s: %q does not contain %q", name, text, step.Contains)
	}
	if step.Golden != "" {
		if err := golden(o, filepath.Join("testdata", step.Golden+".golden.json")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if step.Check != nil {
		step.Check(t, o)
	}
}

func message(o *Outcome) string {
	if o.Err == nil {
		return ""
	}
	return o.Err.Message
}

// compare holds a result against what is wanted.
func compare(o *Outcome, want any) error {
	if text, ok := want.(string); ok {
		if o.Text() != text {
			return fmt.Errorf("the text is\n%s\nwant\n%s", o.Text(), text)
		}
		return nil
	}
	wanted, err := json.Marshal(want)
	if err != nil {
		return fmt.Errorf("the case's Want does not marshal: %w", err)
	}
	got := o.Structured
	if got == nil {
		got = json.RawMessage(o.Text())
	}
	a, errA := value(got)
	b, errB := value(wanted)
	if errA != nil || errB != nil {
		return fmt.Errorf("the result %s is no JSON, want %s", got, wanted)
	}
	if !reflect.DeepEqual(a, b) {
		return fmt.Errorf("the result is\n%s\nwant\n%s", got, wanted)
	}
	return nil
}

// value decodes JSON so that numbers keep their digits.
func value(raw []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// golden compares an outcome with the file that keeps it, or writes the file.
func golden(o *Outcome, path string) error {
	var kept struct {
		Content    []pluginsdk.Content `json:"content,omitempty"`
		Structured json.RawMessage     `json:"structured,omitempty"`
		IsError    bool                `json:"is_error,omitempty"`
		Code       pluginsdk.Code      `json:"code,omitempty"`
		Message    string              `json:"message,omitempty"`
		Pointer    string              `json:"pointer,omitempty"`
	}
	kept.Content, kept.Structured, kept.IsError = o.Content, o.Structured, o.IsError
	if o.Err != nil {
		kept.Code, kept.Message, kept.Pointer = o.Err.Code, o.Err.Message, o.Err.Pointer
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(kept); err != nil {
		return err
	}
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return os.WriteFile(path, b.Bytes(), 0o644)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("%w; write it with: go test -update", err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		return fmt.Errorf("%s has\n%s\nand the outcome is\n%s\nwrite it anew with: go test -update", path, want, &b)
	}
	return nil
}
