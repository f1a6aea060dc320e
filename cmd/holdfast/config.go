package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/seed7f3f3bb8/holdfast/cli"
)

func newConfig(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Look at the settings in force",
	}
	cmd.AddCommand(newConfigShow(a))
	return cmd
}

func newConfigShow(a *app) *cobra.Command {
	var asJSON, origin bool
	cmd := &cobra.Command{
		Use:   "show [COMMAND...]",
		Short: "Show every setting's value and where it comes from",
		Long: `Show what every command would use if it were run without flags.

A setting comes from the command line, else from the environment variable
HOLDFAST_ + its name in capitals with _ for -, else from the configuration
file, else it has its default. The file has lines NAME = VALUE; those above the
first [section] are for every command, a [section] named after a command is for
that command alone.`,
		Example: `  holdfast config show
  holdfast config show --origin acceptor
  HOLDFAST_TIMELINE=prod/main holdfast config show --origin wal export`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			root, want := cmd.Root(), strings.Join(args, " ")
			if found, rest, err := root.Find(args); want != "" && (err != nil || len(rest) > 0 || found == root) {
				return cli.Errorf(cli.NotFound, "there is no command %q", want)
			}
			shown := []cli.Setting{}
			for _, s := range a.settings.List(root) {
				if want == "" || s.Command == "" || s.Command == want || strings.HasPrefix(s.Command, want+" ") {
					shown = append(shown, s)
				}
			}
			for _, warning := range a.settings.UnknownEnv(root) {
				fmt.Fprintln(a.Err, "holdfast: warning:", warning)
			}
			if asJSON {
				return a.printJSON(map[string]any{"settings": shown})
			}
			w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
			for _, s := range shown {
				fmt.Fprintf(w, "%s\t%s\t%s", or(s.Command, "(all)"), s.Name, or(s.Value, `""`))
				if origin {
					fmt.Fprintf(w, "\t%s", s.Origin)
				}
				fmt.Fprintln(w)
			}
			return w.Flush()
		},
	}
	jsonFlag(cmd, &asJSON)
	cmd.Flags().BoolVar(&origin, "origin", false, "say where each value comes from")
	return cmd
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
