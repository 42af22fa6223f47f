package main

import (
	"github.com/spf13/cobra"

	"github.com/hermesd/hermesd/runtime/frontend/admin"
	"github.com/hermesd/hermesd/runtime/frontend/admin/adminpb"
)

func (c *cli) toolForgetCommand(agent *string) *cobra.Command {
	return &cobra.Command{
		Use:   "forget [NAME]",
		Short: "Forget what searches learned from the use of tools",
		Long:  "Forgets what searches learned from the use of one tool, or of all; of one agent with --agent, or of all.\nTools are learned where tool_search { learn = true } is set.",
		Args:  cobra.MaximumNArgs(1),
		RunE: run(func(cmd *cobra.Command, args []string) error {
			req := &adminpb.ForgetRequest{Agent: *agent}
			if len(args) > 0 {
				req.Tool = args[0]
			}
			return c.withDaemon(cmd.Context(), func(client *admin.Client) error {
				answer, err := client.Forget(cmd.Context(), req)
				if err != nil {
					return err
				}
				if c.json {
					return c.printJSON(map[string]int32{"forgotten": answer.GetLessons()})
				}
				_, err = sayf(c.out, "lessons forgotten: %d\n", answer.GetLessons())
				return err
			})
		}),
	}
}
