// Package results keeps results that are too big for an agent's context. The agent gets the beginning and an id, and reads
// the rest piece by piece.
//
// Results lie in files that only the daemon's user can read, within a quota, until their session ends. An id works for the
// agent and the session that it was given to, and for nobody else. Nothing is kept over a restart.
package results

import (
	"container/list"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/hermesd/hermesd/runtime/tool"
)

const (
	// DefaultMaxChars is how long a result may be that an agent gets whole, in characters.
	DefaultMaxChars = 100_000
	// DefaultPreview is how much of a longer one it gets at once, in characters.
	DefaultPreview = 4_000
	// DefaultQuota bounds what all kept results take on the disk, in bytes.
	DefaultQuota = 512 << 20
	// DefaultIdle is how long a result is kept that nobody reads, if its session does not end before.
	DefaultIdle = time.Hour
	// sweepEvery is how often idle results are looked for.
	sweepEvery = time.Minute
	// folder is where results lie in the state directory.
	folder = "results"
)

// Options configure a store. Dir must be set.
type Options struct {
	// Dir is the daemon's state directory; results go into a folder of their own in it.
	Dir string
	// MaxChars, Preview (characters), Quota (bytes) and Idle are the defaults above if 0.
	MaxChars, Preview int
	Quota             int64
	Idle              time.Duration
	Logger            *slog.Logger // nil discards
}

// Store keeps results. It may be used from any goroutine.
type Store struct {
	options Options
	dir     string
	log     *slog.Logger

	mu   sync.Mutex
	kept map[string]*list.Element // of *kept, by id
	age  *list.List               // the last used in front
	size int64
}

// kept is one result on the disk.
type kept struct {
	id             string
	agent, session string
	bytes          int64
	chars          int
	used           time.Time
}

// Open makes the folder, and removes what a daemon before this one left in it.
func Open(opts *Options) (*Store, error) {
	s := &Store{options: *opts, kept: map[string]*list.Element{}, age: list.New()}
	o := &s.options
	if o.Dir == "" || o.MaxChars < 0 || o.Preview < 0 || o.Quota < 0 || o.Idle < 0 {
		return nil, errors.New("results: a directory is needed, and no bound may be negative")
	}
	o.MaxChars, o.Preview = orElse(o.MaxChars, DefaultMaxChars), orElse(o.Preview, DefaultPreview)
	o.Quota, o.Idle = orElse(o.Quota, DefaultQuota), orElse(o.Idle, DefaultIdle)
	o.Preview = min(o.Preview, o.MaxChars)
	if s.log = o.Logger; s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.dir = filepath.Join(o.Dir, folder)
	if err := os.RemoveAll(s.dir); err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	return s, nil
}

func orElse[T int | int64 | time.Duration](v, unset T) T {
	if v == 0 {
		return unset
	}
	return v
}

// Run removes results that nobody reads, until ctx ends.
func (s *Store) Run(ctx context.Context) error {
	t := time.NewTicker(s.sweepEvery())
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			s.sweep(time.Now())
		}
	}
}

func (s *Store) sweepEvery() time.Duration { return min(sweepEvery, s.options.Idle) }

func (s *Store) sweep(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := s.age.Back(); e != nil && now.Sub(e.Value.(*kept).used) >= s.options.Idle; e = s.age.Back() {
		s.remove(e)
	}
}

// Close removes everything.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.kept)
	s.age.Init()
	s.size = 0
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("results: %w", err)
	}
	return nil
}

// EndSession removes the results of a session that is over.
func (s *Store) EndSession(agent, session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.kept {
		if k := e.Value.(*kept); k.agent == agent && k.session == session {
			s.remove(e)
		}
	}
}

// keep writes a document to the disk and returns its id. The results that were not used for the longest time make room.
func (s *Store) keep(agent, session, document string) (string, error) {
	size := int64(len(document))
	if size > s.options.Quota {
		return "", fmt.Errorf("it is bigger than all that may be kept (%d bytes)", s.options.Quota)
	}
	k := &kept{id: strings.ToLower(rand.Text()), agent: agent, session: session, bytes: size, chars: utf8.RuneCountInString(document), used: time.Now()}
	s.reserve(k)
	err := write(s.path(k.id), document)
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.kept[k.id]
	switch {
	case err != nil:
		s.log.Error("a result could not be kept", "error", err)
		if ok {
			s.remove(e)
		}
		return "", errors.New("the disk of the daemon refused it")
	case !ok: // its session ended, or others took the room, while it was being written
		s.unlink(k.id)
		return "", errors.New("there was no room for it any more")
	}
	return k.id, nil
}

// reserve makes room for a result and takes it.
func (s *Store) reserve(k *kept) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.size+k.bytes > s.options.Quota {
		s.remove(s.age.Back())
	}
	s.kept[k.id] = s.age.PushFront(k)
	s.size += k.bytes
}

func write(path, document string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(document)
	return errors.Join(err, f.Close())
}

// remove takes a result off the disk. The lock is held.
func (s *Store) remove(e *list.Element) {
	k := s.age.Remove(e).(*kept)
	delete(s.kept, k.id)
	s.size -= k.bytes
	s.unlink(k.id)
}

func (s *Store) unlink(id string) {
	if err := os.Remove(s.path(id)); err != nil && !errors.Is(err, os.ErrNotExist) {
		s.log.Warn("a kept result could not be removed", "error", err)
	}
}

func (s *Store) path(id string) string { return filepath.Join(s.dir, id) }

// find returns a result of this agent and session and marks it as used.
func (s *Store) find(agent, session, id string) (*kept, *tool.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.kept[id]
	if ok {
		if k := e.Value.(*kept); k.agent == agent && k.session == session {
			k.used = time.Now()
			s.age.MoveToFront(e)
			return k, nil
		}
	}
	return nil, tool.Errorf(tool.NotAvailable, "no result %.40q is kept for this session: it was removed, or it belongs to another one; call the tool again, if possible so that it returns less", id)
}
