package hooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hermesd/hermesd/hooks/webhook"
)

// Runner is one kind of hook: it hands over an event and brings back the answer. Run returns when ctx has ended; a
// runner that does not is left behind, see [Chain].
type Runner interface {
	Run(ctx context.Context, event Event, payload json.RawMessage) (Answer, error)
	// Close lets go of what the runner keeps between runs.
	Close()
}

// Interceptor is a plugin that serves hooks.
type Interceptor interface {
	Intercept(ctx context.Context, payload json.RawMessage) (json.RawMessage, error)
}

type pluginRunner struct{ plugin Interceptor }

// NewPlugin makes a runner of a plugin's capability "hooks".
func NewPlugin(p Interceptor) (Runner, error) {
	if p == nil {
		return nil, errors.New("hook: no plugin")
	}
	return pluginRunner{p}, nil
}

func (r pluginRunner) Run(ctx context.Context, _ Event, payload json.RawMessage) (Answer, error) {
	raw, err := r.plugin.Intercept(ctx, payload)
	if err != nil {
		return Answer{}, fmt.Errorf("the plugin failed: %w", err)
	}
	return ParseAnswer(raw)
}

func (pluginRunner) Close() {}

type webhookRunner struct{ client *webhook.Client }

// NewWebhook makes a runner that posts events; see package webhook for the headers. An empty body of the answer allows.
func NewWebhook(opts *webhook.Options) (Runner, error) {
	c, err := webhook.New(opts)
	if err != nil {
		return nil, err
	}
	return webhookRunner{c}, nil
}

func (r webhookRunner) Run(ctx context.Context, event Event, payload json.RawMessage) (Answer, error) {
	reply, err := r.client.Post(ctx, string(event), payload)
	if err != nil {
		return Answer{}, err
	}
	return ParseAnswer(reply.Body)
}

func (r webhookRunner) Close() { r.client.Close() }
