package cli

import (
	"fmt"
	"sort"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Setting is one line of "config show".
type Setting struct {
	Command string `json:"command"` // "" for a setting that every command has
	Name    string `json:"name"`
	Value   string `json:"value"`
	Origin  Origin `json:"origin"`
}

// List returns what every setting of the tree would be if its command were run
// without flags, in the order of commands and names.
func (s *Settings) List(root *cobra.Command) []Setting {
	var list []Setting
	walk(root, func(cmd *cobra.Command) {
		add := func(f *pflag.Flag) {
			if _, skip := f.Annotations[commandLineOnly]; skip || f.Name == "help" || f.Hidden {
				return
			}
			set := Setting{commandPath(cmd), f.Name, f.DefValue, FromDefault}
			if v, origin, ok := s.find(set.Command, f.Name); ok {
				set.Value, set.Origin = v, origin
			}
			list = append(list, set)
		}
		if cmd.HasParent() {
			cmd.LocalNonPersistentFlags().VisitAll(add)
		}
		cmd.PersistentFlags().VisitAll(add)
	})
	sort.SliceStable(list, func(i, j int) bool { return list[i].Command < list[j].Command })
	return list
}

// UnknownEnv lists the HOLDFAST_ variables that are no setting of any command.
func (s *Settings) UnknownEnv(root *cobra.Command) []string {
	known := map[string]bool{}
	var names []string
	walk(root, func(cmd *cobra.Command) {
		for _, f := range flagNames(cmd) {
			known[EnvName(f)] = true
			names = append(names, EnvName(f))
		}
	})
	var unknown []string
	for name := range s.env {
		if !known[name] {
			unknown = append(unknown, fmt.Sprintf("%s is no setting of any command%s", name, DidYouMean(name, "", names)))
		}
	}
	sort.Strings(unknown)
	return unknown
}
