package pluginhost

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/hermesd/hermesd/internal/atomicfile"
	pb "github.com/hermesd/hermesd/pluginsdk/pluginpb"
	"github.com/hermesd/hermesd/runtime/tool"
)

// The bounds of a plugin's key space (plugin.proto names the first two).
const (
	maxKey   = 256
	maxValue = 1 << 20
	maxKeys  = 1024
)

// keySpace keeps a plugin's values, one file each: the key's length, the key, the value. The file's name is a hash of the
// key, which may hold any bytes.
type keySpace struct {
	dir string
	mu  sync.Mutex
}

func keySpaceDir(stateDir string) string { return filepath.Join(stateDir, "store") }

// answer carries out one request.
func (k *keySpace) answer(req *pb.Store) *pb.AnswerRequest {
	k.mu.Lock()
	defer k.mu.Unlock()
	a, err := k.carryOut(req)
	if err != nil {
		return refusal(err)
	}
	return &pb.AnswerRequest{Answer: &pb.AnswerRequest_Store{Store: a}}
}

func (k *keySpace) carryOut(req *pb.Store) (*pb.StoreAnswer, error) {
	key := req.GetKey()
	if len(key) > maxKey || key == "" && req.GetOperation() != pb.Store_OPERATION_LIST {
		return nil, tool.Errorf(tool.BadRequest, "the key has %d bytes: want 1 to %d", len(key), maxKey)
	}
	switch req.GetOperation() {
	case pb.Store_OPERATION_GET:
		value, found, err := k.get(key)
		return &pb.StoreAnswer{Found: found, Value: value}, err
	case pb.Store_OPERATION_PUT:
		return &pb.StoreAnswer{Found: true}, k.put(key, req.GetValue())
	case pb.Store_OPERATION_DELETE:
		err := os.Remove(k.path(key))
		if errors.Is(err, fs.ErrNotExist) {
			return &pb.StoreAnswer{}, nil
		}
		return &pb.StoreAnswer{Found: true}, err
	case pb.Store_OPERATION_LIST:
		keys, err := k.list(key)
		return &pb.StoreAnswer{Found: len(keys) > 0, Keys: keys}, err
	default:
		return nil, tool.Errorf(tool.BadRequest, "a store request of no known operation")
	}
}

func (k *keySpace) path(key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(k.dir, hex.EncodeToString(sum[:16])+".value")
}

func (k *keySpace) get(key string) (value []byte, found bool, err error) {
	raw, err := os.ReadFile(k.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	kept, value, err := decodeEntry(raw)
	if err != nil || kept != key {
		return nil, false, fmt.Errorf("the stored value is damaged: delete or put it again (%w)", cmpError(err))
	}
	return value, true, nil
}

func cmpError(err error) error {
	if err != nil {
		return err
	}
	return errors.New("it belongs to another key")
}

func (k *keySpace) put(key string, value []byte) error {
	if len(value) > maxValue {
		return tool.Errorf(tool.BadRequest, "the value has %d bytes: want at most %d", len(value), maxValue)
	}
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return err
	}
	path := k.path(key)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		files, err := filepath.Glob(filepath.Join(k.dir, "*.value"))
		if err != nil {
			return err
		}
		if len(files) >= maxKeys {
			return tool.Errorf(tool.BadRequest, "the plugin has %d keys already: delete some", len(files))
		}
	}
	return atomicfile.Write(path, encodeEntry(key, value))
}

func (k *keySpace) list(prefix string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(k.dir, "*.value"))
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, file := range files {
		key, err := keyOf(file)
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys, nil
}

// keyOf reads no more of a file than its key.
func keyOf(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // only read
	head, err := io.ReadAll(io.LimitReader(f, 2+maxKey))
	if err != nil {
		return "", err
	}
	key, _, err := decodeEntry(head)
	return key, err
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
