package daemon

import (
	"errors"
	"os"
	"os/user"
	"strconv"
	"strings"
	"testing"

	"github.com/hermesd/hermesd/internal/procgroup"
	"github.com/hermesd/hermesd/runtime/frontend/admin"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/tool"
)

func newPeers(group string) (*peers, *[]*tool.Record) {
	records := &[]*tool.Record{}
	return &peers{
		group: group, providers: func() []provider.Provider { return nil },
		note: func(r *tool.Record) { *records = append(*records, r) },
	}, records
}

func TestOnlyApproversAnswer(t *testing.T) {
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Skip("there is no user nobody here")
	}
	uid, err := strconv.Atoi(nobody.Uid)
	if err != nil {
		t.Fatal(err)
	}
	group, err := user.LookupGroupId(nobody.Gid)
	if err != nil {
		t.Skip("nobody has no group here")
	}
	cases := map[string]struct {
		uid   int
		group string
		ok    bool
	}{
		"the daemon's own user":       {os.Getuid(), "", true},
		"root":                        {0, "", true},
		"somebody else":               {uid, "", false},
		"a member of the group":       {uid, group.Name, true},
		"a group that is not there":   {uid, "no-such-group", false},
		"a user whom nobody knows of": {987654, group.Name, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p, records := newPeers(c.group)
			who, err := p.approver(admin.Peer{PID: 1, UID: c.uid}, "abc")
			if (err == nil) != c.ok || c.ok == (who == "") {
				t.Errorf("%q, %v", who, err)
			}
			if !c.ok && (len(*records) != 1 || (*records)[0].Approval != "abc" || (*records)[0].Code != tool.NotGranted) {
				t.Errorf("on record is %+v", *records)
			}
		})
	}
}

func TestWhatTheDaemonStartedIsRefused(t *testing.T) {
	p, records := newPeers("")
	if err := p.allow(admin.Peer{PID: os.Getpid(), UID: os.Getuid()}); err != nil {
		t.Errorf("a program that it did not start: %v", err)
	}
	child, err := procgroup.Start(&procgroup.Command{Path: "/bin/sh", Args: []string{"-c", "read x"}, Env: os.Environ(), WantStdin: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 * recordsPerMinute {
		if err := p.allow(admin.Peer{PID: child.PID(), UID: os.Getuid()}); !errors.Is(err, errOwnChild) {
			t.Fatalf("its child: %v", err)
		}
	}
	if len(*records) != recordsPerMinute {
		t.Errorf("%d records of %d refusals", len(*records), 2*recordsPerMinute)
	}
	child.Stop(0)
	if err := p.allow(admin.Peer{PID: child.PID(), UID: os.Getuid()}); err == nil || !strings.Contains(err.Error(), "cannot be told") {
		t.Errorf("a process that is gone: %v", err)
	}
}

func TestAGroupThatIsNotThereIsSaidAtTheStart(t *testing.T) {
	if err := checkGroup("no-such-group"); err == nil || !strings.Contains(err.Error(), "approvals { group }") {
		t.Error(err)
	}
	if err := checkGroup(""); err != nil {
		t.Error(err)
	}
}
