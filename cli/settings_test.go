package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// tree is a small command tree: app load --size, app wal export --size.
func tree() (root, load, export *cobra.Command) {
	nothing := func(*cobra.Command, []string) error { return nil }
	root = &cobra.Command{Use: "app"}
	load = &cobra.Command{Use: "load", RunE: nothing}
	walCmd := &cobra.Command{Use: "wal"}
	export = &cobra.Command{Use: "export", RunE: nothing}
	for _, cmd := range []*cobra.Command{load, export} {
		size := Bytes(8 << 10)
		cmd.Flags().Var(&size, "size", "")
		cmd.Flags().Bool("yes", false, "")
		CommandLineOnly(cmd, "yes")
	}
	walCmd.AddCommand(export)
	root.AddCommand(load, walCmd)
	Prepare(root)
	return root, load, export
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "holdfast.conf")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSettingsPrecedence(t *testing.T) {
	path := write(t, "# everywhere\nsize = 1MiB\nyes = true\n\n[wal export]\nsize = \"2MiB\"\n")
	for _, c := range []struct {
		name   string
		env    []string
		args   []string
		export bool
		size   string
		origin string
	}{
		{"file for every command", nil, nil, false, "1MiB", path + ":2"},
		{"file for one command", nil, nil, true, "2MiB", path + ":6"},
		{"environment over file", []string{"HOLDFAST_SIZE=3MiB", "SIZE=9"}, nil, true, "3MiB", "environment HOLDFAST_SIZE"},
		{"flag over environment", []string{"HOLDFAST_SIZE=3MiB"}, []string{"--size=4MiB"}, false, "4MiB", "flag"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, cmd, export := tree()
			if c.export {
				cmd = export
			}
			s, err := LoadSettings(c.env, path)
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.ParseFlags(c.args); err != nil {
				t.Fatal(err)
			}
			origins, err := s.Apply(cmd)
			if err != nil {
				t.Fatal(err)
			}
			if got := cmd.Flags().Lookup("size").Value.String(); got != c.size || string(origins["size"]) != c.origin {
				t.Errorf("size = %s from %q, want %s from %q", got, origins["size"], c.size, c.origin)
			}
			if yes, _ := cmd.Flags().GetBool("yes"); yes {
				t.Error("the file answered yes to a destructive command")
			}
		})
	}
}

func TestSettingsRefuse(t *testing.T) {
	for _, c := range []struct{ name, file, want string }{
		{"misspelt name", "sise = 1MiB\n", `:1: unknown setting "sise"; did you mean size?`},
		{"no such section", "[waal]\nsize = 1\n", "section [waal]: there is no such command"},
		{"command line only", "[load]\nyes = true\n", `unknown setting "yes"`},
		{"twice", "size = 1\nsize = 2\n", ":2: size is set a second time; the first is in line 1"},
		{"no equals sign", "size 1\n", ":1: expected NAME = VALUE"},
		{"open section", "[load\n", "does not end with ]"},
		{"bad value", "[load]\nsize = big\n", `:2: --size: size "big"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			root, load, _ := tree()
			s, err := LoadSettings(nil, write(t, c.file))
			if err == nil {
				err = s.Check(root)
			}
			if err == nil {
				_, err = s.Apply(load)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || CodeOf(err) != Usage {
				t.Errorf("error %v (code %d), want a usage error with %q", err, CodeOf(err), c.want)
			}
		})
	}
	if _, err := LoadSettings(nil, "/nonexistent/holdfast.conf"); CodeOf(err) != Usage {
		t.Errorf("a named file that does not exist gave %v", err)
	}
}
