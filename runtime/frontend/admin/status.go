package admin

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/hermesd/hermesd/runtime/disclosure"
	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// localAgent is who the command line is, where it names no agent.
const localAgent = "local"

// agent finds an agent by name; "" is the local one.
func (s *Server) agent(name string) (*disclosure.Agent, error) {
	if agent, ok := s.options.Desk.Agents.ByName(name); ok {
		return agent, nil
	}
	all := strings.Join(s.options.Daemon.Facts().Agents, ", ")
	if name != "" {
		return nil, tool.Errorf(tool.BadRequest, "there is no agent %q; there is: %s", name, all)
	}
	if agent, ok := s.options.Desk.Agents.ByName(localAgent); ok {
		return agent, nil
	}
	return nil, tool.Errorf(tool.BadRequest, "name an agent with --agent; there is: %s", all)
}

// Status implements hermes.admin.v1.
func (s *Server) Status(context.Context, *adminpb.StatusRequest) (*adminpb.StatusResponse, error) {
	facts := s.options.Daemon.Facts()
	snapshot := s.options.Catalog.Snapshot()
	r := &adminpb.StatusResponse{
		Version: facts.Version, Pid: int32(os.Getpid()), Started: timestamp(facts.Started),
		ConfigPath: facts.ConfigPath, StateDir: facts.StateDir,
		Generation: snapshot.Generation, Tools: int32(len(snapshot.Entries())),
	}
	if facts.Blocked != nil {
		r.Blocked = s.shown(facts.Blocked.Error())
	}
	for _, a := range facts.Addresses {
		r.Addresses = append(r.Addresses, &adminpb.Address{Name: a.Name, Address: a.Address})
	}
	for _, p := range s.options.Daemon.Providers() {
		r.Providers++
		if p.Offer().Status.State == provider.Ready {
			r.ProvidersReady++
		}
	}
	for _, name := range facts.Agents {
		if agent, ok := s.options.Desk.Agents.ByName(name); ok {
			a := s.options.Desk.Disclosure.For(agent)
			r.Agents = append(r.Agents, &adminpb.AgentStatus{
				Name: name, Tier: int32(a.Tier), Eager: int32(a.Stats.Eager), Deferred: int32(a.Stats.Deferred),
				AllTokens: int32(a.Stats.AllTokens), ShownTokens: int32(a.Stats.ShownTokens),
			})
		}
	}
	for _, c := range snapshot.Collisions() {
		origins := make([]string, len(c.Refused))
		for i, o := range c.Refused {
			origins[i] = o.String()
		}
		r.Collisions = append(r.Collisions, &adminpb.Collision{
			Name: c.Name, Text: fmt.Sprintf("refused for %s: %s", strings.Join(origins, " and "), c.Help()),
		})
	}
	return r, nil
}

// ListProviders implements hermes.admin.v1.
func (s *Server) ListProviders(context.Context, *adminpb.ListProvidersRequest) (*adminpb.ListProvidersResponse, error) {
	r := &adminpb.ListProvidersResponse{}
	for _, p := range s.options.Daemon.Providers() {
		r.Providers = append(r.Providers, s.statusOf(p))
	}
	return r, nil
}

// InspectProvider implements hermes.admin.v1.
func (s *Server) InspectProvider(_ context.Context, req *adminpb.InspectProviderRequest) (*adminpb.InspectProviderResponse, error) {
	p, err := s.find(req.GetName())
	if err != nil {
		return nil, err
	}
	detail, err := tool.JSON(s.options.Daemon.InspectProvider(req.GetName()))
	if err != nil {
		return nil, fmt.Errorf("inspecting %s: %w", req.GetName(), err)
	}
	r := &adminpb.InspectProviderResponse{Status: s.statusOf(p), Detail: detail}
	offer, refusals := p.Offer(), s.options.Catalog.Snapshot().Refusals(p)
	for i := range offer.Tools {
		d := &offer.Tools[i]
		t := s.toolOf(d)
		word, reason := condition(offer, d.Name)
		if why, ok := refusals[d.Name]; ok {
			word, reason = "refused", why
		}
		t.Condition, t.Reason = word, s.shown(reason)
		r.Tools = append(r.Tools, t)
	}
	return r, nil
}

func condition(o *provider.Offer, name tool.Name) (word, reason string) {
	if why, ok := o.Refused[name]; ok {
		return "quarantined", why
	}
	if why, ok := o.Unmet[name]; ok {
		return "unmet", why
	}
	return "available", ""
}

func (s *Server) statusOf(p provider.Provider) *adminpb.ProviderStatus {
	id, offer := p.Identity(), p.Offer()
	refused := s.shownAll(offer.Refused)
	maps.Copy(refused, s.shownAll(s.options.Catalog.Snapshot().Refusals(p)))
	return &adminpb.ProviderStatus{
		Name: id.Name, Source: string(id.Source), State: string(offer.Status.State), Reason: s.shown(offer.Status.Reason),
		Since: timestamp(offer.Status.Since), LastSuccess: timestamp(offer.Status.LastSuccess),
		Restarts: int32(offer.Status.Restarts), Pid: int32(offer.Status.PID), Tools: int32(len(offer.Tools)),
		Unmet: s.shownAll(offer.Unmet), Refused: refused,
		Healthy: offer.Status.Healthy(), Failure: s.shown(offer.Status.Failure), LastFailure: timestamp(offer.Status.LastFailure),
	}
}

func timestamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func (s *Server) toolOf(d *tool.Definition) *adminpb.Tool {
	return &adminpb.Tool{
		Name: d.Name, Source: string(d.Source), SourceName: d.SourceName, Toolset: d.Toolset,
		Coldness: string(d.Coldness), Description: s.shown(d.Description),
	}
}

// shown is a text of somebody else's as an operator reads it: a reason may quote what a process wrote, with a secret that it
// was given. It is one that protobuf takes, too: one wrong byte would cost the whole answer.
func (s *Server) shown(text string) string { return valid(s.options.Mask(text)) }

func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

func (s *Server) shownAll(m map[tool.Name]string) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[s.shown(k)] = s.shown(v)
	}
	return out
}
