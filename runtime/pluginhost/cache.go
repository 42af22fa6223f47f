package pluginhost

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/proto"

	"github.com/hermesd/hermesd/internal/atomicfile"
	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
)

// cacheFormat is the version of the file's layout.
const cacheFormat = 1

// knowledge is what is known of a plugin's content, from a running process or from the cache.
type knowledge struct {
	digest   string // of the binary
	describe *pb.DescribeResponse
	tools    []*pb.ToolDefinition
	faults   map[int]string    // why definitions are malformed, by their place; nil before they were checked
	unmet    map[string]string // own name to reason, when it was last asked
	cached   bool
}

// cache keeps the knowledge between runs of the daemon, so that a lazy plugin needs no process until its first call. A
// file belongs to one binary, contract version and configuration.
type cache struct {
	dir, name string
	args      []string
	depends   []any // what else the knowledge depends on, besides the binary
}

func newCache(o *Options) *cache {
	return &cache{
		dir: o.CacheDir, name: "plugin-" + o.Name, args: o.Args,
		depends: []any{cacheFormat, contract, o.Config, o.Args, o.Env, o.PassEnv},
	}
}

type cacheFile struct {
	Describe []byte            `json:"describe"` // protobuf
	Tools    []byte            `json:"tools"`    // protobuf, ListToolsResponse
	Faults   map[int]string    `json:"faults"`
	Unmet    map[string]string `json:"unmet,omitempty"`
}

// file is where the knowledge of a binary belongs. Files among the arguments (a script that an interpreter runs) count by
// their size and time.
func (c *cache) file(digest string) (string, error) {
	parts := append([]any{digest}, c.depends...)
	for _, arg := range c.args {
		if info, err := os.Stat(arg); err == nil && info.Mode().IsRegular() {
			parts = append(parts, info.Size(), info.ModTime().UnixNano())
		}
	}
	key, err := json.Marshal(parts)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(key)
	return filepath.Join(c.dir, c.name+"."+hex.EncodeToString(sum[:12])+".json"), nil
}

// load returns what is known of a binary, nil if nothing is.
func (c *cache) load(digest string) (*knowledge, error) {
	if c.dir == "" {
		return nil, nil
	}
	path, err := c.file(digest)
	if err != nil {
		return nil, err
	}
	k, err := read(path)
	if k != nil {
		k.digest = digest
	}
	return k, err
}

// last returns what is kept of the plugin, whatever its binary was; nil if nothing is.
func (c *cache) last() (*knowledge, error) {
	if c.dir == "" {
		return nil, nil
	}
	files, err := c.files()
	if err != nil || len(files) == 0 {
		return nil, err
	}
	return read(files[0]) // the only one, unless removing others failed
}

func (c *cache) files() ([]string, error) {
	return filepath.Glob(filepath.Join(c.dir, c.name+".*.json"))
}

func read(path string) (*knowledge, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	k, err := decodeKnowledge(io.LimitReader(f, 2*maxListBytes))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return k, nil
}

func decodeKnowledge(r io.Reader) (*knowledge, error) {
	var content cacheFile
	if err := json.NewDecoder(r).Decode(&content); err != nil {
		return nil, err
	}
	k := &knowledge{describe: &pb.DescribeResponse{}, faults: content.Faults, unmet: content.Unmet, cached: true}
	if err := proto.Unmarshal(content.Describe, k.describe); err != nil {
		return nil, err
	}
	var list pb.ListToolsResponse
	if err := proto.Unmarshal(content.Tools, &list); err != nil {
		return nil, err
	}
	if err := acceptable(k.describe); err != nil {
		return nil, err
	}
	k.tools = list.GetTools()
	return k, nil
}

// save keeps the knowledge and removes what was kept of the plugin before.
func (c *cache) save(k *knowledge) error {
	if c.dir == "" {
		return nil
	}
	path, err := c.file(k.digest)
	if err != nil {
		return err
	}
	content := cacheFile{Faults: k.faults, Unmet: k.unmet}
	if content.Describe, err = proto.Marshal(k.describe); err != nil {
		return err
	}
	if content.Tools, err = proto.Marshal(&pb.ListToolsResponse{Tools: k.tools}); err != nil {
		return err
	}
	raw, err := json.Marshal(content)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	if err := atomicfile.Write(path, raw); err != nil {
		return err
	}
	others, err := c.files()
	if err != nil {
		return err
	}
	for _, other := range others {
		if other != path {
			err = errors.Join(err, os.Remove(other))
		}
	}
	return err
}
