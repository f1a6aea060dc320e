package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is the release this tree is, or leads to. The linker sets it in release builds.
var version = "0.1.0-dev"

// buildInfo says what exactly runs.
type buildInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision"` // version control's, "unknown" outside a checkout
	Modified bool   `json:"modified"` // the checkout had changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func readBuildInfo() buildInfo {
	b := buildInfo{version, "unknown", false, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func newVersion(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print what exactly this binary is",
		Example: `  holdfast version
  holdfast version --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			b := readBuildInfo()
			if asJSON {
				return a.printJSON(b)
			}
			revision := b.Revision
			if b.Modified {
				revision += " with changes"
			}
			_, err := fmt.Fprintf(a.Out, "holdfast %s (revision %s, %s, %s)\n", b.Version, revision, b.Go, b.Platform)
			return err
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}
