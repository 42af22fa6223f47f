package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

func (c *cli) agentCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "agent", Short: "Agents and their tokens"}
	cmd.AddCommand(c.agentListCommand(), c.agentTokenCommand())
	return cmd
}

// agentRow is an agent of the configuration.
type agentRow struct {
	Name          string   `json:"name"`
	Token         bool     `json:"token"` // it has one
	Toolsets      []string `json:"toolsets"`
	Exclude       []string `json:"exclude,omitempty"`
	ContextLength int      `json:"context_length"`
	Attended      bool     `json:"attended"`
}

func (c *cli) agentListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the agents of the configuration", Args: cobra.NoArgs,
		RunE: run(func(*cobra.Command, []string) error {
			cfg, err := c.load("agent")
			if err != nil {
				return err
			}
			rows := []agentRow{}
			for i := range cfg.Agents {
				a := &cfg.Agents[i]
				row := agentRow{a.Name, a.TokenSHA256 != "", []string{"*"}, a.Exclude, a.ContextLength, a.Attended}
				if a.Toolsets != nil {
					row.Toolsets = append([]string{}, *a.Toolsets...)
				}
				rows = append(rows, row)
			}
			if c.json {
				return c.printJSON(rows)
			}
			if len(rows) == 0 {
				sayf(c.out, "No agent is configured; a person's own daemon has one, \"local\", for that person's connections.\n")
				return nil
			}
			w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
			sayf(w, "NAME\tTOKEN\tATTENDED\tCONTEXT\tTOOLSETS\tEXCLUDED\n")
			for _, r := range rows {
				sayf(w, "%s\t%s\t%s\t%d\t%s\t%s\n", r.Name, yes(r.Token), yes(r.Attended), r.ContextLength, strings.Join(r.Toolsets, " "), strings.Join(r.Exclude, " "))
			}
			return w.Flush()
		}),
	}
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// tokenBytes is the entropy of a token: more than can be tried.
const tokenBytes = 32

// tokenPrefix lets people and secret scanners recognise a token.
const tokenPrefix = "hermesd_"

func (c *cli) agentTokenCommand() *cobra.Command {
	return &cobra.Command{
		Use: "token NAME", Short: "Make a token for an agent",
		Long: "Prints a new token, once, and what belongs into the agent's block of the configuration: the token's SHA-256. The\n" +
			"token itself is stored nowhere. Agents send it as `Authorization: Bearer TOKEN`.",
		Args: cobra.ExactArgs(1),
		RunE: run(func(_ *cobra.Command, args []string) error {
			raw := make([]byte, tokenBytes)
			rand.Read(raw) //nolint:errcheck // never fails (crypto/rand)
			token := tokenPrefix + base64.RawURLEncoding.EncodeToString(raw)
			sum := sha256.Sum256([]byte(token))
			digest := hex.EncodeToString(sum[:])
			if c.json {
				return c.printJSON(map[string]string{"agent": args[0], "token": token, "token_sha256": digest})
			}
			_, err := sayf(c.out, "%s\n\nIt is shown this once. Put its digest into the configuration:\n\nagent %q {\n  token_sha256 = %q\n}\n", token, args[0], digest)
			return err
		}),
	}
}
