package search

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/blevesearch/bleve/v2/index/scorch"
)

// The base of a large catalog lies in a folder of Options.Dir that is named by the catalog's digest. It appears by one
// rename when it is complete, and is never written again; a start opens the newest one, takes from it what has not
// changed, and the rest is the overlay.
const (
	folderPrefix = "search-"
	partSuffix   = ".part"
	forwardName  = "forward"
	indexName    = "index"
	mergeAtOnce  = 64 // segments; all that a build makes, so that the result is one
)

// key identifies what entries depend on besides the documents: lexicon and weights.
func (l *lexicon) key(p *params) uint64 {
	h := fnv.New64a()
	for _, w := range slices.Sorted(maps.Keys(l.stop)) {
		h.Write([]byte(w + "\n"))
	}
	for _, w := range slices.Sorted(maps.Keys(l.verbs)) {
		h.Write([]byte(w))
		h.Write([]byte{byte(l.verbs[w])})
	}
	for _, w := range p.weight {
		h.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(w)))
	}
	return h.Sum64()
}

// digest identifies a catalog.
func (c *Corpus) digest() string {
	h := sha256.New()
	h.Write(binary.LittleEndian.AppendUint64([]byte{forwardVersion}, c.lex.key(c.params)))
	buf := make([]byte, 8)
	for _, e := range c.docs {
		binary.LittleEndian.PutUint64(buf, e.hash)
		h.Write(buf)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:16])
}

// buildDisk makes the base of a corpus in dir and opens it.
func buildDisk(ctx context.Context, dir string, c *Corpus) (*base, error) {
	folder := filepath.Join(dir, folderPrefix+c.digest())
	part := folder + partSuffix
	if err := os.RemoveAll(part); err != nil {
		return nil, fmt.Errorf("clear the way for the index: %w", err)
	}
	if err := os.MkdirAll(part, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the index: %w", err)
	}
	b, err := writeDisk(ctx, part, c)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(part))
	}
	if err := b.release(); err != nil {
		return nil, fmt.Errorf("close the new index: %w", err)
	}
	if err := os.RemoveAll(folder); err != nil {
		return nil, fmt.Errorf("remove the index of the same catalog: %w", err)
	}
	if err := os.Rename(part, folder); err != nil {
		return nil, fmt.Errorf("put the index in place: %w", err)
	}
	opened := &base{docs: c.docs, vocab: c.vocab, names: b.names, place: b.place}
	return opened, opened.start(filepath.Join(folder, indexName))
}

// writeDisk writes bleve's index and the forward index into a folder.
func writeDisk(ctx context.Context, folder string, c *Corpus) (*base, error) {
	path := filepath.Join(folder, indexName)
	builder, err := scorch.NewBuilder(map[string]any{
		"path": path, "buildPathPrefix": folder, "batchSize": batchSize, "mergeMax": mergeAtOnce,
	})
	if err != nil {
		return nil, fmt.Errorf("start the index: %w", err)
	}
	for i, e := range c.docs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := builder.Index(bleveDocument(i, prepared{e, c.vocab, c.params})); err != nil {
			return nil, fmt.Errorf("index documents: %w", err)
		}
	}
	if err := builder.Close(); err != nil {
		return nil, fmt.Errorf("finish the index: %w", err)
	}
	b := &base{docs: c.docs, vocab: c.vocab, names: newNameIndex(c.docs)}
	if err := b.start(path); err != nil {
		return nil, err
	}
	f := forwardFile{key: c.lex.key(c.params), vocab: c.vocab, docs: c.docs, place: b.place}
	if f.files, err = indexFiles(path); err == nil {
		err = os.WriteFile(filepath.Join(folder, forwardName), f.encode(), 0o600)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write the forward index: %w", err), b.release())
	}
	return b, nil
}

// indexFiles lists the files of bleve's index with their checksums.
func indexFiles(path string) ([]indexFile, error) {
	list, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []indexFile
	for _, f := range list {
		file, err := sumFile(filepath.Join(path, f.Name()))
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

func sumFile(path string) (indexFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return indexFile{}, err
	}
	defer f.Close()
	sum := crc32.New(castagnoli)
	n, err := io.Copy(sum, f)
	return indexFile{filepath.Base(path), uint64(n), sum.Sum32()}, err
}

// openDisk opens the base in a folder.
func openDisk(folder string, key uint64) (*base, error) {
	content, err := os.ReadFile(filepath.Join(folder, forwardName))
	if err != nil {
		return nil, err
	}
	f, err := decodeForward(content)
	if err != nil {
		return nil, err
	}
	if f.key != key {
		return nil, errors.New("index was made with another lexicon")
	}
	b := &base{docs: f.docs, vocab: f.vocab, place: f.place}
	var naming sync.WaitGroup // a start waits for this function: the two halves of its work go side by side
	naming.Go(func() { b.names = newNameIndex(f.docs) })
	defer naming.Wait()
	path := filepath.Join(folder, indexName)
	if files, err := indexFiles(path); err != nil || !slices.Equal(files, f.files) {
		return nil, errors.Join(errors.New("index is damaged"), err)
	}
	return b, b.start(path)
}

// reopen opens the newest base in dir, nil if there is none that is whole. Others are removed.
func (e *Engine) reopen(dir string) *base {
	list, err := os.ReadDir(dir)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			e.log.Warn("look for a search index", "dir", dir, "error", err)
		}
		return nil
	}
	type found struct {
		name string
		info fs.FileInfo
	}
	var folders []found
	for _, f := range list {
		if info, err := f.Info(); err == nil && f.IsDir() && strings.HasPrefix(f.Name(), folderPrefix) && !strings.HasSuffix(f.Name(), partSuffix) {
			folders = append(folders, found{f.Name(), info})
		}
	}
	slices.SortFunc(folders, func(a, b found) int { return b.info.ModTime().Compare(a.info.ModTime()) })
	for _, f := range folders {
		b, err := openDisk(filepath.Join(dir, f.name), e.lex.key(&e.params))
		if err == nil {
			return b
		}
		e.log.Warn("search index on disk is not usable and will be rebuilt", "folder", f.name, "error", err)
	}
	return nil
}

// sweep removes the folders of other catalogs than c, and unfinished ones.
func (e *Engine) sweep(c *Corpus) {
	list, err := filepath.Glob(filepath.Join(e.opts.Dir, folderPrefix+"*"))
	if err != nil {
		return // only a malformed pattern
	}
	keep := filepath.Join(e.opts.Dir, folderPrefix+c.digest())
	for _, folder := range list {
		if folder == keep {
			continue
		}
		if err := os.RemoveAll(folder); err != nil {
			e.log.Warn("remove an old search index", "folder", folder, "error", err)
		}
	}
}
