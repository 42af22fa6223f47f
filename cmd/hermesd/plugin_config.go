package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"github.com/hermesd/hermesd/pluginsdk/plugintest/wire"
	"github.com/hermesd/hermesd/runtime/config"
	"github.com/hermesd/hermesd/runtime/schema"
	"github.com/hermesd/hermesd/runtime/tool"
)

// pluginCheckTime bounds what one plugin may take to judge its configuration.
const pluginCheckTime = 15 * time.Second

// checkPlugins starts every plugin for a moment, hands it its config block as the daemon would, and returns what it says,
// with the place of each key. Plugins get an empty state folder, so that a running daemon is not disturbed.
func checkPlugins(ctx context.Context, cfg *config.Config) (config.Diagnostics, error) {
	state, err := os.MkdirTemp("", "hermesd-check-")
	if err != nil {
		return config.Diagnostics{}, err
	}
	var faults []config.PluginFault
	for i := range cfg.Plugins {
		block := &cfg.Plugins[i]
		if !block.Enabled {
			continue
		}
		found, err := checkPlugin(ctx, cfg, block, filepath.Join(state, block.Name))
		if err != nil {
			found = append(found, config.PluginFault{Summary: "it cannot be asked about its configuration", Detail: err.Error()})
		}
		for _, f := range found {
			f.Plugin = block.Name
			faults = append(faults, f)
		}
	}
	return cfg.Diagnose(faults), os.RemoveAll(state)
}

func checkPlugin(ctx context.Context, cfg *config.Config, block *config.Plugin, state string) (faults []config.PluginFault, err error) {
	ctx, cancel := context.WithTimeout(ctx, pluginCheckTime)
	defer cancel()
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, err
	}
	env := map[string]string{}
	for _, name := range block.PassEnv {
		if v, ok := os.LookupEnv(name); ok {
			env[name] = v
		}
	}
	for name, v := range block.Env {
		env[name] = v
	}
	argv, err := argvOf(cfg, block)
	if err != nil {
		return nil, err
	}
	s, err := wire.Program{Path: argv[0], Args: argv[1:], Env: env}.Open(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	d, err := s.Describe(ctx, &pb.DescribeRequest{})
	if err != nil {
		return nil, err
	}
	settings := []byte(block.Config)
	if settings == nil {
		settings = []byte("{}")
	}
	if len(d.GetConfigSchema()) > 0 {
		if err := schema.Check(d.GetConfigSchema()); err != nil {
			return nil, err
		}
		fit := schema.NewCache(nil).Fit(&tool.Definition{Name: block.Name, InputSchema: d.GetConfigSchema()}, settings)
		for _, f := range fit.Faults {
			text := strings.Replace(f.Path, "arguments", "config", 1) + " " + f.Detail
			if f.Constraint == "additionalProperties" {
				text = strings.Replace(f.Path, "arguments", "config", 1) + " is no key that the plugin knows"
			}
			faults = append(faults, config.PluginFault{Pointer: schema.Pointer(f.Path), Summary: text})
		}
		if len(faults) > 0 {
			return faults, nil // as in the daemon, the plugin does not get what its schema refuses
		}
	}
	diags, err := s.Configure(ctx, settings, block.Name, state)
	if err != nil {
		return nil, err
	}
	for _, diag := range diags {
		faults = append(faults, config.PluginFault{
			Pointer: diag.GetPath(), Summary: diag.GetSummary(), Detail: diag.GetDetail(),
			Warning: diag.GetSeverity() == pb.Diagnostic_SEVERITY_WARNING,
		})
	}
	return faults, nil
}
