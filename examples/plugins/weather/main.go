// Command weather is an example of a plugin that calls an HTTP API: typed configuration, a key from the environment that
// decides whether the tool is offered, and errors that say who is at fault.
//
// Without a base_url in its configuration it answers from sample data, so that it can be tried without a network.
package main

import (
	"context"
	"time"

	"github.com/hermesd/hermesd/pluginsdk"
)

// keyName is the environment variable with the key of the API.
const keyName = "OPENWEATHER_API_KEY"

type settings struct {
	BaseURL string `json:"base_url,omitempty" jsonschema:"where the API is, for example https://api.openweathermap.org; empty: sample data" format:"uri"`
	Timeout int    `json:"timeout,omitempty" jsonschema:"seconds that one request may take" default:"10" minimum:"1" maximum:"60"`
}

type input struct {
	City  string `json:"city" jsonschema:"name of the city" minLength:"1" maxLength:"100"`
	Units string `json:"units,omitempty" jsonschema:"unit system" enum:"metric,imperial" default:"metric"`
}

type output struct {
	City        string  `json:"city"`
	Temperature float64 `json:"temperature"`
	Unit        string  `json:"unit" enum:"°C,°F"`
	Conditions  string  `json:"conditions"`
}

// source is where weather comes from: the API or the sample data. Temperatures are in the units asked for.
type source interface {
	current(ctx context.Context, key, city, units string) (temperature float64, conditions string, err error)
}

// weather is the plugin's state.
type weather struct{ source source }

func (w *weather) configure(_ context.Context, s settings) error {
	if s.BaseURL == "" {
		w.source = samples{}
		return nil
	}
	api, err := newAPI(s.BaseURL, time.Duration(s.Timeout)*time.Second)
	if err != nil {
		return &pluginsdk.ConfigError{Path: "/base_url", Summary: err.Error(), Detail: "give an address such as https://api.openweathermap.org"}
	}
	w.source = api
	return nil
}

func (w *weather) current(ctx context.Context, in input) (output, error) {
	key, err := pluginsdk.Secrets(ctx).Get(keyName)
	if err != nil {
		return output{}, err
	}
	temperature, conditions, err := w.source.current(ctx, key, in.City, in.Units)
	if err != nil {
		return output{}, err
	}
	unit := "°C"
	if in.Units == "imperial" {
		unit = "°F"
	}
	return output{City: in.City, Temperature: temperature, Unit: unit, Conditions: conditions}, nil
}

func plugin() *pluginsdk.Plugin {
	w := &weather{}
	return &pluginsdk.Plugin{
		Name: "weather", Version: "1.0.0", License: "Apache-2.0", Description: "The weather in a city.",
		Config: pluginsdk.NewConfig(w.configure),
		Tools: []pluginsdk.Tool{
			pluginsdk.NewTool("weather", "Current weather for a city.", w.current, &pluginsdk.ToolOptions{
				Toolset: "weather", Title: "Current weather", ReadOnly: true, ParallelSafe: true,
				RequiresEnv: []string{keyName},
				Keywords:    []string{"temperature", "forecast", "rain", "sun", "climate"},
				Examples:    []any{input{City: "Oslo", Units: "metric"}},
			}),
		},
	}
}

func main() { pluginsdk.Serve(plugin()) }
