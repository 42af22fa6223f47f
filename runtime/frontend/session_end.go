package frontend

import (
	"cmp"
	"context"
	"strings"
	"time"
)

func (s *Sessions) idle() time.Duration { return cmp.Or(s.Idle, sessionIdle) }

// touch notes that a session lives.
func (s *Sessions) touch(agent, id string) {
	now := time.Now()
	s.mu.Lock()
	found, ok := s.live[id]
	if ok {
		found.last = now
		s.mu.Unlock()
		return
	}
	var gone *live
	if len(s.live) >= maxLive {
		for _, l := range s.live {
			if gone == nil || l.last.Before(gone.last) {
				gone = l
			}
		}
		delete(s.live, gone.id)
	}
	if s.live == nil {
		s.live = map[string]*live{}
	}
	s.live[id] = &live{agent, id, now}
	s.mu.Unlock()
	if gone != nil {
		s.ended(gone)
	}
}

// Run looks for sessions that have been idle for too long, until ctx ends.
func (s *Sessions) Run(ctx context.Context) error {
	tick := time.NewTicker(min(sweepEvery, s.idle()))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			s.end(func(l *live) bool { return now.Sub(l.last) >= s.idle() })
		}
	}
}

// End ends the sessions of a name, whichever agent's they are: the client said that it is over. Names that transports make
// are unique.
func (s *Sessions) End(named string) {
	if named = cleanName(named); named != "" {
		s.end(func(l *live) bool { return strings.HasSuffix(l.id, "/"+named) })
	}
}

func (s *Sessions) end(over func(*live) bool) {
	var gone []*live
	s.mu.Lock()
	for id, l := range s.live {
		if over(l) {
			gone = append(gone, l)
			delete(s.live, id)
		}
	}
	s.mu.Unlock()
	for _, l := range gone {
		s.ended(l)
	}
}

func (s *Sessions) ended(l *live) {
	if s.OnEnd != nil {
		s.OnEnd(l.agent, l.id)
	}
}
