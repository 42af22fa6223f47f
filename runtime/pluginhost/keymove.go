package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hermesd/hermesd/internal/atomicfile"
	"github.com/hermesd/hermesd/internal/procgroup"
)

// move makes the folder of the keys, with what an earlier version of hermesd kept in the plugin's own folder. It is done
// once: the folder is there afterwards, and the former one is not looked at any more. The plugin may be running and changing
// what is copied; it can only harm its own keys by that. What is no value stays where it is. If the copy is cut short, the
// next request begins anew.
func (k *keySpace) move(ctx context.Context) error {
	fresh := k.dir + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if err := os.MkdirAll(fresh, 0o700); err != nil {
		return err
	}
	moved, err := k.copyFormer(ctx, fresh)
	if err == nil {
		err = os.Rename(fresh, k.dir)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(fresh))
	}
	if err := atomicfile.SyncFolder(filepath.Dir(k.dir)); err != nil {
		return err // the former files stay
	}
	if err := k.removeFormer(moved); err != nil {
		k.logger.Warn("files of the plugin's former key space were not removed; they are not used any more", "folder", k.former, "error", err)
	}
	return nil
}

// copyFormer copies the values of the former folder and returns the names of their files.
func (k *keySpace) copyFormer(ctx context.Context, fresh string) (copied []string, err error) {
	own, err := os.OpenRoot(filepath.Dir(k.former))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer own.Close() //nolint:errcheck // only the folder's descriptor
	dir := filepath.Base(k.former)
	info, err := own.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		k.logger.Warn("what lies in the place of the plugin's former key space is no folder and is left alone", "path", k.former, "kind", procgroup.FileKind(info.Mode()))
		return nil, nil
	}
	files, err := entriesOf(own, dir)
	if errors.Is(err, errCrowded) {
		k.logger.Warn("the place of the plugin's former key space is left alone", "folder", k.former, "error", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		key, value, err := readEntry(own, filepath.Join(dir, file))
		if path := (*fs.PathError)(nil); errors.As(err, &path) {
			return nil, err // not the content's fault: the value is not given up
		}
		if err == nil && fileOf(key) != file {
			err = errors.New("its name is not that of its key")
		}
		if err == nil && len(copied) == maxKeys {
			err = fmt.Errorf("there are %d keys already", maxKeys)
		}
		if err != nil {
			k.logger.Warn("a file of the plugin's former key space is left alone", "file", file, "error", err)
			continue
		}
		if err := atomicfile.Create(filepath.Join(fresh, file), encodeEntry(key, value)); err != nil {
			return nil, err
		}
		copied = append(copied, file)
	}
	return copied, nil
}

// removeFormer removes files that were copied, and their folder if it is empty then.
func (k *keySpace) removeFormer(files []string) error {
	if files == nil {
		return nil
	}
	own, err := os.OpenRoot(filepath.Dir(k.former))
	if err != nil {
		return err
	}
	defer own.Close() //nolint:errcheck // only the folder's descriptor
	dir := filepath.Base(k.former)
	for _, file := range files {
		if e := own.Remove(filepath.Join(dir, file)); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return errors.Join(err, own.Remove(dir))
}
