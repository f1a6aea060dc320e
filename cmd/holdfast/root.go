package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed7f3f3bb8/holdfast/cli"
)

// app is what every command shares during one invocation.
type app struct {
	*cli.Streams
	settings *cli.Settings
	config   string // --config
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "holdfast",
		Short: "Keep the write-ahead log of a database safe on three machines",
		Example: `  holdfast demo                                    # three acceptors, load, a failure, and the proof
  holdfast acceptor --node-id 1 --data-dir /var/lib/holdfast
  holdfast status --acceptors a:7001,b:7001,c:7001`,
		PersistentPreRunE: func(cmd *cobra.Command, args []string) (err error) {
			if a.settings, err = cli.LoadSettings(a.Env, a.config); err != nil {
				return err
			}
			if err := a.settings.Check(cmd.Root()); err != nil {
				return err
			}
			_, err = a.settings.Apply(cmd)
			return err
		},
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.PersistentFlags().StringVar(&a.config, "config", "", "configuration file (default "+cli.DefaultConfigPath+" if it exists)")
	root.AddCommand(
		newAcceptor(a),
		newAudit(a),
		newBridge(a),
		newCompletion(a),
		newConfig(a),
		newDemo(a),
		newDump(a),
		newFence(a),
		newLoad(a),
		newPG(a),
		newScrub(a),
		newSim(a),
		newStatus(a),
		newTimeline(a),
		newVersion(a),
		newWAL(a),
		newWALFetch(a),
		newWALServer(a),
	)
	cli.Footer(root, exitCodes())
	cli.Prepare(root)
	return root
}

func exitCodes() string {
	var b strings.Builder
	b.WriteString("Exit codes:\n")
	for _, c := range cli.Codes() {
		fmt.Fprintf(&b, "  %d  %s\n", c.Code, c.Meaning)
	}
	return b.String()
}

// printJSON writes the one document that --json promises.
func (a *app) printJSON(document any) error {
	e := json.NewEncoder(a.Out)
	e.SetIndent("", "  ")
	return e.Encode(document)
}

// jsonFlag adds --json to a command.
func jsonFlag(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, "print one JSON document")
}
