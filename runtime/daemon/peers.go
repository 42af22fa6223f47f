package daemon

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hermesd/hermesd/internal/procgroup"
	"github.com/hermesd/hermesd/runtime/frontend"
	"github.com/hermesd/hermesd/runtime/frontend/admin"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

// peers decides which programs of this machine the daemon listens to. What it has started itself, a tool's command above
// all, must not speak to it as an operator or as another agent: it could approve its own calls.
type peers struct {
	group     string // of approvers; "" is none
	providers func() []provider.Provider
	note      func(*tool.Record)

	mu    sync.Mutex
	until time.Time // when left is filled again
	left  int       // refusals that are still put on record until then
}

// recordsPerMinute bounds the records of refused peers: a program that tries for ever must not fill the audit.
const recordsPerMinute = 60

var errOwnChild = errors.New("it was started by a tool, a hook or a provider of this daemon, and those may not speak to it")

// allow decides about a peer of the admin socket.
func (p *peers) allow(who admin.Peer) error {
	if err := p.stranger(who); err != nil {
		p.refused(who, "", err)
		return err
	}
	return nil
}

func (p *peers) stranger(who admin.Peer) error {
	below, err := procgroup.Below(who.PID)
	switch {
	case err != nil:
		return fmt.Errorf("it cannot be told who started it: %w", err)
	case below:
		return errOwnChild
	}
	for _, pr := range p.providers() {
		pid := pr.Offer().Status.PID
		if uid, known := ownerOf(pid); known && uid == who.UID && uid != os.Getuid() {
			return fmt.Errorf("provider %q runs under its user (uid %d), and providers may not speak to the daemon", pr.Identity().Name, uid)
		}
	}
	return nil
}

// approver decides whether a peer may answer approvals, and names it for the record.
func (p *peers) approver(who admin.Peer, id string) (string, error) {
	name := strconv.Itoa(who.UID)
	account, err := user.LookupId(name)
	if err == nil {
		name = account.Username
	}
	if who.UID != os.Getuid() && who.UID != 0 && !p.member(account) {
		err := errors.New("only the daemon's own user, root and the members of the group in approvals { group } may")
		p.refused(who, id, err)
		return "", err
	}
	return name + " by the command line", nil
}

func (p *peers) member(account *user.User) bool {
	if p.group == "" || account == nil {
		return false
	}
	group, err := user.LookupGroup(p.group)
	if err != nil {
		return false
	}
	ids, err := account.GroupIds()
	return err == nil && slices.Contains(ids, group.Gid)
}

// vet decides about a peer that connects over HTTP without a token.
func (p *peers) vet(who frontend.Peer) error {
	if !procgroup.HoldsSocket(who.Socket) {
		return nil
	}
	p.refused(admin.Peer{UID: who.UID}, "", errOwnChild)
	return tool.Errorf(tool.Unauthenticated, "a token is needed: %w", errOwnChild)
}

// refused puts a refusal on record. id is the approval that the peer wanted to answer, "" if that is not known.
func (p *peers) refused(who admin.Peer, id string, why error) {
	p.mu.Lock()
	now := time.Now()
	if now.After(p.until) {
		p.until, p.left = now.Add(time.Minute), recordsPerMinute
	}
	p.left--
	tell := p.left >= 0
	p.mu.Unlock()
	if tell {
		p.note(&tool.Record{
			Kind: tool.RecordRefused, Approval: id, By: fmt.Sprintf("process %d of uid %d: %v", who.PID, who.UID, why),
			Outcome: tool.OutcomeDenied, Code: tool.NotGranted,
		})
	}
}

// checkGroup refuses a group of approvers that the system does not have.
func checkGroup(name string) error {
	if name == "" {
		return nil
	}
	if _, err := user.LookupGroup(name); err != nil {
		return fmt.Errorf("approvals { group }: %w; make the group, or correct the name", err)
	}
	return nil
}
