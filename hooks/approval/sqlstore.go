package approval

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
)

// Database is where a [NewSQL] store keeps its rows; runtime/store is one.
type Database interface {
	// Write runs fn in a transaction that is durable when Write returns.
	Write(ctx context.Context, fn func(ctx context.Context, c *sql.Conn) error) error
	// Read returns connections for reading.
	Read() *sql.DB
}

type sqlStore struct{ db Database }

// NewSQL keeps grants and open requests in the tables approval_grants and approval_open, each row a JSON object by its id.
func NewSQL(db Database) Store { return sqlStore{db} }

func (s sqlStore) Grants(ctx context.Context) ([]Grant, error) {
	return load[Grant](ctx, s.db.Read(), "SELECT id, body FROM approval_grants ORDER BY id")
}

func (s sqlStore) AddGrant(ctx context.Context, g *Grant) error {
	return s.put(ctx, "INSERT INTO approval_grants (id, body) VALUES (?, ?)", g.ID, g)
}

func (s sqlStore) RemoveGrant(ctx context.Context, id string) error {
	return s.exec(ctx, "DELETE FROM approval_grants WHERE id = ?", id)
}

func (s sqlStore) Opened(ctx context.Context, p *Pending) error {
	return s.put(ctx, "INSERT INTO approval_open (id, body) VALUES (?, ?)", p.ID, p)
}

func (s sqlStore) Closed(ctx context.Context, id string) error {
	return s.exec(ctx, "DELETE FROM approval_open WHERE id = ?", id)
}

func (s sqlStore) Left(ctx context.Context) ([]Pending, error) {
	list, err := load[Pending](ctx, s.db.Read(), "SELECT id, body FROM approval_open ORDER BY id")
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list, s.exec(ctx, "DELETE FROM approval_open")
}

func (s sqlStore) put(ctx context.Context, query, id string, row any) error {
	body, err := json.Marshal(row)
	if err != nil {
		return fmt.Errorf("approvals: %w", err)
	}
	return s.exec(ctx, query, id, string(body))
}

func (s sqlStore) exec(ctx context.Context, query string, args ...any) error {
	return s.db.Write(ctx, func(ctx context.Context, c *sql.Conn) error {
		_, err := c.ExecContext(ctx, query, args...)
		return err
	})
}

func load[T any](ctx context.Context, db *sql.DB, query string) (list []T, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("approvals: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id, body string
		var row T
		if err := rows.Scan(&id, &body); err != nil {
			return nil, fmt.Errorf("approvals: %w", err)
		}
		if err := json.Unmarshal([]byte(body), &row); err != nil {
			return nil, fmt.Errorf("approvals: row %s of the state database is damaged: %w; delete it", id, err)
		}
		list = append(list, row)
	}
	return list, rows.Err()
}
