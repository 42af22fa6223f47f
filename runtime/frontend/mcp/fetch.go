package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
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
	r, ok := result.(*sdk.ReadResourceResult)
	switch {
	case err != nil || !ok:
		return result, err
	case f.raw != nil:
		return &rawResult{r, f.raw}, nil
	case r.NeedsInput():
		return &questionResult{r, r.InputRequests, r.RequestState}, nil
	}
	return r, nil
}

func (a *agentServer) get(ctx context.Context, next sdk.MethodHandler, req *sdk.GetPromptRequest) (sdk.Result, error) {
	f := &fetched{get: req}
	params := *req.Params
	params.Name = dispatcher
	result, err := next(context.WithValue(ctx, fetchedKey{}, f), provider.GetPrompt, &sdk.GetPromptRequest{Session: req.Session, Params: &params, Extra: req.Extra})
	r, ok := result.(*sdk.GetPromptResult)
	switch {
	case err != nil || !ok:
		return result, err
	case f.raw != nil:
		return &rawResult{r, f.raw}, nil
	case r.NeedsInput():
		return &questionResult{r, r.InputRequests, r.RequestState}, nil
	}
	return r, nil
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
	params, err := uriParams(ok, at.own, p.URI)
	if err != nil {
		return nil, err
	}
	r := newReach(ctx, a, f.read, p.GetProgressToken(), roundOf(digestOf(provider.ReadResource, p.URI, nil), p.RequestState, p.InputResponses))
	raw, meanwhile, err := fetch(ctx, a, r, f.read, &frontend.Fetch{
		Library: at.library, Unknown: sdk.ResourceNotFoundError(p.URI), Method: provider.ReadResource, Params: params,
		Do: at.ask(provider.ReadResource), Suspendable: r.suspendable(), Resume: resumed(p.RequestState, p.InputResponses),
	})
	if meanwhile != nil || err != nil {
		return meanwhile.ofResource(), err
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
	params := map[string]any{"name": at.own}
	if !ok {
		params["name"] = p.Name
	}
	if p.Arguments != nil {
		params["arguments"] = p.Arguments
	}
	encoded, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	r := newReach(ctx, a, f.get, p.GetProgressToken(), roundOf(digestOf(provider.GetPrompt, p.Name, encoded), p.RequestState, p.InputResponses))
	raw, meanwhile, err := fetch(ctx, a, r, f.get, &frontend.Fetch{
		Library: at.library, Unknown: unknownName("prompt %q; list the prompts again", p.Name), Method: provider.GetPrompt, Params: encoded,
		Do: at.ask(provider.GetPrompt), Suspendable: r.suspendable(), Resume: resumed(p.RequestState, p.InputResponses),
	})
	if meanwhile != nil || err != nil {
		return meanwhile.ofPrompt(), err
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
		if at, ok = a.shelves().prompts[ref.Name]; ok {
			ref.Name = at.own
		}
	} else if at, ok = a.shelves().template(ref.URI); ok {
		ref.URI = at.own
	}
	p.Ref, p.Meta = &ref, nil
	encoded, err := json.Marshal(&p)
	if err != nil {
		return nil, err
	}
	r := newReach(ctx, a, req, nil, round{})
	r.askNothing()
	raw, _, err := fetch(ctx, a, r, req, &frontend.Fetch{
		Library: at.library, Unknown: unknownName("reference %q; list prompts and resource templates again", cmp.Or(ref.Name, ref.URI)),
		Method: provider.Complete, Params: encoded, Do: at.ask(provider.Complete),
	})
	if err != nil {
		return nil, err
	}
	result := &sdk.CompleteResult{}
	if err := json.Unmarshal(raw, result); err != nil {
		return nil, fmt.Errorf("the server's completion cannot be read: %w", err)
	}
	return result, nil
}

// uriParams are the params of a method that names a resource: by the server's own URI, or as it was asked for if no
// server is known.
func uriParams(known bool, own, asked string) (json.RawMessage, error) {
	if !known {
		own = asked
	}
	return json.Marshal(map[string]string{"uri": own})
}

func unknownName(format, name string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown "+format, name)}
}

// roundOf is what a request continues. A state of the approval broker continues nothing: the request is made anew.
func roundOf(digest [sha256.Size]byte, state string, answers sdk.InputResponseMap) round {
	if sealed(state) {
		state = ""
	}
	return round{digest, state, answers}
}

// suspendable reports whether the client brings a request back with a human's approval.
func (r *reach) suspendable() bool { return r.newer() && r.showsForms() }

// askNothing is for methods whose results can hold no question, for clients that could be asked in no other way.
func (r *reach) askNothing() {
	if r.newer() {
		r.caps = &sdk.ClientCapabilities{}
	}
}

// ask makes the request to the library. A hook may have changed what is asked for.
func (p place) ask(method string) func(context.Context, *tool.Call, *provider.Host) (json.RawMessage, error) {
	return func(ctx context.Context, call *tool.Call, host *provider.Host) (json.RawMessage, error) {
		var named struct{ URI, Name string }
		if err := json.Unmarshal(call.Arguments, &named); err != nil {
			return nil, tool.Errorf(tool.InvalidArguments, "%s cannot be asked for: %w", method, err)
		}
		return p.library.Fetch(ctx, &provider.Fetch{
			Method: method, Name: cmp.Or(named.URI, named.Name, p.own), Namespace: p.space, Params: call.Arguments,
			Agent: call.Agent, Session: call.Session, Host: host,
		})
	}
}

// delivery is how a request of a library ended: with its answer, or with what a human is to be asked before it is made.
type delivery struct{ raw, ask json.RawMessage }

// fetch asks a library as the agent whose request it is.
func fetch[P sdk.Params](ctx context.Context, a *agentServer, r *reach, req *sdk.ServerRequest[P], f *frontend.Fetch) (json.RawMessage, *interim, error) {
	defer r.close()
	f.Agent = a.agent.Load()
	f.Session, f.TraceParent = sessionOf(a, f.Agent, req)
	done, meanwhile := serve(ctx, a, r, func(ctx context.Context, host *provider.Host) (delivery, error) {
		f.Host = host
		raw, ask, err := a.owner.options.Desk.Fetch(ctx, f)
		return delivery{raw, ask}, err
	})
	if done.err != nil || done.value.ask == nil {
		return done.value.raw, meanwhile, wireError(done.err)
	}
	meanwhile, err := approvalQuestion(done.value.ask)
	if err != nil {
		return nil, nil, wireError(err)
	}
	return nil, meanwhile, nil
}

func (i *interim) ofResource() *sdk.ReadResourceResult {
	if i == nil {
		return nil
	}
	return &sdk.ReadResourceResult{InputRequests: i.requests, RequestState: i.state}
}

func (i *interim) ofPrompt() *sdk.GetPromptResult {
	if i == nil {
		return nil
	}
	return &sdk.GetPromptResult{InputRequests: i.requests, RequestState: i.state}
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
