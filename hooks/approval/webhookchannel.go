package approval

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hermesd/hermesd/hooks/webhook"
)

// WebhookEvent is the event that a webhook gets for requests; the body is the JSON of a [WebhookBody].
const WebhookEvent = "approval"

// WebhookBody is what a webhook is asked.
type WebhookBody struct {
	Requests []WebhookRequest `json:"requests"`
}

// WebhookRequest is one request with the address at which it can be answered later; "" if there is none.
type WebhookRequest struct {
	Pending
	AnswerURL string `json:"answer_url,omitempty"`
}

// WebhookAnswers is the body of a webhook's answer. It is signed (see [webhook.Client.Signed]) and repeats what each
// answer is bound to. An empty body leaves the requests to their answer URLs.
type WebhookAnswers struct {
	Answers []WebhookAnswer `json:"answers"`
}

// WebhookAnswer is the answer to one request.
type WebhookAnswer struct {
	ID      string `json:"id"`
	Binding string `json:"binding"`
	Choice  Choice `json:"choice"`
	Reason  string `json:"reason,omitempty"`
}

type webhookChannel struct {
	client *webhook.Client
	link   func(*Pending) (string, error)
}

// NewWebhook makes the channel that posts requests to an address. The secret must be set: without one anybody could
// answer. link gives a request's answer URL, as [Broker.Link] does; nil gives none. The channel is also an io.Closer.
func NewWebhook(opts *webhook.Options, link func(*Pending) (string, error)) (Channel, error) {
	if opts.Secret == "" {
		return nil, errors.New("approvals: the webhook needs a secret, which signs its answers")
	}
	c, err := webhook.New(opts)
	if err != nil {
		return nil, fmt.Errorf("approvals: %w", err)
	}
	return &webhookChannel{c, link}, nil
}

func (*webhookChannel) Name() string    { return "webhook" }
func (*webhookChannel) Listening() bool { return true }

// Close lets idle connections go.
func (c *webhookChannel) Close() error {
	c.client.Close()
	return nil
}

func (c *webhookChannel) Ask(ctx context.Context, p *Prompt) (Reply, error) {
	var body WebhookBody
	deadline := p.Requests[0].Expires
	for i := range p.Requests {
		r := WebhookRequest{Pending: p.Requests[i]}
		if c.link != nil {
			var err error
			if r.AnswerURL, err = c.link(&r.Pending); err != nil {
				return nil, err
			}
		}
		if r.Expires.After(deadline) {
			deadline = r.Expires
		}
		body.Requests = append(body.Requests, r)
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	bounded, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	reply, err := c.client.Post(bounded, WebhookEvent, raw)
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(reply.Body)) == 0 {
		if c.link == nil {
			return nil, errors.New("the webhook answered nothing and has no URL to answer at later")
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if !c.client.Signed(reply) {
		return nil, fmt.Errorf("the webhook's answer is not signed with the secret (header %s)", webhook.SignatureHeader)
	}
	return parseAnswers(p.Requests, reply.Body)
}

func parseAnswers(requests []Pending, body []byte) (Reply, error) {
	var a WebhookAnswers
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, fmt.Errorf("the webhook's answer cannot be read: %w", err)
	}
	bindings := map[string]string{}
	for i := range requests {
		bindings[requests[i].ID] = requests[i].Binding
	}
	reply := Reply{}
	for _, one := range a.Answers {
		if b, ok := bindings[one.ID]; !ok || b != one.Binding {
			return nil, fmt.Errorf("the webhook answered about something that it was not asked (%.40q)", one.ID)
		}
		reply[one.ID] = Decision{Choice: one.Choice, Reason: one.Reason}
	}
	return reply, nil
}
