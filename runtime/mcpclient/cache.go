package mcpclient

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

	"github.com/hermesd/hermesd/internal/atomicfile"
	"github.com/hermesd/hermesd/internal/rawjson"
	"github.com/hermesd/hermesd/runtime/tool"
)

// cacheFormat is the version of the file's layout.
const cacheFormat = 2

// digest identifies a list of tools, or what a list depends on.
type digest [sha256.Size]byte

func digestOf(tools []json.RawMessage) digest {
	h := sha256.New()
	for _, raw := range tools {
		h.Write(raw)
		h.Write([]byte{0}) // no JSON holds it
	}
	return digest(h.Sum(nil))
}

// cache keeps a server's lists between runs, so that a lazy server needs no process until its first call. A file
// holds the list of exactly one configuration: another command, address, environment or header has another file.
type cache struct {
	dir, file string // "" in both: nothing is kept
}

func newCache(o *Options) *cache {
	if o.CacheDir == "" {
		return &cache{}
	}
	key, err := json.Marshal([]any{cacheFormat, o.Name, o.Command, o.Dir, o.URL, o.Env, o.PassEnv, o.Headers, o.Resources, o.Prompts})
	if err != nil {
		panic("mcpclient: strings did not marshal: " + err.Error())
	}
	sum := sha256.Sum256(key)
	return &cache{dir: o.CacheDir, file: filepath.Join(o.CacheDir, "mcp-"+hex.EncodeToString(sum[:12])+".json")}
}

// cacheFile is what is kept: what the server listed, as it listed it.
type cacheFile struct {
	Format int               `json:"format"`
	Tools  []json.RawMessage `json:"tools"`
	stock
}

// load returns what is kept, or nil if there is nothing.
func (c *cache) load() (*cacheFile, error) {
	if c.file == "" {
		return nil, nil
	}
	f, err := os.Open(c.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	data, err := io.ReadAll(io.LimitReader(f, maxListBytes+1))
	if err != nil {
		return nil, err
	}
	return readCache(data)
}

// readCache takes the file's bytes apart.
func readCache(data []byte) (*cacheFile, error) {
	if len(data) > maxListBytes {
		return nil, fmt.Errorf("the file has more than %d bytes", maxListBytes)
	}
	if !rawjson.Valid(data) {
		return nil, errors.New("the file is not JSON")
	}
	format := ""
	kept := &cacheFile{Format: cacheFormat, Tools: []json.RawMessage{}}
	listed := false
	rawjson.Members(data, func(key string, value json.RawMessage) {
		switch key {
		case "format":
			format = string(value)
		case "tools":
			listed = rawjson.Elements(value, func(one json.RawMessage) { kept.Tools = append(kept.Tools, one) })
		case "resources":
			rawjson.Elements(value, func(one json.RawMessage) { kept.Resources = append(kept.Resources, one) })
		case "templates":
			rawjson.Elements(value, func(one json.RawMessage) { kept.Templates = append(kept.Templates, one) })
		case "prompts":
			rawjson.Elements(value, func(one json.RawMessage) { kept.Prompts = append(kept.Prompts, one) })
		}
	})
	switch {
	case format != fmt.Sprint(cacheFormat):
		return nil, fmt.Errorf("the file has format %s instead of %d", bounded(format, 20), cacheFormat)
	case !listed || len(kept.Tools) > maxTools:
		return nil, errors.New("the file holds no list of tools")
	}
	return kept, nil
}

// store replaces what is kept at once or not at all.
func (c *cache) store(kept *cacheFile) error {
	if c.file == "" {
		return nil
	}
	full := *kept
	full.Format = cacheFormat
	if full.Tools == nil {
		full.Tools = []json.RawMessage{}
	}
	content, err := tool.JSON(&full)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(c.file, content)
}
