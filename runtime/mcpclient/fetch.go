package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/hermesd/hermesd/internal/rawjson"
	"github.com/hermesd/hermesd/internal/redact"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// Fetch implements [provider.Library]. What was not sent, because the connection broke first, is sent once more.
func (p *Provider) Fetch(ctx context.Context, req *provider.Fetch) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, p.opts.Timeout)
	defer cancel()
	talk := &conversation{}
	raw, err := p.fetch(ctx, req, talk)
	if errors.Is(err, &tool.Error{Code: tool.NotSent}) && ctx.Err() == nil {
		raw, err = p.fetch(ctx, req, talk)
	}
	return raw, err
}

func (p *Provider) fetch(ctx context.Context, req *provider.Fetch, talk *conversation) (json.RawMessage, error) {
	s, release, err := p.supervisor.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	r := &request{
		method: req.Method, host: req.Host, of: &tool.Call{Agent: req.Agent, Session: req.Session},
		params: func(b *bytes.Buffer) error { return writeMembers(b, req.Params) },
	}
	if req.Method != provider.Complete {
		r.name = req.Name // completion/complete names nothing in a header
	}
	before := s.line.heard.Load()
	o, err := s.converse(ctx, r, talk, func(raw json.RawMessage) (*outcome, error) { return readFetched(raw, req.Namespace) })
	if err == nil {
		p.succeeded()
		return o.raw, nil
	}
	var refused *rpcError
	if errors.As(err, &refused) {
		p.succeeded()
		return nil, &provider.Refusal{Code: refused.code, Message: bounded(refused.message, maxAgentText), Data: redact.JSON(refused.data, s.p.opts.Mask)}
	}
	return nil, p.failed(ctx, s, err, s.line.heard.Load() == before)
}

// writeMembers writes the members of an object, without braces.
func writeMembers(b *bytes.Buffer, object json.RawMessage) error {
	if rawjson.IsNull(object) {
		return nil
	}
	before := b.Len()
	if err := json.Compact(b, object); err != nil {
		return tool.Errorf(tool.InvalidArguments, "the params are not JSON: %w", err)
	}
	whole := b.Bytes()[before:]
	if len(whole) < 2 || whole[0] != '{' {
		return tool.Errorf(tool.InvalidArguments, "the params are no JSON object")
	}
	inner := copy(whole, whole[1:len(whole)-1])
	b.Truncate(before + inner)
	return nil
}

// readFetched takes an answer as it is, but for what concerns the connection alone, and with space before the URIs of
// contents.
func readFetched(raw json.RawMessage, space string) (*outcome, error) {
	o := &outcome{}
	asked, err := o.readQuestion(raw)
	if err != nil || asked {
		return o, err
	}
	var b bytes.Buffer
	b.WriteByte('{')
	isTask := false
	if !rawjson.Members(raw, func(key string, value json.RawMessage) {
		switch key {
		case "resultType":
			isTask = string(value) == `"task"`
			return
		case "ttlMs", "cacheScope":
			return
		case "_meta":
			if value = withoutReserved(value); value == nil {
				return
			}
		case "contents":
			if space != "" {
				value = inNamespace(value, space)
			}
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		writeString(&b, key)
		b.WriteByte(':')
		b.Write(value)
	}) {
		return nil, errors.New("the result is no JSON object")
	}
	if isTask {
		return nil, errors.New("the result is a task, which only calls of tools may become")
	}
	b.WriteByte('}')
	o.raw = b.Bytes()
	return o, nil
}

// inNamespace is an array of resource contents with space before each URI.
func inNamespace(contents json.RawMessage, space string) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('[')
	if !rawjson.Elements(contents, func(one json.RawMessage) {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		own := ""
		rawjson.Members(one, func(key string, value json.RawMessage) {
			if key == "uri" {
				own, _ = rawjson.String(value)
			}
		})
		b.Write(withMember(one, "uri", space+own))
	}) {
		return contents
	}
	b.WriteByte(']')
	return b.Bytes()
}
