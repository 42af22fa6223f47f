package learning

import (
	"context"
	"slices"
	"time"

	"github.com/hermesd/hermesd/runtime/pipeline"
	"github.com/hermesd/hermesd/runtime/tool"
	"github.com/hermesd/hermesd/search"
)

// The bounds of what a call may still teach.
const (
	window      = 10 * time.Minute // between a search and a call
	maxCalls    = 10               // of the session, successful or not, after a search
	maxSearches = 16               // queries of a session that are remembered
	maxSessions = 1000
)

// session holds the latest queries of one conversation.
type session struct {
	queries []*asked // the latest last
	latest  time.Time
}

// asked is one query that a call may still answer.
type asked struct {
	terms  []string
	hits   []tool.Name
	at     time.Time
	calls  int         // of the session since then
	taught []tool.Name // each tool teaches a query once
}

// Searched remembers what an agent was shown.
func (r *Recorder) Searched(agent, id string, queries []string, groups []search.Group) {
	if _, ok := r.agents[agent]; !ok {
		return
	}
	now := time.Now()
	added := make([]*asked, 0, len(queries))
	for i, query := range queries {
		q := &asked{terms: r.options.Terms(query), at: now}
		for _, h := range groups[i].Hits {
			q.hits = append(q.hits, h.Name)
		}
		if len(q.terms) > 0 {
			added = append(added, q)
		}
	}
	key := agent + "\x00" + id
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.sessions[key]
	if !ok {
		r.makeRoom(now)
		s = &session{}
		r.sessions[key] = s
	}
	s.latest = now
	s.queries = append(s.queries, added...)
	s.queries = slices.Delete(s.queries, 0, max(len(s.queries)-maxSearches, 0))
}

// makeRoom drops sessions that are over, and the oldest if there are still too many.
func (r *Recorder) makeRoom(now time.Time) {
	if len(r.sessions) < maxSessions {
		return
	}
	oldest, since := "", now
	for key, s := range r.sessions {
		if now.Sub(s.latest) > window {
			delete(r.sessions, key)
		} else if !s.latest.After(since) {
			oldest, since = key, s.latest
		}
	}
	if len(r.sessions) >= maxSessions {
		delete(r.sessions, oldest)
	}
}

// Called learns from a call that an agent made. It teaches the queries that found the tool, and those before them that led
// to no call and have a word in common with one that did: the same wish in other words.
func (r *Recorder) Called(agent, id string, name tool.Name, succeeded bool) {
	if _, ok := r.agents[agent]; !ok {
		return
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.sessions[agent+"\x00"+id]
	if !ok {
		return
	}
	s.queries = slices.DeleteFunc(s.queries, func(q *asked) bool {
		q.calls++
		return q.calls > maxCalls || now.Sub(q.at) > window
	})
	if !succeeded {
		return
	}
	var found []*asked
	for _, q := range slices.Backward(s.queries) {
		switch {
		case slices.Contains(q.hits, name):
			found = append(found, q)
		case len(q.taught) == 0 && slices.ContainsFunc(found, q.resembles):
		default:
			continue
		}
		r.teach(agent, q, name, now)
	}
}

func (q *asked) resembles(other *asked) bool {
	return slices.ContainsFunc(q.terms, func(t string) bool { return slices.Contains(other.terms, t) })
}

func (r *Recorder) teach(agent string, q *asked, name tool.Name, now time.Time) {
	if slices.Contains(q.taught, name) || len(r.pending) == maxPending {
		return
	}
	q.taught = append(q.taught, name)
	r.pending = append(r.pending, taught{agent, search.Lesson{Terms: q.terms, Tool: name, At: now}})
	select {
	case r.wake <- struct{}{}:
	default: // Run knows already
	}
}

// Pipeline is what runs calls.
type Pipeline interface {
	Do(ctx context.Context, reqs []*pipeline.Request) []pipeline.Outcome
}

// Watch returns a pipeline that learns from the calls that p runs: from which tools succeeded, never from what they said.
func (r *Recorder) Watch(p Pipeline) Pipeline {
	if len(r.agents) == 0 {
		return p
	}
	return watched{p, r}
}

type watched struct {
	Pipeline
	recorder *Recorder
}

func (w watched) Do(ctx context.Context, reqs []*pipeline.Request) []pipeline.Outcome {
	outcomes := w.Pipeline.Do(ctx, reqs)
	for i, o := range outcomes[:min(len(outcomes), len(reqs))] {
		if c := reqs[i].Call; o.Suspended == nil {
			w.recorder.Called(c.Agent, c.Session, c.Tool, o.Err == nil && o.Result != nil && !o.Result.IsError)
		}
	}
	return outcomes
}
