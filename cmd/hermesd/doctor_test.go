package main

import (
	"context"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/hermesd/hermesd/runtime/frontend/admin"
	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
)

// aDaemon is one that tells why no call runs.
type aDaemon struct {
	adminpb.AdminClient
	blocked string
}

func (d aDaemon) Status(context.Context, *adminpb.StatusRequest, ...grpc.CallOption) (*adminpb.StatusResponse, error) {
	return &adminpb.StatusResponse{Version: version, Blocked: d.blocked}, nil
}

// noWarnings is a daemon's oversight.
type noWarnings struct{ adminpb.OversightClient }

func (noWarnings) GetWarnings(context.Context, *adminpb.GetWarningsRequest, ...grpc.CallOption) (*adminpb.GetWarningsResponse, error) {
	return &adminpb.GetWarningsResponse{}, nil
}

func (aDaemon) ListProviders(context.Context, *adminpb.ListProvidersRequest, ...grpc.CallOption) (*adminpb.ListProvidersResponse, error) {
	return &adminpb.ListProvidersResponse{}, nil
}

func TestDoctorTellsThatNoCallRuns(t *testing.T) {
	for name, blocked := range map[string]string{"calls run": "", "no record can be written": "no call runs, since none can be recorded: disk full"} {
		t.Run(name, func(t *testing.T) {
			list, err := (&cli{}).askDaemon(t.Context(), &admin.Client{AdminClient: aDaemon{blocked: blocked}, OversightClient: noWarnings{}})
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(list, func(f finding) bool { return f.Level == problem })
			switch {
			case (i >= 0) != (blocked != ""):
				t.Errorf("%+v", list)
			case i >= 0 && (list[i].Text != blocked || list[i].Advice == ""):
				t.Errorf("%+v", list[i])
			}
		})
	}
}

func TestWhatTheDoctorSaysOfAProvider(t *testing.T) {
	for name, tt := range map[string]struct {
		state, reason string
		level, want   string
	}{
		"one that runs":                   {"ready", "", fine, "mcp/notes is ready, 3 tools"},
		"one that is still to be started": {"installed", "", fine, "noticed when the first call starts it"},
		"one that has changed":            {"quarantined", "another binary", problem, "3 tools: another binary"},
		"one that is switched off":        {"disabled", "switched off", fine, "3 tools: switched off"},
	} {
		t.Run(name, func(t *testing.T) {
			got := examineProvider(&adminpb.ProviderStatus{Source: "mcp", Name: "notes", State: tt.state, Reason: tt.reason, Tools: 3})
			if len(got) != 1 || got[0].Level != tt.level || !strings.HasSuffix(got[0].Text, tt.want) {
				t.Errorf("got %+v", got)
			}
		})
	}
}
