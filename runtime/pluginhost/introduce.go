package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"github.com/hermesd/hermesd/runtime/provider/supervisor"
	"github.com/hermesd/hermesd/runtime/schema"
	"github.com/hermesd/hermesd/runtime/tool"
)

// contract is the version of hermes.plugin.v1 that this host speaks.
const contract = 1

// The bounds of what a plugin may say about itself, in bytes.
const (
	maxDescribe     = 1 << 20
	maxDiagnostics  = 16
	maxCapabilities = 64
)

// introduce brings a connected process to the point where it takes calls: described, configured, listed, checked. What it
// offers is published.
func (p *Provider) introduce(ctx context.Context, i *instance) error {
	d, err := i.Describe(ctx, &pb.DescribeRequest{})
	if err != nil {
		return rpcError("Describe", err)
	}
	if err := acceptable(d); err != nil {
		return supervisor.Permanent{Err: err}
	}
	i.describe = d
	if err := p.configure(ctx, i); err != nil {
		return err
	}
	list, err := i.list(ctx)
	if err != nil {
		return err
	}
	known := &knowledge{digest: i.digest, describe: d, tools: list}
	p.learn(known)
	check, cancel := context.WithTimeout(ctx, startCheckTimeout)
	defer cancel()
	p.checkAll(check, i)
	p.remember(known)
	return nil
}

func acceptable(d *pb.DescribeResponse) error {
	switch {
	case !tool.ValidName(d.GetName()):
		return fmt.Errorf("it describes itself with the name %s: want 1 to 64 characters of A-Z a-z 0-9 _ -", quote(d.GetName()))
	case d.GetContractMin() > contract || d.GetContractMax() < contract:
		return fmt.Errorf("it speaks versions %d to %d of hermes.plugin, hermesd speaks %d: install a plugin made for it",
			d.GetContractMin(), d.GetContractMax(), contract)
	case len(d.GetVersion())+len(d.GetDescription())+len(d.GetConfigSchema()) > maxDescribe || len(d.GetCapabilities()) > maxCapabilities:
		return errors.New("it describes itself with more than 1 MiB or 64 capabilities")
	}
	return nil
}

// configure checks the operator's block against the plugin's schema and hands it over. Whatever is wrong with it stays
// wrong, so it is permanent.
func (p *Provider) configure(ctx context.Context, i *instance) error {
	if err := p.fitsSchema(i.describe.GetConfigSchema()); err != nil {
		return supervisor.Permanent{Err: err}
	}
	answer, err := i.Configure(ctx, &pb.ConfigureRequest{
		Config: p.opts.Config, Provider: p.opts.Name, StateDir: p.opts.StateDir,
		MaxMessageBytes: uint32(min(p.opts.MaxMessageBytes, 1<<31)),
	})
	if err != nil {
		return rpcError("Configure", err)
	}
	var faults []string
	for _, d := range answer.GetDiagnostics() {
		text := p.located(d.GetPath()) + diagnostic(d)
		if d.GetSeverity() != pb.Diagnostic_SEVERITY_ERROR {
			p.opts.Logger.Warn("plugin remarks on its configuration", "remark", text)
			continue
		}
		if len(faults) < maxDiagnostics {
			faults = append(faults, text)
		}
	}
	if faults != nil {
		return supervisor.Permanent{Err: errors.New("it refuses its configuration: " + strings.Join(faults, "; "))}
	}
	return nil
}

func (p *Provider) fitsSchema(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	if err := schema.Check(text); err != nil {
		return fmt.Errorf("the schema of its configuration cannot be used: %s", oneLine(err.Error()))
	}
	fit := p.schemas.Fit(&tool.Definition{Name: p.opts.Name, InputSchema: text}, p.opts.Config)
	if len(fit.Faults) == 0 {
		return nil
	}
	var faults []string
	for _, f := range fit.Faults[:min(len(fit.Faults), maxDiagnostics)] {
		faults = append(faults, p.located(schema.Pointer(f.Path))+strings.Replace(f.Path, "arguments", "config", 1)+" "+f.Detail)
	}
	return errors.New("its configuration is wrong: " + strings.Join(faults, "; "))
}

// located says where a key of the config block is written, if the options know: "config.hcl:12: ".
func (p *Provider) located(pointer string) string {
	if p.opts.Locate == nil {
		return ""
	}
	if at := p.opts.Locate(oneLine(cut(pointer))); at != "" {
		return at + ": "
	}
	return ""
}

func diagnostic(d *pb.Diagnostic) string {
	text := oneLine(cut(d.GetSummary()))
	if d.GetPath() != "" {
		text = "config" + oneLine(cut(d.GetPath())) + ": " + text
	}
	if d.GetDetail() != "" {
		text += " (" + oneLine(cut(d.GetDetail())) + ")"
	}
	return text
}

// rpcError says which RPC failed, with contexts' ends as such.
func rpcError(name string, err error) error {
	s := status.Convert(err)
	switch s.Code() {
	case codes.DeadlineExceeded:
		return fmt.Errorf("%s: %w", name, context.DeadlineExceeded)
	case codes.Canceled:
		return fmt.Errorf("%s: %w", name, context.Canceled)
	case codes.Unimplemented:
		return fmt.Errorf("%s: the plugin does not have it: it must implement all of hermes.plugin.v1", name)
	default:
		return fmt.Errorf("%s: %s", name, oneLine(cut(s.Message())))
	}
}
