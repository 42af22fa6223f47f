package main

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hermesd/hermesd/search"
)

func (c *cli) toolRankCommand() *cobra.Command {
	var catalog, queries string
	var limit int
	cmd := &cobra.Command{
		Use:   "rank --catalog FILE --queries FILE",
		Short: "Rank the tools of a file for the queries of another, to judge the ranking on your own tools",
		Long: `Ranks without a daemon. The catalog holds one tool a line, {"name", "description", "parameters",
"source"}; the queries one query a line, {"query"}. Both may be compressed with gzip. Printed is one
line for each query: {"query", "matches": [{"name", "weak"}], "weak", "micros"}. A configuration that is
named with --config brings its synonyms.`,
		Args: cobra.NoArgs,
		RunE: run(func(cmd *cobra.Command, _ []string) error {
			opts := &search.RankOptions{Limit: limit}
			if _, named := c.path(); named {
				cfg, err := c.load("tools")
				if err != nil {
					return err
				}
				opts.Synonyms = cfg.Tools.ToolSearch.Synonyms
			}
			tools, err := openMaybeCompressed(catalog)
			if err != nil {
				return fmt.Errorf("catalog: %w", err)
			}
			defer tools.Close()
			asked, err := openMaybeCompressed(queries)
			if err != nil {
				return fmt.Errorf("queries: %w", err)
			}
			defer asked.Close()
			return search.Rank(cmd.Context(), c.out, tools, asked, opts)
		}),
	}
	cmd.Flags().StringVar(&catalog, "catalog", "", "file with the tools (.jsonl or .jsonl.gz)")
	cmd.Flags().StringVar(&queries, "queries", "", "file with the queries (.jsonl or .jsonl.gz)")
	cmd.Flags().IntVar(&limit, "limit", 0, "matches for each query (default 10)")
	for _, name := range []string{"catalog", "queries"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // the flag was defined two lines above
		}
	}
	return cmd
}

// compressed is a file behind gzip; closing it closes both.
type compressed struct {
	*gzip.Reader
	file io.Closer
}

func (z compressed) Close() error { return errors.Join(z.Reader.Close(), z.file.Close()) }

func openMaybeCompressed(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil || !strings.HasSuffix(path, ".gz") {
		return f, err
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return compressed{z, f}, nil
}
