package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/cli"
)

// clientFlags are what every command that asks acceptors has.
type clientFlags struct {
	acceptors cli.Addresses
	timeline  cli.Timeline
	timeout   time.Duration
}

// questionWait is how long a question to an acceptor may take.
const questionWait = 5 * time.Second

func (f *clientFlags) addTo(cmd *cobra.Command) {
	cmd.Flags().Var(&f.acceptors, "acceptors", "where to ask, comma-separated")
	cmd.Flags().DurationVar(&f.timeout, "timeout", questionWait, "how long an acceptor may take to answer a question")
	cli.AtLeast(cmd, "timeout", &f.timeout, time.Millisecond)
	_ = cmd.MarkFlagRequired("acceptors")
}

// addTimelineTo adds --timeline too; required says that there is nothing to do without.
func (f *clientFlags) addTimelineTo(cmd *cobra.Command, required bool) {
	f.addTo(cmd)
	cmd.Flags().Var(&f.timeline, "timeline", "which log, as tenant/name")
	if required {
		_ = cmd.MarkFlagRequired("timeline")
	}
}

// dial prepares the connections. The caller closes the client.
func (f *clientFlags) dial() (*admin.Client, error) {
	c, err := admin.Dial(f.acceptors)
	return c, cli.WithCode(cli.Usage, err)
}

// question bounds one round of questions.
func (f *clientFlags) question(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, f.timeout)
}
