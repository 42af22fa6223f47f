package approval_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	_ "modernc.org/sqlite"
	"pgregory.net/rapid"

	"github.com/hermesd/hermesd/hooks/approval"
	"github.com/hermesd/hermesd/runtime/tool"
)

func TestWhatAGrantCovers(t *testing.T) {
	other := *wipe
	other.SourceName = "disk2"
	for name, tt := range map[string]struct {
		choice approval.Choice
		change func(*approval.Request)
		asked  bool // the human is asked again
	}{
		"session: other arguments":              {approval.Session, arguments(`{"disk":"sdb"}`), false},
		"session: another session":              {approval.Session, func(r *approval.Request) { r.Session = "s2" }, true},
		"session: another agent":                {approval.Session, func(r *approval.Request) { r.Agent = "bob" }, true},
		"session: another rule":                 {approval.Session, func(r *approval.Request) { r.Key = "other" }, true},
		"session: another provider's tool":      {approval.Session, func(r *approval.Request) { r.Definition = &other }, true},
		"session: a floor rule":                 {approval.Session, func(r *approval.Request) { r.Floor = true }, true},
		"session: the rule offers it no more":   {approval.Session, func(r *approval.Request) { r.Choices = []approval.Choice{approval.Once} }, true},
		"always: another session":               {approval.Always, func(r *approval.Request) { r.Session = "s2" }, false},
		"always: another agent":                 {approval.Always, func(r *approval.Request) { r.Agent = "bob" }, true},
		"always: other arguments":               {approval.Always, arguments(`{"disk":"sdb"}`), true},
		"always: one argument more":             {approval.Always, arguments(`{"disk":"sda","force":true}`), true},
		"always: an argument twice":             {approval.Always, arguments(`{"disk":"sdb","disk":"sda"}`), true},
		"always: the same, written differently": {approval.Always, arguments(`{ "disk" : "sda" }`), false},
		"always: an unattended agent":           {approval.Always, func(r *approval.Request) { r.Attended = false }, false},
		"always: a floor rule":                  {approval.Always, func(r *approval.Request) { r.Floor = true }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBroker(t)
				defer watch(b)()
				approved(t, b, request(), tt.choice)
				r := request(call("call-2"), tt.change)
				out := start(t.Context(), b, ask(r))
				asked := len(b.List()) == 1
				if asked != tt.asked {
					t.Errorf("asked again: %t, want %t", asked, tt.asked)
				}
				time.Sleep(time.Hour)
				if a := (<-out)[0]; !asked {
					if err := b.Redeem(a.ID, r); a.Err != nil || !strings.HasPrefix(a.By, "grant ") || code(err) != tool.ApprovalVoid {
						t.Errorf("%+v, an hour later %v", a, err)
					}
				}
			})
		})
	}
}

func TestAGrantThatIsRevokedCoversNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := approval.NewMemory()
		b := newBroker(t, func(o *approval.Options) { o.Store = store })
		defer watch(b)()
		approved(t, b, request(), approval.Always)
		r := request(call("call-2"))
		a := b.Ask(t.Context(), ask(r))[0]
		g := b.Grants()
		if a.Err != nil || len(g) != 1 || g[0].Key != "destructive" || !cmp.Equal(g[0].Pattern, approval.Pattern{"disk": `"sda"`}) || g[0].By != "ops" {
			t.Fatalf("%+v, %+v", a, g)
		}
		if err := b.Revoke(t.Context(), g[0].ID); err != nil {
			t.Fatal(err)
		}
		if err := b.Redeem(a.ID, r); code(err) != tool.ApprovalVoid || !strings.Contains(err.Error(), "revoked") {
			t.Errorf("a call that it let in: %v", err)
		}
		if kept, err := store.Grants(t.Context()); err != nil || len(kept) != 0 {
			t.Errorf("the store has %+v, %v", kept, err)
		}
		if err := b.Revoke(t.Context(), g[0].ID); !errors.Is(err, approval.ErrUnknown) {
			t.Errorf("revoked twice: %v", err)
		}
	})
}

func TestASessionsGrantsEndWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t)
		defer watch(b)()
		approved(t, b, request(), approval.Session)
		b.EndSession("bob", "s1")
		if n := len(b.Grants()); n != 1 {
			t.Errorf("another agent's session took it: %d", n)
		}
		b.EndSession("ann", "s1")
		if n := len(b.Grants()); n != 0 {
			t.Errorf("%d grants are left", n)
		}
	})
}

func TestModeOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, func(o *approval.Options) { o.Mode = approval.Off })
		r := request(func(r *approval.Request) { r.Attended = false })
		a := b.Ask(t.Context(), ask(r))[0]
		if a.Err != nil || b.Redeem(a.ID, r) != nil {
			t.Errorf("what a rule asks about is not allowed: %+v", a)
		}
		if a := b.Ask(t.Context(), ask(request(func(r *approval.Request) { r.Floor = true })))[0]; code(a.Err) != tool.NobodyAsked {
			t.Errorf("a floor rule is overridden: %+v", a)
		}
	})
}

func TestAHumanMayOnlyChooseWhatIsOffered(t *testing.T) {
	for name, tt := range map[string]struct {
		change  func(*approval.Request)
		d       approval.Decision
		refused bool
	}{
		"a grant that the rule does not offer": {func(r *approval.Request) { r.Choices = []approval.Choice{approval.Once} }, approval.Decision{Choice: approval.Always}, true},
		"a grant of a floor rule":              {func(r *approval.Request) { r.Floor = true }, approval.Decision{Choice: approval.Session}, true},
		"a grant without a rule to bind it to": {func(r *approval.Request) { r.Key = "" }, approval.Decision{Choice: approval.Session}, true},
		"always for arguments without a name":  {arguments(`{"a":1,"a":2}`), approval.Decision{Choice: approval.Always}, true},
		"nothing":                              {nil, approval.Decision{}, true},
		"a word":                               {nil, approval.Decision{Choice: "yes"}, true},
		"a pattern of another call":            {nil, approval.Decision{Choice: approval.Always, Pattern: approval.Pattern{"disk": `"sdb"`}}, true},
		"a pattern with an argument too few":   {nil, approval.Decision{Choice: approval.Always, Pattern: approval.Pattern{}}, true},
		"a wider pattern":                      {nil, approval.Decision{Choice: approval.Always, Pattern: approval.Pattern{"disk": `"sd*"`}}, false},
		"a pattern of anything":                {nil, approval.Decision{Choice: approval.Always, Pattern: approval.Pattern{"*": "*"}}, false},
		"deny, always":                         {func(r *approval.Request) { r.Choices = []approval.Choice{} }, approval.Decision{Choice: approval.Deny}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBroker(t)
				defer watch(b)()
				r := request()
				if tt.change != nil {
					tt.change(r)
				}
				out := start(t.Context(), b, ask(r))
				err := b.Answer(open(t, b, 1)[0].ID, tt.d)
				if refused := errors.Is(err, approval.ErrChoice); refused != tt.refused || !refused && err != nil {
					t.Errorf("refused: %v", err)
				}
				if tt.refused {
					open(t, b, 1) // it can still be answered
				}
				time.Sleep(time.Hour)
				<-out
			})
		})
	}
}

func TestPatterns(t *testing.T) {
	for name, tt := range map[string]struct {
		pattern approval.Pattern
		args    string
		want    bool
	}{
		"equal":                               {approval.Pattern{"a": `"x"`}, `{"a":"x"}`, true},
		"a star in the middle":                {approval.Pattern{"a": `"git * --short"`}, `{"a":"git status --short"}`, true},
		"a star does not leave its text":      {approval.Pattern{"a": `"git *"`}, `{"a":"git x","b":1}`, false},
		"parts must not overlap":              {approval.Pattern{"a": `"ab*ba"`}, `{"a":"aba"}`, false},
		"an escaped star is a star":           {approval.Pattern{"a": `"\*"`}, `{"a":"x"}`, false},
		"a missing argument":                  {approval.Pattern{"a": `*`}, `{}`, false},
		"further arguments":                   {approval.Pattern{"*": "*"}, `{"a":1}`, true},
		"no object":                           {approval.Pattern{}, `[]`, false},
		"half an object":                      {approval.Pattern{}, `{`, false},
		"numbers are compared as texts":       {approval.Pattern{"a": `1`}, `{"a":1.0}`, false},
		"a nested object in any writing":      {approval.Pattern{"a": `{"b":[1]}`}, `{"a": {"b": [ 1 ]}}`, true},
		"an argument named twice is refused":  {approval.Pattern{"a": `*`}, `{"a":1,"a":2}`, false},
		"letters beyond ASCII":                {approval.Pattern{"a": `"naïve *"`}, `{"a":"naïve 日本"}`, true},
		"something after the object":          {approval.Pattern{"*": "*"}, `{"a":1} x`, false},
		"three parts in their order":          {approval.Pattern{"a": `"*x*y*"`}, `{"a":"_x_y_"}`, true},
		"three parts in another order refuse": {approval.Pattern{"a": `"*x*y*"`}, `{"a":"_y_x_"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tt.pattern.Covers(json.RawMessage(tt.args)); got != tt.want {
				t.Errorf("covers %s: %t", tt.args, got)
			}
		})
	}
}

func TestThePatternOfACallCoversThatCallOnly(t *testing.T) {
	object := rapid.Custom(func(t *rapid.T) string {
		v := rapid.MapOfN(rapid.StringOfN(rapid.RuneFrom([]rune(`aé*\"`)), 1, 3, -1), rapid.StringOf(rapid.RuneFrom([]rune(`aé*\"`))), 0, 3).Draw(t, "args")
		delete(v, "*")
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	})
	rapid.Check(t, func(t *rapid.T) {
		one, two := object.Draw(t, "one"), object.Draw(t, "two")
		p, err := approval.PatternOf(json.RawMessage(one))
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Covers(json.RawMessage(two)); got != (one == two) {
			t.Fatalf("%v covers %s: %t", p, two, got)
		}
	})
}

// database is an SQLite file as package store gives it.
type database struct{ db *sql.DB }

func (d database) Read() *sql.DB { return d.db }

func (d database) Write(ctx context.Context, fn func(context.Context, *sql.Conn) error) error {
	c, err := d.db.Conn(ctx)
	if err != nil {
		return err
	}
	return errors.Join(fn(ctx, c), c.Close())
}

func TestTheDatabaseKeepsGrantsAndWhatWasOpen(t *testing.T) {
	db, err := sql.Open("sqlite", t.TempDir()+"/state.db")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	schema, err := os.ReadFile("../../runtime/store/migrations/002_approvals.sql")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(string(schema)); err != nil {
		t.Fatal(err)
	}
	s := approval.NewSQL(database{db})
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now().UTC().Round(time.Millisecond)
	g := approval.Grant{ID: "g", Kind: approval.Always, Agent: "ann", Tool: "wipe", Source: "plugin:disk", Key: "destructive", Pattern: approval.Pattern{"disk": `"*"`}, By: "ops", Created: now}
	check(s.AddGrant(t.Context(), &g))
	check(s.AddGrant(t.Context(), &approval.Grant{ID: "h"}))
	check(s.RemoveGrant(t.Context(), "h"))
	grants, err := s.Grants(t.Context())
	check(err)
	if diff := cmp.Diff([]approval.Grant{g}, grants); diff != "" {
		t.Errorf("grants (-want +got):\n%s", diff)
	}
	p := approval.Pending{ID: "p", Arguments: json.RawMessage(`{"disk":"sda"}`), Choices: []approval.Choice{approval.Once, approval.Deny}, Asked: now, Expires: now}
	check(s.Opened(t.Context(), &p))
	check(s.Opened(t.Context(), &approval.Pending{ID: "q", Arguments: json.RawMessage(`{}`)}))
	check(s.Closed(t.Context(), "q"))
	left, err := s.Left(t.Context())
	check(err)
	if diff := cmp.Diff([]approval.Pending{p}, left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	left, err = s.Left(t.Context())
	check(err)
	if len(left) != 0 {
		t.Errorf("left again: %v", left)
	}
	if _, err := db.Exec("INSERT INTO approval_grants VALUES ('bad', '{')"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Grants(t.Context()); err == nil || !strings.Contains(err.Error(), "row bad of the state database is damaged") {
		t.Errorf("a damaged row: %v", err)
	}
}
