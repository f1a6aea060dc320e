package cli

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// limited is a flag's value that is checked wherever it comes from: command
// line, environment or file.
type limited struct {
	pflag.Value
	check func() error
}

// Set implements pflag.Value.
func (l limited) Set(s string) error {
	if err := l.Value.Set(s); err != nil {
		return err
	}
	return l.check()
}

// AtLeast makes a flag of cmd, whose value is *v, refuse what is below least.
func AtLeast[N cmp.Ordered](cmd *cobra.Command, flag string, v *N, least N) {
	limit(cmd, flag, func() error {
		if *v < least {
			return fmt.Errorf("it must be at least %v", least)
		}
		return nil
	})
}

// Between makes a flag of cmd, whose value is *v, refuse what is not in [least, most].
func Between[N cmp.Ordered](cmd *cobra.Command, flag string, v *N, least, most N) {
	limit(cmd, flag, func() error {
		if *v < least || *v > most {
			return fmt.Errorf("it must be from %v to %v", least, most)
		}
		return nil
	})
}

func limit(cmd *cobra.Command, flag string, check func() error) {
	f := cmd.Flags().Lookup(flag)
	f.Value = limited{f.Value, check}
}
