package pluginhost

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"github.com/hermesd/hermesd/runtime/schema"
	"github.com/hermesd/hermesd/runtime/tool"
)

// The bounds of a plugin's list of tools.
const (
	maxTools       = 10_000
	maxPages       = 10_000
	maxListBytes   = 64 << 20
	maxOwnName     = 256       // longer than a full name, which is shortened to fit
	maxDefinition  = 256 << 10 // one definition
	maxDescription = 16 << 10
	maxKeywords    = 64
	maxExamples    = 32
	maxCallTime    = 24 * time.Hour
)

// list asks for every definition and holds them against the hash that ends the list.
func (i *instance) list(ctx context.Context) ([]*pb.ToolDefinition, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := i.ListTools(ctx, &pb.ListToolsRequest{})
	if err != nil {
		return nil, rpcError("ListTools", err)
	}
	var tools []*pb.ToolDefinition
	var hash string
	size := 0
	for pages := 0; ; pages++ {
		page, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, rpcError("ListTools", err)
		}
		size += proto.Size(page)
		tools = append(tools, page.GetTools()...)
		if len(tools) > maxTools || size > maxListBytes || pages >= maxPages {
			return nil, fmt.Errorf("ListTools: the list does not end within %d tools, %d pages and %d bytes", maxTools, maxPages, maxListBytes)
		}
		hash = page.GetHash()
	}
	if got := hashOf(tools); hash != "" && hash != got {
		return nil, fmt.Errorf("ListTools: the list has the hash %s, the plugin announced %s", got, quote(hash))
	}
	return tools, nil
}

// hashOf is the hash that plugin.proto describes.
func hashOf(tools []*pb.ToolDefinition) string {
	h := sha256.New()
	for _, t := range tools {
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(t)
		if err != nil {
			panic("pluginhost: a decoded message did not encode: " + err.Error())
		}
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(b)))
		h.Write(length[:])
		h.Write(b)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// faultsOf says why definitions of a list are malformed, by their place in it. Compiling every schema takes time, so the
// answer is kept with the list.
func faultsOf(list []*pb.ToolDefinition) map[int]string {
	faults := map[int]string{}
	for n, d := range list {
		if err := checkDefinition(d); err != nil {
			faults[n] = oneLine(cut(err.Error()))
		}
	}
	return faults
}

// definitions turns what a plugin lists into what agents see. A malformed definition is left out alone, with its reason
// under its full name.
func (o *Options) definitions(list []*pb.ToolDefinition, faults map[int]string) (tools []tool.Definition, refused map[tool.Name]string) {
	tools, refused = make([]tool.Definition, 0, len(list)), map[tool.Name]string{}
	seen := map[tool.Name]bool{}
	for n, d := range list {
		name := o.fullName(d.GetName())
		fault := faults[n]
		if seen[name] {
			fault = "the plugin lists two tools of this name; the first counts"
		}
		if fault != "" {
			if !seen[name] { // a second one must not put the first in quarantine
				refused[name] = fault
			}
			o.Logger.Warn("tool definition refused", "tool", name, "reason", fault)
			continue
		}
		seen[name] = true
		delete(refused, name)
		tools = append(tools, o.definition(name, d))
	}
	return tools, refused
}

func (o *Options) fullName(own string) tool.Name {
	if o.Prefix == "" {
		return tool.FullName(own)
	}
	return tool.FullName(o.Prefix, own)
}

func (o *Options) definition(name tool.Name, d *pb.ToolDefinition) tool.Definition {
	def := tool.Definition{
		Name: name, OwnName: d.GetName(), Toolset: d.GetToolset(), Source: o.source(), SourceName: o.Name,
		Title: d.GetTitle(), Description: d.GetDescription(), InputSchema: d.GetInputSchema(),
		Coldness: tool.Coldness(d.GetColdness()), Annotations: annotations(d.GetAnnotations()),
		Keywords: d.GetKeywords(), RequiresEnv: d.GetRequiresEnv(),
		Timeout:        cmp.Or(time.Duration(min(d.GetTimeoutMs(), uint64(maxCallTime.Milliseconds())))*time.Millisecond, o.CallTimeout),
		MaxResultBytes: int(min(d.GetMaxResultBytes(), 1<<31)),
	}
	if len(d.GetOutputSchema()) > 0 {
		def.OutputSchema = d.GetOutputSchema()
	}
	if len(d.GetMeta()) > 0 {
		def.Meta = d.GetMeta()
	}
	for _, e := range d.GetExamples() {
		def.Examples = append(def.Examples, e)
	}
	if !o.Builtin || def.Coldness == "" {
		def.Coldness = tool.External
	}
	return def
}

func (o *Options) source() tool.Source {
	if o.Builtin {
		return tool.SourceBuiltin
	}
	return tool.SourcePlugin
}

func checkDefinition(d *pb.ToolDefinition) error {
	switch {
	case d.GetName() == "" || len(d.GetName()) > maxOwnName:
		return fmt.Errorf("its name has %d bytes: want 1 to %d", len(d.GetName()), maxOwnName)
	case proto.Size(d) > maxDefinition:
		return fmt.Errorf("its definition has %d bytes: want at most %d", proto.Size(d), maxDefinition)
	case len(d.GetDescription()) > maxDescription:
		return fmt.Errorf("its description has %d bytes: want at most %d", len(d.GetDescription()), maxDescription)
	case len(d.GetKeywords()) > maxKeywords || len(d.GetExamples()) > maxExamples:
		return fmt.Errorf("it has %d keywords and %d examples: want at most %d and %d", len(d.GetKeywords()), len(d.GetExamples()), maxKeywords, maxExamples)
	case !slices.Contains([]string{"", string(tool.Core), string(tool.Cold), string(tool.External)}, d.GetColdness()):
		return fmt.Errorf("its coldness is %s: want core, cold or external", quote(d.GetColdness()))
	case len(d.GetMeta()) > 0 && !isObject(d.GetMeta()):
		return errors.New("its meta is not a JSON object")
	}
	for n, e := range d.GetExamples() {
		if !isObject(e) {
			return fmt.Errorf("its example %d is not a JSON object", n+1)
		}
	}
	if err := checkSchema(d.GetInputSchema()); err != nil {
		return fmt.Errorf("its input schema cannot be used: %w", err)
	}
	if len(d.GetOutputSchema()) > 0 {
		if err := schema.Check(d.GetOutputSchema()); err != nil {
			return fmt.Errorf("its output schema cannot be used: %w", err)
		}
	}
	return nil
}

// checkSchema wants a JSON Schema of type object, as MCP and the function-calling interfaces do.
func checkSchema(raw []byte) error {
	var head struct {
		Type any `json:"type"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return fmt.Errorf("it is not a JSON object: %w", err)
	}
	if head.Type != "object" {
		return fmt.Errorf("its type is %v: want \"object\"", head.Type)
	}
	return schema.Check(raw)
}

func annotations(a *pb.Annotations) tool.Annotations {
	if a == nil {
		return tool.Annotations{}
	}
	return tool.Annotations{
		ReadOnly: a.ReadOnly, Destructive: a.Destructive, Idempotent: a.Idempotent, OpenWorld: a.OpenWorld, ParallelSafe: a.ParallelSafe,
	}
}
