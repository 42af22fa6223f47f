package store_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAFullDiskSaysSoAndLeavesTheStoreUsable(t *testing.T) {
	s := open(t, t.TempDir())
	fill := func(ctx context.Context, c *sql.Conn) error {
		if _, err := c.ExecContext(ctx, "CREATE TABLE big (x BLOB)"); err != nil {
			return err
		}
		for {
			if _, err := c.ExecContext(ctx, "INSERT INTO big VALUES (zeroblob(100000))"); err != nil {
				return err
			}
		}
	}
	if err := s.Write(t.Context(), limit); err != nil { // SQLite reports an exhausted page count as it does a full disk
		t.Fatal(err)
	}
	err := s.Write(t.Context(), fill)
	if err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Fatalf("got %v", err)
	}
	if err := s.Write(t.Context(), exec("INSERT INTO audit_settled VALUES (1, 7)")); err != nil {
		t.Errorf("the store is stuck: %v", err)
	}
	if got := settled(t, s); got != 7 {
		t.Errorf("got %d", got)
	}
}

// limit bounds the database to some pages.
func limit(ctx context.Context, c *sql.Conn) error {
	var n int
	return c.QueryRowContext(ctx, "PRAGMA max_page_count = 200").Scan(&n)
}

func TestDiskUseIsAShare(t *testing.T) {
	s := open(t, t.TempDir())
	used, err := s.DiskUsed()
	if err != nil || used <= 0 || used > 1 {
		t.Errorf("%v, %v", used, err)
	}
}

func TestTheLockFileNamesThisProcess(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	raw, err := os.ReadFile(filepath.Join(dir, "state.lock"))
	if err != nil || len(strings.TrimSpace(string(raw))) == 0 {
		t.Errorf("%q, %v", raw, err)
	}
}
