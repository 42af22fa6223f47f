package store_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hermesd/hermesd/runtime/store"
)

func open(t *testing.T, dir string) *store.Store {
	t.Helper()
	s, err := store.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func exec(query string, args ...any) func(context.Context, *sql.Conn) error {
	return func(ctx context.Context, c *sql.Conn) error {
		_, err := c.ExecContext(ctx, query, args...)
		return err
	}
}

func settled(t *testing.T, s *store.Store) (seq int) {
	t.Helper()
	if err := s.Read().QueryRow("SELECT coalesce(max(seq), 0) FROM audit_settled").Scan(&seq); err != nil {
		t.Fatal(err)
	}
	return seq
}

func TestWhatIsWrittenIsThereAfterTheNextOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "state")
	s := open(t, dir)
	if err := s.Write(t.Context(), exec("INSERT INTO audit_settled VALUES (1, 7)")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := settled(t, open(t, dir)); got != 7 {
		t.Errorf("got %d", got)
	}
	info, err := os.Stat(filepath.Join(dir, store.Name))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestAWriteHappensWholeOrNotAtAll(t *testing.T) {
	s := open(t, t.TempDir())
	broken := errors.New("broken")
	err := s.Write(t.Context(), func(ctx context.Context, c *sql.Conn) error {
		return errors.Join(exec("INSERT INTO audit_settled VALUES (1, 7)")(ctx, c), broken)
	})
	if !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
	if got := settled(t, s); got != 0 {
		t.Errorf("half a transaction stayed: %d", got)
	}
	w, err := s.Writer(false)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(t.Context(), exec("INSERT INTO audit_settled VALUES (1, 8)")); err != nil {
		t.Fatal(err)
	}
	if got := settled(t, s); got != 8 {
		t.Errorf("got %d", got)
	}
}

func TestAPreparedStatementIsPartOfItsTransactionAndEndsWithTheStore(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	w, err := s.Writer(false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Prepare("INSERT INTO nowhere VALUES (?)"); err == nil {
		t.Error("a statement without a table was prepared")
	}
	settle, err := w.Prepare("INSERT OR REPLACE INTO audit_settled VALUES (1, ?)")
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	for seq, fails := range map[int64]error{7: nil, 8: broken} {
		err := w.Write(t.Context(), func(context.Context, *sql.Conn) error {
			return errors.Join(settle([]driver.NamedValue{{Ordinal: 1, Value: seq}}), fails)
		})
		if !errors.Is(err, fails) {
			t.Errorf("got %v, want %v", err, fails)
		}
	}
	if got := settled(t, s); got != 7 {
		t.Errorf("got %d", got)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.Path() + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the last connection did not end: %v", err)
	}
	if err := settle([]driver.NamedValue{{Ordinal: 1, Value: int64(9)}}); err == nil {
		t.Error("it runs after the store's end")
	}
}

// Whoever still writes when the store ends has written or is told that it did not happen.
func TestAWriteHasEndedWhenTheStoreEnds(t *testing.T) {
	for range 20 {
		s := open(t, t.TempDir())
		begun, ended := make(chan struct{}), make(chan error)
		begin := sync.OnceFunc(func() { close(begun) })
		go func() {
			for {
				within := false
				err := s.Write(context.Background(), func(ctx context.Context, c *sql.Conn) error {
					within = true
					begin()
					return exec("INSERT OR REPLACE INTO audit_settled VALUES (1, 7)")(ctx, c)
				})
				if err != nil && within {
					err = fmt.Errorf("a write that had begun did not end: %w", err)
				}
				if err != nil {
					ended <- err
					return
				}
			}
		}()
		<-begun
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, sql.ErrConnDone) || strings.Contains(err.Error(), "had begun") {
			t.Errorf("got %v", err)
		}
	}
}

func TestAWriterWaitsNoLongerThanItsContext(t *testing.T) {
	s := open(t, t.TempDir())
	ended, end := context.WithCancel(t.Context())
	end()
	err := s.Write(t.Context(), func(context.Context, *sql.Conn) error {
		return s.Write(ended, exec("SELECT 1"))
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestReadersCannotWrite(t *testing.T) {
	s := open(t, t.TempDir())
	if _, err := s.Read().Exec("INSERT INTO audit_settled VALUES (1, 7)"); err == nil {
		t.Error("a reader wrote")
	}
}

func TestASecondDaemonIsRefusedNamingTheFirst(t *testing.T) {
	dir := t.TempDir()
	first := open(t, dir)
	if _, err := store.Open(dir, nil); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("pid %d", os.Getpid())) {
		t.Fatalf("got %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
}

// alter changes the database's file behind the store's back.
func alter(t *testing.T, dir, query string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, store.Name))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(query); err != nil {
		t.Fatal(err)
	}
}

func TestWhatCannotBeOpenedSaysWhatToDo(t *testing.T) {
	made := func(t *testing.T) string {
		dir := t.TempDir()
		if err := open(t, dir).Close(); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	for name, tt := range map[string]struct {
		dir  func(t *testing.T) string
		want []string
	}{
		"a newer version names both versions": {func(t *testing.T) string {
			dir := made(t)
			alter(t, dir, "PRAGMA user_version = 99")
			return dir
		}, []string{"newer hermesd", "99", "this one knows"}},
		"a database of another program": {func(t *testing.T) string {
			dir := made(t)
			alter(t, dir, "PRAGMA application_id = 1")
			return dir
		}, []string{"another program"}},
		"a damaged file": {func(t *testing.T) string {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, store.Name), []byte(strings.Repeat("garbage", 1000)), 0o600); err != nil {
				t.Fatal(err)
			}
			return dir
		}, []string{"damaged", "backup"}},
		"a file where the directory should be": {func(t *testing.T) string {
			file := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return file
		}, []string{"state directory", "set another"}},
		"a directory where the file should be": {func(t *testing.T) string {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, store.Name), 0o700); err != nil {
				t.Fatal(err)
			}
			return dir
		}, []string{"is a directory"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tt.dir(t)
			s, err := store.Open(dir, nil)
			if err == nil {
				t.Fatal("opened", s.Close())
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q lacks %q", err, want)
				}
			}
		})
	}
}
