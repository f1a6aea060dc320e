package cli

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// helpTemplate puts the examples first: most who ask for help want a line to copy.
const helpTemplate = `{{with (or .Long .Short)}}{{. | trimTrailingWhitespaces}}

{{end}}{{if .HasExample}}Examples:
{{.Example | trimTrailingWhitespaces}}

{{end}}{{if .Runnable}}Usage:
  {{.UseLine}}
{{end}}{{if .HasAvailableSubCommands}}
Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}
{{end}}{{if .HasAvailableLocalFlags}}
Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}
{{end}}{{if .HasAvailableInheritedFlags}}
Flags of every command:
{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}
{{end}}{{if .HasAvailableSubCommands}}
"{{.CommandPath}} COMMAND --help" says more about a command.
{{end}}{{with index .Annotations "footer"}}
{{.}}{{end}}`

// Footer puts text at the end of a command's help.
func Footer(cmd *cobra.Command, text string) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations["footer"] = text
}

// Prepare gives a command tree the manners of this package: help with examples
// first, usage errors with exit code 2 and a near miss, and no usage text dumped behind an error.
func Prepare(root *cobra.Command) {
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.SetHelpTemplate(helpTemplate)
	root.SetUsageTemplate(helpTemplate)
	root.SetFlagErrorFunc(flagError)
	walk(root, func(cmd *cobra.Command) {
		cmd.DisableFlagsInUseLine = true
		if cmd.HasSubCommands() && !cmd.Runnable() {
			cmd.Use += " COMMAND"
			cmd.Args = cobra.ArbitraryArgs
			cmd.RunE = noSuchCommand
			return
		}
		check := cmd.Args
		if check == nil {
			check = cobra.NoArgs
		}
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return Errorf(Usage, "%w; see %q", err, cmd.CommandPath()+" --help")
			}
			return nil
		}
	})
}

// noSuchCommand runs where a command is only a heading for others.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	if len(args) == 0 {
		return Errorf(Usage, "a command is missing: %s followed by one of %s", cmd.CommandPath(), strings.Join(names, ", "))
	}
	return Errorf(Usage, "unknown command %q%s; see %q", cmd.CommandPath()+" "+args[0],
		DidYouMean(args[0], cmd.CommandPath()+" ", names), cmd.CommandPath()+" --help")
}

var unknownFlag = regexp.MustCompile(`^unknown flag: --(\S+)`)

func flagError(cmd *cobra.Command, err error) error {
	suggestion := ""
	if m := unknownFlag.FindStringSubmatch(err.Error()); m != nil {
		suggestion = DidYouMean(m[1], "--", flagNames(cmd))
	}
	return Errorf(Usage, "%w%s; see %q", err, suggestion, cmd.CommandPath()+" --help")
}

// IsUsage reports whether an error of cobra itself is about the command line:
// these carry no type, and every other error of a command has its own code.
func IsUsage(err error) bool {
	text := err.Error()
	return strings.HasPrefix(text, "required flag(s) ") || strings.HasPrefix(text, "if any flags in the group ") ||
		strings.HasPrefix(text, "at least one of the flags in the group ")
}
