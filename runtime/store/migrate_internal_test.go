package store

import (
	"database/sql"
	"log/slog"
	"os"
	"strings"
	"testing"
)

// older opens a store of version 1 with one row in it.
func older(t *testing.T) (*Store, []string) {
	t.Helper()
	s, err := Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := s.write.conn.ExecContext(t.Context(), "PRAGMA user_version = 1; INSERT INTO audit_settled VALUES (1, 7)"); err != nil {
		t.Fatal(err)
	}
	steps, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	return s, steps[:1]
}

func TestAnOlderDatabaseIsMigratedAfterACopy(t *testing.T) {
	s, steps := older(t)
	steps = append(steps, "CREATE TABLE second (x)", "INSERT INTO second SELECT seq FROM audit_settled")
	if err := migrate(s.write, s.Path(), steps, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	var x, version int
	if err := s.write.conn.QueryRowContext(t.Context(), "SELECT x, user_version FROM second, pragma_user_version").Scan(&x, &version); err != nil || x != 7 || version != 3 {
		t.Errorf("%d, version %d, %v", x, version, err)
	}
	copied, err := sql.Open("sqlite", s.Path()+".v1")
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	if info, err := os.Stat(s.Path() + ".v1"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy has the mode %v, %v", info.Mode(), err)
	}
	if err := copied.QueryRow("SELECT seq, user_version FROM audit_settled, pragma_user_version").Scan(&x, &version); err != nil || x != 7 || version != 1 {
		t.Errorf("the copy has %d, version %d, %v", x, version, err)
	}
}

func TestAMigrationThatFailsChangesNothing(t *testing.T) {
	s, steps := older(t)
	err := migrate(s.write, s.Path(), append(steps, "CREATE TABLE second (x)", "nonsense"), slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "migration to version 3") {
		t.Fatalf("got %v", err)
	}
	if n, err := number(t.Context(), s.write.conn, "user_version"); err != nil || n != 1 {
		t.Errorf("version %d, %v", n, err)
	}
	if _, err := os.Stat(s.Path() + ".v1"); err != nil {
		t.Error(err)
	}
}
