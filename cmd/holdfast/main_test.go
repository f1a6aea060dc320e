package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/seed7f3f3bb8/holdfast/cli"
)

// invoke runs the program in this process with no terminal.
func invoke(t *testing.T, env []string, args ...string) (code cli.Code, out, talk string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, &cli.Streams{In: strings.NewReader(""), Out: &o, Err: &e, Env: env})
	return code, o.String(), e.String()
}

func TestUsageErrorsSayWhatWasMeant(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"verson", "did you mean holdfast version?"},
		{"config sho", "did you mean holdfast config show?"},
		{"version --jsn", "did you mean --json?"},
		{"config", "a command is missing: holdfast config followed by one of show"},
		{"version extra", `unknown command "extra"`},
		{"completion tcsh", "invalid argument"},
	} {
		code, out, talk := invoke(t, nil, strings.Fields(c.args)...)
		if code != cli.Usage || !strings.Contains(talk, c.want) || out != "" {
			t.Errorf("holdfast %s: code %d, stdout %q, stderr %q; want code 2 and %q on stderr", c.args, code, out, talk, c.want)
		}
	}
}

func TestAnInterruptIsCalledSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, talk bytes.Buffer
	t.Setenv("TMPDIR", t.TempDir())
	code := run(ctx, []string{"demo"}, &cli.Streams{In: strings.NewReader(""), Out: &out, Err: &talk})
	if code != cli.Failure || !strings.Contains(talk.String(), "interrupted") || strings.Contains(talk.String(), "canceled") {
		t.Errorf("code %d, %q", code, talk.String())
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "holdfast-demo-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestVersionJSON(t *testing.T) {
	code, out, _ := invoke(t, nil, "version", "--json")
	var b buildInfo
	if err := json.Unmarshal([]byte(out), &b); err != nil || code != cli.OK || b.Version == "" {
		t.Errorf("code %d, %v, %+v", code, err, b)
	}
}

func TestConfigShowOrigin(t *testing.T) {
	code, out, talk := invoke(t, []string{"HOLDFAST_JSON=false", "HOLDFAST_JSN=1"}, "config", "show", "--origin", "version")
	if code != cli.OK || !strings.Contains(out, "environment HOLDFAST_JSON") || !strings.Contains(talk, "HOLDFAST_JSN is no setting") {
		t.Errorf("code %d\n%s\n%s", code, out, talk)
	}
}

func TestEveryCommandHasExamplesFirst(t *testing.T) {
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		if cmd.Short == "" {
			t.Errorf("%s has no summary", cmd.CommandPath())
		}
		if !cmd.HasSubCommands() && cmd.Name() != "help" && !strings.Contains(cmd.Example, cmd.CommandPath()) {
			t.Errorf("%s has no example of itself", cmd.CommandPath())
		}
		for _, sub := range cmd.Commands() {
			check(sub)
		}
	}
	check(newRoot(&app{Streams: &cli.Streams{}}))
	_, out, _ := invoke(t, nil, "version", "--help")
	if e, u := strings.Index(out, "Examples:"), strings.Index(out, "Usage:"); e < 0 || u < e {
		t.Errorf("help does not begin with examples:\n%s", out)
	}
}

func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if code, out, _ := invoke(t, nil, "completion", shell); code != cli.OK || !strings.Contains(out, "holdfast") {
			t.Errorf("%s: code %d, %d bytes", shell, code, len(out))
		}
	}
}
