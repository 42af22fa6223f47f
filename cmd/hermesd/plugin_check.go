package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hermesd/hermesd/pluginsdk/plugintest/conformance"
	"github.com/hermesd/hermesd/pluginsdk/plugintest/wire"
	"github.com/hermesd/hermesd/runtime/pluginhost"
)

// program is how the commands for authors are told which plugin is meant.
type program struct {
	settings string
	env      []string
	pass     []string
}

func (p *program) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.settings, "settings", "", "the plugin's configuration: a JSON object, or @FILE")
	cmd.Flags().StringArrayVar(&p.env, "env", nil, "NAME=VALUE for the plugin's environment; may be repeated")
	cmd.Flags().StringArrayVar(&p.pass, "pass-env", nil, "NAME of a variable of this environment that the plugin may see; may be repeated")
}

// configuration reads --settings. It is nil without the flag.
func (p *program) configuration() (json.RawMessage, error) {
	raw := []byte(p.settings)
	if file, ok := strings.CutPrefix(p.settings, "@"); ok {
		var err error
		if raw, err = os.ReadFile(file); err != nil {
			return nil, fmt.Errorf("--settings: %w", err)
		}
	}
	if len(raw) == 0 {
		return nil, nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, fmt.Errorf("--settings must be a JSON object or @FILE: %w", err)
	}
	return raw, nil
}

// environment is what --env and --pass-env say.
func (p *program) environment() (map[string]string, error) {
	env := map[string]string{}
	for _, pair := range p.env {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--env %q must be NAME=VALUE", pair)
		}
		env[name] = value
	}
	for _, name := range p.pass {
		value, ok := os.LookupEnv(name)
		if !ok {
			return nil, fmt.Errorf("--pass-env: %s is not set here", name)
		}
		env[name] = value
	}
	return env, nil
}

func (c *cli) pluginCheckCommand() *cobra.Command {
	var (
		p                   program
		calls, slow, panics []string
		only                []string
		mtls                bool
	)
	cmd := &cobra.Command{
		Use:   "check BINARY [ARGUMENT...]",
		Short: "Check whether a plugin, in any language, keeps the contract",
		Long: `Starts the plugin several times, by the bare handshake and under hermesd's own host, and tries
what the contract asks for. No daemon is needed. Tools are called for real only if they are
read-only and give examples, or if --call names the call. The exit code is 1 if a check fails.`,
		Example: "  hermesd plugin check ./weather\n  hermesd plugin check --call 'search={\"query\":\"go\"}' node ./main.js",
		Args:    cobra.MinimumNArgs(1),
		RunE: run(func(cmd *cobra.Command, args []string) error {
			config, err := p.configuration()
			if err != nil {
				return err
			}
			env, err := p.environment()
			if err != nil {
				return err
			}
			opts := &conformance.Options{Config: config, Only: only, Hosted: &pluginhost.Options{
				Path: args[0], Args: args[1:], Env: env, MTLS: &mtls, StopGrace: 2 * time.Second,
			}}
			for _, list := range []struct {
				flag  string
				texts []string
				into  *[]conformance.Call
			}{{"call", calls, &opts.Calls}, {"slow", slow, &opts.Slow}, {"panic", panics, &opts.Panics}} {
				if *list.into, err = parseCalls(list.flag, list.texts); err != nil {
					return err
				}
			}
			return c.check(cmd.Context(), wire.Program{Path: args[0], Args: args[1:], Env: env}, opts)
		}),
	}
	cmd.Flags().SetInterspersed(false)
	p.flags(cmd)
	cmd.Flags().StringArrayVar(&calls, "call", nil, "TOOL=JSON: a call that may be made; may be repeated")
	cmd.Flags().StringArrayVar(&slow, "slow", nil, "TOOL=JSON: a call that runs until it is cancelled")
	cmd.Flags().StringArrayVar(&panics, "panic", nil, "TOOL=JSON: a call that makes the tool panic or throw")
	cmd.Flags().StringSliceVar(&only, "only", nil, "names of checks, separated by commas; those that they stand on run, too")
	cmd.Flags().BoolVar(&mtls, "mtls", true, "let the host use certificates; false is mtls = false in the plugin's block")
	return cmd
}

// parseCalls reads TOOL=JSON.
func parseCalls(flag string, texts []string) ([]conformance.Call, error) {
	var list []conformance.Call
	for _, text := range texts {
		name, args, ok := strings.Cut(text, "=")
		if !ok || !json.Valid([]byte(args)) {
			return nil, fmt.Errorf("--%s %q must be TOOL=JSON", flag, text)
		}
		list = append(list, conformance.Call{Tool: name, Arguments: json.RawMessage(args)})
	}
	return list, nil
}

func (c *cli) check(ctx context.Context, target wire.Program, opts *conformance.Options) error {
	if strings.ContainsRune(target.Path, filepath.Separator) {
		if _, err := os.Stat(target.Path); err != nil {
			return err
		}
	}
	report, err := conformance.Check(ctx, target, opts)
	if err != nil {
		return err
	}
	if c.json {
		err = c.printJSON(struct {
			OK bool `json:"ok"`
			*conformance.Report
		}{report.OK(), report})
	} else {
		_, err = report.WriteTo(c.out)
	}
	if err == nil && !report.OK() {
		err = &exitError{code: exitFailure, err: errors.New("the plugin does not keep the contract"), silent: true}
	}
	return err
}
