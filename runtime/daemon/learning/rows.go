package learning

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/hermesd/hermesd/search"
)

// load reads an agent's lessons and weighs them as of now.
func (r *Recorder) load(ctx context.Context, agent string) (err error) {
	now := time.Now()
	rows, err := r.options.Database.Read().QueryContext(ctx,
		"SELECT terms, tool, time FROM search_lessons WHERE agent = ? AND time > ? ORDER BY id DESC LIMIT ?",
		agent, now.Add(-maxAge).Unix(), maxLessons)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var list []search.Lesson
	for rows.Next() {
		var terms, name string
		var at int64
		if err := rows.Scan(&terms, &name, &at); err != nil {
			return err
		}
		list = append(list, search.Lesson{Terms: strings.Fields(terms), Tool: name, At: time.Unix(at, 0)})
	}
	if err := rows.Err(); err != nil {
		return err
	}
	r.agents[agent].lessons.Store(search.NewLessons(list, now))
	return nil
}

// insert adds lessons and deletes, of the same agents, what is more than enough or too old.
func (r *Recorder) insert(ctx context.Context, lessons []taught) error {
	return r.options.Database.Write(ctx, func(ctx context.Context, c *sql.Conn) error {
		agents := map[string]bool{}
		for _, l := range lessons {
			terms := strings.Join(l.Terms, " ")
			if _, err := c.ExecContext(ctx, "INSERT INTO search_lessons (agent, terms, tool, time) VALUES (?, ?, ?, ?)", l.agent, terms, l.Tool, l.At.Unix()); err != nil {
				return err
			}
			if _, err := c.ExecContext(ctx, `DELETE FROM search_lessons WHERE id IN (
				SELECT id FROM search_lessons WHERE agent = ? AND terms = ? AND tool = ? ORDER BY id DESC LIMIT -1 OFFSET ?)`,
				l.agent, terms, l.Tool, maxSame); err != nil {
				return err
			}
			agents[l.agent] = true
		}
		for agent := range agents {
			if _, err := c.ExecContext(ctx, `DELETE FROM search_lessons WHERE id IN (
				SELECT id FROM search_lessons WHERE agent = ? ORDER BY id DESC LIMIT -1 OFFSET ?)`, agent, maxLessons); err != nil {
				return err
			}
		}
		_, err := c.ExecContext(ctx, "DELETE FROM search_lessons WHERE time < ?", time.Now().Add(-maxAge).Unix())
		return err
	})
}

func (r *Recorder) remove(ctx context.Context, agent, name string) (n int, err error) {
	err = r.options.Database.Write(ctx, func(ctx context.Context, c *sql.Conn) error {
		result, err := c.ExecContext(ctx, "DELETE FROM search_lessons WHERE (? = '' OR agent = ?) AND (? = '' OR tool = ?)", agent, agent, name, name)
		if err != nil {
			return err
		}
		deleted, err := result.RowsAffected()
		n = int(deleted)
		return err
	})
	return n, err
}
