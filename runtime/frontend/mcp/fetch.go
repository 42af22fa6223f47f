package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/runtime/provider"
)

// fetched carries a request for a resource or a prompt past the SDK, and the answer's bytes back, as [slot] does for
// calls.
type fetched struct {
	read *sdk.ReadResourceRequest
	get  *sdk.GetPromptRequest
	raw  json.RawMessage // the library's answer; nil when the SDK's own result says it all
}

type fetchedKey struct{}

func (a *agentServer) read(ctx context.Context, next sdk.MethodHandler, req *sdk.ReadResourceRequest) (sdk.Result, error) {
	f := &fetched{read: req}
	params := *req.Params
	params.URI = dispatcherURI
	result, err := next(context.WithValue(ctx, fetchedKey{}, f), provider.ReadResource, &sdk.ReadResourceRequest{Session: req.Session, Params: &params, Extra: req.Extra})
	if r, ok := result.(*sdk.ReadResourceResult); ok && err == nil && f.raw != nil {
		return &rawResult{r, f.raw}, nil
	}
	return result, err
}

func (a *agentServer) get(ctx context.Context, next sdk.MethodHandler, req *sdk.GetPromptRequest) (sdk.Result, error) {
	f := &fetched{get: req}
	params := *req.Params
	params.Name = dispatcher
	result, err := next(context.WithValue(ctx, fetchedKey{}, f), provider.GetPrompt, &sdk.GetPromptRequest{Session: req.Session, Params: &params, Extra: req.Extra})
	if r, ok := result.(*sdk.GetPromptResult); ok && err == nil && f.raw != nil {
		return &rawResult{r, f.raw}, nil
	}
	return result, err
}

var errPastMiddleware = errors.New("a request that did not come through the middleware")

// dispatchRead is the dispatcher resource.
func (a *agentServer) dispatchRead(ctx context.Context, _ *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	f, ok := ctx.Value(fetchedKey{}).(*fetched)
	if !ok || f.read == nil {
		return nil, errPastMiddleware
	}
	p := f.read.Params
	at, ok := a.shelves().resource(p.URI)
	if !ok {
		return nil, sdk.ResourceNotFoundError(p.URI)
	}
	params, err := json.Marshal(map[string]string{"uri": at.own})
	if err != nil {
		return nil, err
	}
	r := newReach(ctx, a, f.read, p.GetProgressToken(), round{digestOf(provider.ReadResource, p.URI, nil), p.RequestState, p.InputResponses})
	raw, question, err := fetch(ctx, a, r, f.read, at, &provider.Fetch{Method: provider.ReadResource, Params: params})
	if question != nil || err != nil {
		return question.ofResource(), err
	}
	f.raw = raw
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{}}, nil
}

// dispatchPrompt is the dispatcher prompt.
func (a *agentServer) dispatchPrompt(ctx context.Context, _ *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
	f, ok := ctx.Value(fetchedKey{}).(*fetched)
	if !ok || f.get == nil {
		return nil, errPastMiddleware
	}
	p := f.get.Params
	at, ok := a.shelves().prompts[p.Name]
	if !ok {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown prompt %q; list the prompts again", p.Name)}
	}
	params := map[string]any{"name": at.own}
	if p.Arguments != nil {
		params["arguments"] = p.Arguments
	}
	encoded, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	r := newReach(ctx, a, f.get, p.GetProgressToken(), round{digestOf(provider.GetPrompt, p.Name, encoded), p.RequestState, p.InputResponses})
	raw, question, err := fetch(ctx, a, r, f.get, at, &provider.Fetch{Method: provider.GetPrompt, Params: encoded})
	if question != nil || err != nil {
		return question.ofPrompt(), err
	}
	f.raw = raw
	return &sdk.GetPromptResult{}, nil
}

// complete answers completion/complete for an argument of a prompt or of a template.
func (a *agentServer) complete(ctx context.Context, req *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
	p := *req.Params
	ref := *p.Ref
	var at place
	var ok bool
	if ref.Type == "ref/prompt" {
		at, ok = a.shelves().prompts[ref.Name]
		ref.Name = at.own
	} else {
		at, ok = a.shelves().template(ref.URI)
		ref.URI = at.own
	}
	if !ok {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown reference %q; list prompts and resource templates again", cmp.Or(p.Ref.Name, p.Ref.URI))}
	}
	p.Ref, p.Meta = &ref, nil
	encoded, err := json.Marshal(&p)
	if err != nil {
		return nil, err
	}
	r := newReach(ctx, a, req, nil, round{})
	raw, _, err := fetch(ctx, a, r, req, at, &provider.Fetch{Method: provider.Complete, Params: encoded})
	if err != nil {
		return nil, err
	}
	result := &sdk.CompleteResult{}
	if err := json.Unmarshal(raw, result); err != nil {
		return nil, fmt.Errorf("the server's completion cannot be read: %w", err)
	}
	return result, nil
}

// fetch asks a library as the agent whose request it is.
func fetch[P sdk.Params](ctx context.Context, a *agentServer, r *reach, req *sdk.ServerRequest[P], at place, f *provider.Fetch) (json.RawMessage, *question, error) {
	defer r.close()
	agent := a.agent.Load()
	f.Name, f.Namespace, f.Agent = at.own, at.space, agent.Name
	f.Session, _ = sessionOf(a, agent, req)
	done, question := serve(ctx, a, r, func(ctx context.Context, host *provider.Host) (json.RawMessage, error) {
		request := *f
		request.Host = host
		return at.library.Fetch(ctx, &request)
	})
	return done.value, question, wireError(done.err)
}

func (q *question) ofResource() *sdk.ReadResourceResult {
	if q == nil {
		return nil
	}
	return &sdk.ReadResourceResult{InputRequests: q.requests, RequestState: q.state}
}

func (q *question) ofPrompt() *sdk.GetPromptResult {
	if q == nil {
		return nil
	}
	return &sdk.GetPromptResult{InputRequests: q.requests, RequestState: q.state}
}

// rawResult is a result whose parts are a library's bytes; what the SDK adds to results stands beside them.
type rawResult struct {
	sdk.Result
	raw json.RawMessage
}

// MarshalJSON implements [json.Marshaler].
func (r *rawResult) MarshalJSON() ([]byte, error) {
	added, err := json.Marshal(r.Result)
	if err != nil {
		return nil, err
	}
	var keys, own map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(added, &keys), json.Unmarshal(r.raw, &own)); err != nil {
		return nil, err
	}
	for key, value := range own {
		if key != "_meta" || keys[key] == nil {
			keys[key] = value
			continue
		}
		if keys[key], err = mergeObjects(value, keys[key]); err != nil {
			return nil, err
		}
	}
	return json.Marshal(keys)
}

// mergeObjects is a with what b has; b's values win.
func mergeObjects(a, b json.RawMessage) (json.RawMessage, error) {
	var into map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(a, &into), json.Unmarshal(b, &into)); err != nil {
		return nil, err
	}
	return json.Marshal(into)
}
