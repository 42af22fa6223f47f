package pluginhost

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/hermesd/hermesd/internal/atomicfile"
	"github.com/hermesd/hermesd/internal/procgroup"
	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"github.com/hermesd/hermesd/runtime/tool"
)

// The bounds of a plugin's key space (plugin.proto names the first two).
const (
	maxKey   = 256
	maxValue = 1 << 20
	maxKeys  = 1024
	maxEntry = 2 + maxKey + maxValue // bytes of a file
)

// maxListed is how many names of the folder are looked at: the keys, and what a crash may have left beside them.
const maxListed = 4 * maxKeys

// entrySuffix ends the names of the files that hold values.
const entrySuffix = ".value"

// keySpace keeps a plugin's values, one file each: the key's length, the key, the value. The file's name is a hash of the
// key, which may hold any bytes.
//
// It lies outside of what the plugin can write to, since the daemon would otherwise open, and wait for, whatever a plugin
// plants there. Where the machine confines no program it can do so all the same: so only regular files are read, without
// waiting, up to a bound, and no link leads out of the folder.
type keySpace struct {
	dir    string
	former string // where it was before; see move
	logger *slog.Logger
	mu     sync.Mutex
}

func newKeySpace(o *Options) *keySpace {
	return &keySpace{dir: o.keysDir(), former: filepath.Join(o.StateDir, "store"), logger: o.Logger}
}

// answer carries out one request. The end of ctx ends only the first one, which may have keys to move.
func (k *keySpace) answer(ctx context.Context, req *pb.Store) *pb.AnswerRequest {
	k.mu.Lock()
	defer k.mu.Unlock()
	a, err := k.carryOut(ctx, req)
	if err != nil {
		return refusal(err)
	}
	return &pb.AnswerRequest{Answer: &pb.AnswerRequest_Store{Store: a}}
}

func (k *keySpace) carryOut(ctx context.Context, req *pb.Store) (*pb.StoreAnswer, error) {
	key := req.GetKey()
	if len(key) > maxKey || key == "" && req.GetOperation() != pb.Store_OPERATION_LIST {
		return nil, tool.Errorf(tool.BadRequest, "the key has %d bytes: want 1 to %d", len(key), maxKey)
	}
	root, err := k.open(ctx)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // only the folder's descriptor
	switch req.GetOperation() {
	case pb.Store_OPERATION_GET:
		value, found, err := get(root, key)
		return &pb.StoreAnswer{Found: found, Value: value}, err
	case pb.Store_OPERATION_PUT:
		return &pb.StoreAnswer{Found: true}, k.put(root, key, req.GetValue())
	case pb.Store_OPERATION_DELETE:
		err := root.Remove(fileOf(key))
		if errors.Is(err, fs.ErrNotExist) {
			return &pb.StoreAnswer{}, nil
		}
		return &pb.StoreAnswer{Found: true}, err
	case pb.Store_OPERATION_LIST:
		keys, err := list(root, key)
		return &pb.StoreAnswer{Found: len(keys) > 0, Keys: keys}, err
	default:
		return nil, tool.Errorf(tool.BadRequest, "a store request of no known operation")
	}
}

// open opens the folder, which is made by the first request.
func (k *keySpace) open(ctx context.Context) (*os.Root, error) {
	info, err := os.Lstat(k.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := k.move(ctx); err != nil {
			return nil, fmt.Errorf("the plugin's keys: %w", err)
		}
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, fmt.Errorf("%s is a %s, no folder: the operator must move it away", k.dir, procgroup.FileKind(info.Mode()))
	}
	return os.OpenRoot(k.dir)
}

func fileOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16]) + entrySuffix
}

func get(root *os.Root, key string) (value []byte, found bool, err error) {
	kept, value, err := readEntry(root, fileOf(key))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	case err == nil && kept != key:
		err = errors.New("it belongs to another key")
	}
	if err != nil {
		return nil, false, fmt.Errorf("the stored value cannot be read: delete or put it again (%w)", err)
	}
	return value, true, nil
}

func (k *keySpace) put(root *os.Root, key string, value []byte) error {
	if len(value) > maxValue {
		return tool.Errorf(tool.BadRequest, "the value has %d bytes: want at most %d", len(value), maxValue)
	}
	file := fileOf(key)
	if _, err := root.Lstat(file); errors.Is(err, fs.ErrNotExist) {
		files, err := entriesOf(root, ".")
		if err != nil {
			return err
		}
		if len(files) >= maxKeys {
			return tool.Errorf(tool.BadRequest, "the plugin has %d keys already: delete some", len(files))
		}
	}
	return atomicfile.Write(filepath.Join(k.dir, file), encodeEntry(key, value))
}

func list(root *os.Root, prefix string) ([]string, error) {
	files, err := entriesOf(root, ".")
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, file := range files {
		raw, err := readRegular(root, file, 2+maxKey) // no more of a file than its key
		if err != nil {
			return nil, err
		}
		key, _, err := decodeEntry(raw)
		if err != nil {
			return nil, fmt.Errorf("the stored value %s cannot be read: %w", file, err)
		}
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys, nil
}

// errCrowded says that a folder is no key space, or not only one.
var errCrowded = fmt.Errorf("it holds more than %d files: the operator must remove what is not the plugin's keys", maxListed)

// entriesOf lists the files of values in a folder, in no order. What is no regular file is none.
func entriesOf(root *os.Root, dir string) ([]string, error) {
	f, err := root.OpenFile(dir, os.O_RDONLY|procgroup.Nonblock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	all, err := f.ReadDir(maxListed + 1)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	case len(all) > maxListed:
		return nil, fmt.Errorf("%s: %w", f.Name(), errCrowded)
	}
	var files []string
	for _, e := range all {
		if e.Type().IsRegular() && strings.HasSuffix(e.Name(), entrySuffix) {
			files = append(files, e.Name())
		}
	}
	return files, nil
}

func readEntry(root *os.Root, file string) (key string, value []byte, err error) {
	raw, err := readRegular(root, file, maxEntry+1)
	if err != nil {
		return "", nil, err
	}
	if len(raw) > maxEntry {
		return "", nil, fmt.Errorf("%s has more bytes than the biggest value", file)
	}
	return decodeEntry(raw)
}

func encodeEntry(key string, value []byte) []byte {
	raw := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(key)+len(value)), uint16(len(key)))
	return append(append(raw, key...), value...)
}

func decodeEntry(raw []byte) (key string, value []byte, err error) {
	if len(raw) < 2 {
		return "", nil, errors.New("it has no head")
	}
	n := int(binary.BigEndian.Uint16(raw))
	if n == 0 || n > maxKey || len(raw) < 2+n {
		return "", nil, errors.New("its key is cut off")
	}
	return string(raw[2 : 2+n]), bytes.Clone(raw[2+n:]), nil
}
