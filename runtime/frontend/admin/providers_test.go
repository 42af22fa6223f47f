package admin_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermesd/hermesd/internal/redact"
	"github.com/hermesd/hermesd/runtime/frontend/admin"
	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
	"github.com/hermesd/hermesd/runtime/provider"
	"github.com/hermesd/hermesd/runtime/provider/providerlog"
	"github.com/hermesd/hermesd/runtime/provider/providertest"
	"github.com/hermesd/hermesd/runtime/tool"
)

// operated is a provider that an operator can do everything with.
type operated struct {
	*providertest.Fake
	log      *providerlog.Log
	restarts int
	revoked  []string
}

func (o *operated) Log() *providerlog.Log { return o.log }
func (o *operated) Restart()              { o.restarts++ }
func (o *operated) Revoke(ids ...string) int {
	o.revoked = append(o.revoked, ids...)
	return len(ids)
}

func TestWhatAnOperatorDoesWithAProvider(t *testing.T) {
	p := &operated{Fake: providertest.New("notes", providertest.Echo("notes_read")), log: providerlog.New(slog.New(slog.DiscardHandler), nil)}
	plain := providertest.New("plain", providertest.Echo("plain_echo"))
	c, _, _ := start(t, &admin.Options{}, p, plain)
	ctx := t.Context()
	if _, err := c.RestartProvider(ctx, &adminpb.RestartProviderRequest{Name: "notes"}); err != nil || p.restarts != 1 {
		t.Errorf("%d restarts, %v", p.restarts, err)
	}
	answer, err := c.RevokeDelegations(ctx, &adminpb.RevokeDelegationsRequest{Provider: "notes", Ids: []string{"a", "b"}})
	if err != nil || answer.GetRevoked() != 2 {
		t.Errorf("%v, %v", answer, err)
	}
	for name, want := range map[string]string{"plain": "plain", "nobody": "there is: notes, plain"} {
		_, restart := c.RestartProvider(ctx, &adminpb.RestartProviderRequest{Name: name})
		_, revoke := c.RevokeDelegations(ctx, &adminpb.RevokeDelegationsRequest{Provider: name})
		stream, err := c.ProviderLogs(ctx, &adminpb.ProviderLogsRequest{Name: name})
		if err == nil {
			_, err = stream.Recv()
		}
		for what, err := range map[string]error{"restart": restart, "revoke": revoke, "logs": err} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s %s: %v", what, name, err)
			}
		}
	}
}

func TestLogsOfAProviderAreFollowed(t *testing.T) {
	p := &operated{Fake: providertest.New("notes", providertest.Echo("notes_read")), log: providerlog.New(slog.New(slog.DiscardHandler), nil)}
	c, server, _ := start(t, &admin.Options{}, p)
	p.log.Printed(providerlog.FromStderr, []byte("first"))
	p.log.Printed(providerlog.FromStdout, []byte("second"))
	p.log.Logger().Warn("it died", "signal", "SIGKILL")
	stream, err := c.ProviderLogs(t.Context(), &adminpb.ProviderLogsRequest{Name: "notes", Lines: 2, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	next := func() string {
		t.Helper()
		l, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		text := l.GetLevel() + " " + l.GetFrom() + " " + l.GetText()
		for _, f := range l.GetFields() {
			text += " " + f.GetKey() + "=" + f.GetValue()
		}
		return text
	}
	got := []string{next(), next()}
	p.log.Event("error", "db", []byte(`"third"`))
	got = append(got, next())
	want := []string{"info stdout second", "warn hermesd it died signal=SIGKILL", "error protocol third logger=db"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if _, err := stream.Recv(); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("the stream outlived the daemon: %v", err)
	}
}

// telling is a provider that repeats the secret that it was given, wherever it can.
type telling struct{ *providertest.Fake }

func (p *telling) Offer() *provider.Offer {
	o := *p.Fake.Offer()
	o.Status.Reason, o.Status.Failure = "no hunter22", "POST http://x/hunter22"
	o.Unmet, o.Refused = map[tool.Name]string{"notes_a": "hunter22"}, map[tool.Name]string{"notes_hunter22": "hunter22"}
	return &o
}

func TestWhatAProviderSaysOfItselfShowsNoSecret(t *testing.T) {
	echo := providertest.Echo("notes_read")
	echo.Description = "Reads with hunter22."
	p := &telling{providertest.New("notes", echo)}
	c, _, _ := start(t, &admin.Options{Mask: redact.New("hunter22").Mask}, p)
	list, err := c.ListProviders(t.Context(), &adminpb.ListProvidersRequest{})
	if err != nil {
		t.Fatal(err)
	}
	inspected, err := c.InspectProvider(t.Context(), &adminpb.InspectProviderRequest{Name: "notes"})
	if err != nil {
		t.Fatal(err)
	}
	tools, err := c.ListTools(t.Context(), &adminpb.ListToolsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for name, answer := range map[string]fmt.Stringer{"list": list, "inspect": inspected, "tools": tools} {
		if said := answer.String(); strings.Contains(said, "hunter22") || !strings.Contains(said, "***") {
			t.Errorf("%s: %s", name, said)
		}
	}
}
