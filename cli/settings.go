package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// EnvPrefix begins the name of every environment variable that is a setting:
// HOLDFAST_INBOX_BYTES is --inbox-bytes.
const EnvPrefix = "HOLDFAST_"

// DefaultConfigPath is read if it exists and no other file is named.
const DefaultConfigPath = "/etc/holdfast/holdfast.conf"

// Annotation on flags that only make sense on the command line, such as --help.
const commandLineOnly = "holdfast_command_line_only"

// Origin says where a setting's value came from.
type Origin string

// FromDefault and FromFlag are origins; the others name the environment
// variable or the file and line.
const (
	FromDefault Origin = "default"
	FromFlag    Origin = "flag"
)

// Settings gives flags that were not on the command line their values from
// the environment or from the configuration file.
type Settings struct {
	env  map[string]string
	file *configFile // nil if there is none
}

// LoadSettings reads the environment (as os.Environ gives it) and the
// configuration file: path, else $HOLDFAST_CONFIG, else DefaultConfigPath. A
// file that was named must exist.
func LoadSettings(environ []string, path string) (*Settings, error) {
	s := &Settings{env: map[string]string{}}
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok && strings.HasPrefix(name, EnvPrefix) {
			s.env[name] = value
		}
	}
	named := true
	if path == "" {
		path = s.env[EnvPrefix+"CONFIG"]
	}
	if path == "" {
		path, named = DefaultConfigPath, false
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return s, nil
	}
	if err != nil {
		return nil, Errorf(Usage, "configuration file: %w", err)
	}
	defer f.Close()
	if s.file, err = parseConfig(path, f); err != nil {
		return nil, WithCode(Usage, err)
	}
	return s, nil
}

// Apply sets the flags of cmd that the command line left alone and returns the
// origin of every flag's value. A value that does not parse is an error that
// names where it stands.
func (s *Settings) Apply(cmd *cobra.Command) (map[string]Origin, error) {
	origins := map[string]Origin{}
	var failed error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			origins[f.Name] = FromFlag
			return
		}
		origins[f.Name] = FromDefault
		if _, skip := f.Annotations[commandLineOnly]; skip || f.Name == "help" || failed != nil {
			return
		}
		value, origin, ok := s.find(commandPath(cmd), f.Name)
		if !ok {
			return
		}
		if err := cmd.Flags().Set(f.Name, value); err != nil {
			failed = Errorf(Usage, "%s: --%s: %w", origin, f.Name, errors.Unwrap(err))
		}
		origins[f.Name] = origin
	})
	return origins, failed
}

func (s *Settings) find(path, flag string) (value string, origin Origin, ok bool) {
	name := EnvName(flag)
	if v, ok := s.env[name]; ok {
		return v, Origin("environment " + name), true
	}
	if s.file == nil {
		return "", "", false
	}
	set := s.file.lookup(path, flag)
	if set == nil {
		set = s.file.lookup("", flag)
	}
	if set == nil {
		return "", "", false
	}
	return set.value, Origin(fmt.Sprintf("%s:%d", s.file.path, set.line)), true
}

// Check reports settings in the file that no command of the tree has: a
// misspelt name must not be silently without effect.
func (s *Settings) Check(root *cobra.Command) error {
	if s.file == nil {
		return nil
	}
	flags := map[string][]string{} // command path -> names; "" holds all
	walk(root, func(cmd *cobra.Command) {
		path := commandPath(cmd)
		flags[path] = append(flags[path], flagNames(cmd)...)
		if path != "" {
			flags[""] = append(flags[""], flagNames(cmd)...)
		}
	})
	for _, set := range s.file.settings {
		known, ok := flags[set.section]
		if !ok {
			return Errorf(Usage, "%s:%d: section [%s]: there is no such command", s.file.path, set.line, set.section)
		}
		if !slices.Contains(known, set.name) {
			return Errorf(Usage, "%s:%d: unknown setting %q%s", s.file.path, set.line, set.name, DidYouMean(set.name, "", known))
		}
	}
	return nil
}

// EnvName is the environment variable of a flag.
func EnvName(flag string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// CommandLineOnly marks a flag that neither environment nor file may set, such
// as the --yes of a destructive command.
func CommandLineOnly(cmd *cobra.Command, flag string) {
	f := cmd.Flags().Lookup(flag)
	if f == nil {
		f = cmd.PersistentFlags().Lookup(flag)
	}
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[commandLineOnly] = []string{"true"}
}

// commandPath is the command's words without the program's name.
func commandPath(cmd *cobra.Command) string {
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	return path
}

// flagNames are the settings that a command has.
func flagNames(cmd *cobra.Command) []string {
	var names []string
	add := func(f *pflag.Flag) {
		if _, skip := f.Annotations[commandLineOnly]; !skip && f.Name != "help" {
			names = append(names, f.Name)
		}
	}
	cmd.LocalFlags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	return names
}

func walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, sub := range cmd.Commands() {
		walk(sub, visit)
	}
}
