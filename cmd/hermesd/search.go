package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/hermesd/hermesd/runtime/frontend/admin"
	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
	"github.com/hermesd/hermesd/search"
)

func (c *cli) toolSearchCommand(agent *string) *cobra.Command {
	var limit int32
	var explain bool
	cmd := &cobra.Command{
		Use:   "search QUERY…",
		Short: "Search for tools in your own words",
		Args:  cobra.MinimumNArgs(1),
		Example: `  hermesd tool search "what is the weather in a city"
  hermesd tool search "create an issue" "send a message" --limit 3`,
		RunE: run(func(cmd *cobra.Command, args []string) error {
			return c.withDaemon(cmd.Context(), func(client *admin.Client) error {
				answer, err := client.Search(cmd.Context(), &adminpb.SearchRequest{Agent: *agent, Queries: args, Limit: limit, Explain: explain})
				if err != nil {
					return err
				}
				return c.printSearch(answer)
			})
		}),
	}
	cmd.Flags().Int32Var(&limit, "limit", 0, "matches for each query (default: the agent's)")
	cmd.Flags().BoolVar(&explain, "explain", false, "say why each tool ranks where it does")
	return cmd
}

// found is tool_search's answer, as far as people want to read it.
type found struct {
	Results []struct {
		Query      string   `json:"query"`
		Matches    []string `json:"matches"`
		Confidence string   `json:"confidence"`
		Hint       string   `json:"hint"`
		Sources    []source `json:"available_sources"`
	} `json:"results"`
	Tools map[string]struct {
		SourceName  string `json:"source_name"`
		Description string `json:"description"`
		Unavailable string `json:"unavailable"`
	} `json:"tools"`
}

// source is where tools come from, if nothing or nothing near was found.
type source struct {
	Name        string `json:"name"`
	Tools       int    `json:"tool_count"`
	Unavailable string `json:"unavailable"`
}

// printMiss says that a query found nothing.
func (c *cli) printMiss(hint string, sources []source) error {
	if len(sources) == 0 {
		_, err := sayf(c.out, "  no match. %s\n", hint)
		return err
	}
	sayf(c.out, "  no match; no word of the query is in a tool. Try service plus action; the sources are:\n")
	return c.printSources(sources)
}

// printSources lists the sources, those with the reason whose tools cannot be had.
func (c *cli) printSources(sources []source) error {
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	for _, s := range sources {
		state := ""
		if s.Unavailable != "" {
			state = "unavailable: " + s.Unavailable
		}
		sayf(w, "    %s\t%d tools\t%s\n", s.Name, s.Tools, state)
	}
	return w.Flush()
}

func (c *cli) printSearch(answer *adminpb.SearchResponse) error {
	if c.json {
		return c.printJSON(struct {
			Result  json.RawMessage `json:"result"`
			Explain json.RawMessage `json:"explain,omitempty"`
		}{answer.GetResult(), answer.GetExplanation()})
	}
	if len(answer.GetExplanation()) > 0 {
		return c.printExplanation(answer)
	}
	var f found
	if err := json.Unmarshal(answer.GetResult(), &f); err != nil {
		return fmt.Errorf("the daemon's answer: %w", err)
	}
	for i, group := range f.Results {
		if i > 0 {
			sayf(c.out, "\n")
		}
		sayf(c.out, "%s\n", group.Query)
		if group.Confidence == "weak" {
			sayf(c.out, "  nothing fits well; these are the nearest:\n")
		}
		w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
		for n, name := range group.Matches {
			t := f.Tools[name]
			text := t.Description
			if t.Unavailable != "" {
				text = "unavailable: " + t.Unavailable
			}
			sayf(w, "  %d. %s\t%s\t%s\n", n+1, name, t.SourceName, firstLine(text))
		}
		if err := w.Flush(); err != nil {
			return err
		}
		switch {
		case len(group.Matches) == 0:
			if err := c.printMiss(group.Hint, group.Sources); err != nil {
				return err
			}
		case len(group.Sources) > 0:
			sayf(c.out, "  the sources are:\n")
			if err := c.printSources(group.Sources); err != nil {
				return err
			}
		}
	}
	return nil
}

// printExplanation prints for each query the hits, and for each hit what of the query it met, where, and what that was worth.
func (c *cli) printExplanation(answer *adminpb.SearchResponse) error {
	var f found
	if err := json.Unmarshal(answer.GetResult(), &f); err != nil {
		return fmt.Errorf("the daemon's answer: %w", err)
	}
	var groups []search.Group
	if err := json.Unmarshal(answer.GetExplanation(), &groups); err != nil || len(groups) != len(f.Results) {
		return fmt.Errorf("the daemon's explanation cannot be read; restart the daemon if it is of another version (%v)", err)
	}
	for i, group := range groups {
		if i > 0 {
			sayf(c.out, "\n")
		}
		sayf(c.out, "%s\n", f.Results[i].Query)
		if len(group.Hits) == 0 {
			if err := c.printMiss(f.Results[i].Hint, f.Results[i].Sources); err != nil {
				return err
			}
			continue
		}
		word := "sure"
		if group.Weak {
			word = "weak"
		}
		sayf(c.out, "  confidence: %s; %.0f%% of what the words say is met, and below %.0f%% an answer is weak\n", word, 100*group.Met, 100*group.Line)
		for n, hit := range group.Hits {
			sayf(c.out, "\n  %d. %s  (%s)  score %.3g\n", n+1, hit.Name, cmp.Or(f.Tools[hit.Name].SourceName, "not shown"), hit.Score)
			if hit.Explain == nil {
				sayf(c.out, "     the query stands in its name, source or description as it is\n")
				continue
			}
			if err := c.printHit(hit.Explain); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *cli) printHit(x *search.Explanation) error {
	for _, line := range factors(x) {
		sayf(c.out, "     %s\n", line)
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	sayf(w, "     WORD\tWEIGHT\tINFORMATION\tFOUND AS\tIN\tSCORE\n")
	for _, word := range x.Words {
		where, score := "not met", ""
		if word.Found != "" {
			where, score = strings.Join(word.Fields, ", "), fmt.Sprintf("%.2f", word.Score)
		}
		sayf(w, "     %s\t%.2f\t%.2f\t%s\t%s\t%s\n", word.Word, word.Weight, word.Information, cmp.Or(word.Found, "-"), where, score)
	}
	return w.Flush()
}

// factors are what makes a score, a line for each kind.
func factors(x *search.Explanation) []string {
	line := fmt.Sprintf("words %.2f", x.First)
	for _, part := range []struct {
		value float64
		name  string
	}{{x.NamePart, "name"}, {x.Verb, "verb"}, {x.Source, "source"}, {x.Pairs, "neighbouring words"}} {
		if part.value != 0 {
			line += fmt.Sprintf(", %+.0f%% %s", 100*part.value, part.name)
		}
	}
	line += fmt.Sprintf(", x %.2f for meeting %.0f%% of the query", x.Coverage, 100*x.Met)
	lines := []string{line}
	if x.Usage > 0 {
		lines = append(lines, fmt.Sprintf("x %.2f learned from use", 1+x.Usage))
	}
	if x.Name != "" {
		lines = append(lines, "the query is its name ("+x.Name+")")
	}
	if x.ByWords > 0 {
		lines = append(lines, fmt.Sprintf("place %d by words; nearness in meaning %.2f", x.ByWords, x.Meaning))
	}
	return lines
}
