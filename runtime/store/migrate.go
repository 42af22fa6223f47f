package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
)

// applicationID marks the file as ours (SQLite's PRAGMA application_id): "herm".
const applicationID = 0x6865726d

//go:embed migrations/*.sql
var scripts embed.FS

// migrations are the scripts in order: the first makes version 1. A published script never changes.
func migrations() ([]string, error) {
	names, err := fs.Glob(scripts, "migrations/*.sql") // sorted
	if err != nil {
		return nil, err
	}
	list := make([]string, len(names))
	for i, name := range names {
		raw, err := scripts.ReadFile(name)
		if err != nil {
			return nil, err
		}
		list[i] = string(raw)
	}
	return list, nil
}

// migrate brings the database at path to the version that steps make. Before it changes one that has content, it copies it.
func migrate(w *Writer, path string, steps []string, log *slog.Logger) error {
	ctx := context.Background()
	has, err := number(ctx, w.conn, "user_version")
	if err != nil {
		return err
	}
	mark, err := number(ctx, w.conn, "application_id")
	if err != nil {
		return err
	}
	switch {
	case has > 0 && mark != applicationID:
		return fmt.Errorf("%s is the database of another program: move it away, or set another state directory", path)
	case has > len(steps):
		return fmt.Errorf("%s was written by a newer hermesd: its version is %d, this one knows %d; install the newer one, or restore the copy it made", path, has, len(steps))
	case has == len(steps):
		return nil
	case has > 0:
		if err := backUp(ctx, w, fmt.Sprintf("%s.v%d", path, has)); err != nil {
			return err
		}
		log.Info("the state database is migrated", "from", has, "to", len(steps), "copy", fmt.Sprintf("%s.v%d", path, has))
	}
	return w.transact(ctx, func(ctx context.Context, c *sql.Conn) error {
		for i, script := range steps[has:] {
			if _, err := c.ExecContext(ctx, script); err != nil {
				return fmt.Errorf("migration to version %d: %w", has+i+1, err)
			}
		}
		_, err := c.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d; PRAGMA application_id = %d", len(steps), applicationID))
		return err
	})
}

// backUp copies the database. A copy of an earlier attempt is replaced: the original has not changed since.
func backUp(ctx context.Context, w *Writer, to string) error {
	err := os.Remove(to)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err == nil {
		err = makePrivate(to)
	}
	if err == nil {
		_, err = w.conn.ExecContext(ctx, "VACUUM INTO ?", to)
	}
	if err != nil {
		return fmt.Errorf("copying the state database before its migration: %w", err)
	}
	return nil
}

// makePrivate makes an empty file for the daemon's user alone. SQLite fills one that is there and is empty; one that it makes
// itself can be read by others, as far as the umask allows.
func makePrivate(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

func number(ctx context.Context, c *sql.Conn, pragma string) (n int, err error) {
	err = c.QueryRowContext(ctx, "PRAGMA "+pragma).Scan(&n)
	return n, err
}
