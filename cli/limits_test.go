package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

func TestLimitsHoldWhereverAValueComesFrom(t *testing.T) {
	for _, c := range []struct {
		flag, value, want string
	}{
		{"clients", "0", "at least 1"},
		{"clients", "-5", "at least 1"},
		{"clients", "1", ""},
		{"clients", "x", "invalid syntax"},
		{"size", "0", "from 1B to 1KiB"},
		{"size", "2KiB", "from 1B to 1KiB"},
		{"size", "1KiB", ""},
		{"wait", "-1s", "at least 1ns"},
		{"wait", "1s", ""},
	} {
		for _, from := range []string{"command line", "environment"} {
			cmd := &cobra.Command{Use: "x", RunE: func(*cobra.Command, []string) error { return nil }, SilenceErrors: true, SilenceUsage: true}
			clients, size, wait := 1, Bytes(1), time.Second
			cmd.Flags().IntVar(&clients, "clients", 1, "")
			cmd.Flags().Var(&size, "size", "")
			cmd.Flags().DurationVar(&wait, "wait", time.Second, "")
			AtLeast(cmd, "clients", &clients, 1)
			Between(cmd, "size", &size, 1, 1<<10)
			AtLeast(cmd, "wait", &wait, 1)
			var err error
			if from == "command line" {
				err = cmd.ParseFlags([]string{"--" + c.flag + "=" + c.value})
			} else {
				s := &Settings{env: map[string]string{EnvName(c.flag): c.value}}
				if _, err = s.Apply(cmd); err != nil && CodeOf(err) != Usage {
					t.Errorf("%s %q: exit code %d", c.flag, c.value, CodeOf(err))
				}
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("--%s %q from the %s: %v, want %q", c.flag, c.value, from, err, c.want)
			}
		}
	}
}
