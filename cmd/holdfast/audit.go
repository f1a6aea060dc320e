package main

import (
	"fmt"
	"sync/atomic"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/seed7f3f3bb8/holdfast/cli"
	"github.com/seed7f3f3bb8/holdfast/workload"
)

func newAudit(a *app) *cobra.Command {
	var flags clientFlags
	var ackLog string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Prove that every acknowledged append is there, byte for byte",
		Long: `Read every append that a load recorded as acknowledged back from each acceptor's
own disk and compare all of its bytes. Exit code 6 says that something is
missing or different, 3 that nothing is missing but a replica is behind or away.`,
		Example: `  holdfast audit --acceptors a:7001,b:7001,c:7001 --timeline prod/main --ack-log acks.log
  holdfast audit --acceptors a:7001,b:7001,c:7001 --timeline prod/main --ack-log acks.log --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			acks, err := workload.ReadAcksFile(ackLog)
			if err != nil {
				return err
			}
			c, err := flags.dial()
			if err != nil {
				return err
			}
			defer c.Close()
			var read atomic.Uint64
			progress := a.NewProgress(func() string {
				return "read " + cli.Bytes(read.Load()).Human()
			})
			audit := workload.Audit{Cluster: c, Timeline: flags.timeline.TimelineID, Acks: acks, Read: &read, AnswerWait: flags.timeout}
			result, err := audit.Run(cmd.Context())
			progress.Stop()
			if err != nil {
				return err
			}
			if asJSON {
				err = a.printJSON(result)
			} else {
				err = printAudit(a, result)
			}
			if err != nil {
				return err
			}
			if err := result.Err(); err != nil {
				return err
			}
			if !result.Identical {
				return cli.Errorf(cli.Degraded, "nothing acknowledged is missing, but not every replica holds everything")
			}
			return nil
		},
	}
	flags.addTimelineTo(cmd, true)
	jsonFlag(cmd, &asJSON)
	cmd.Flags().StringVar(&ackLog, "ack-log", "", "what a load recorded")
	_ = cmd.MarkFlagRequired("ack-log")
	return cmd
}

func printAudit(a *app, r *workload.AuditResult) error {
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ACCEPTOR\tNODE\tHEALTH\tFLUSH\tPRESENT\tDIFFERENT\tBEHIND\tSHA-256")
	for _, x := range r.Replicas {
		if !x.Read {
			fmt.Fprintf(w, "%s\tunknown\t%s\tunknown\tunknown\tunknown\tunknown\tunknown\n", x.Addr, x.Health)
			fmt.Fprintf(a.Err, "holdfast: acceptor %s: %s\n", x.Addr, x.Error)
			continue
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%v\t%d\t%d\t%d\t%.16s\n", x.Addr, x.Node, x.Health, x.Flush, x.Present, x.Different, x.Behind, x.SHA256)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	paint := cli.Painter(a.Colour(a.Out))
	verdict := paint.Paint(cli.Green, "nothing is missing")
	if r.Missing > 0 {
		verdict = paint.Paint(cli.Red, fmt.Sprintf("%d are missing", r.Missing))
	}
	if r.Trimmed > 0 {
		fmt.Fprintf(a.Out, "\n%s\n", paint.Paint(cli.Yellow, fmt.Sprintf("%d of %d acknowledged appends lie below what is kept: they were trimmed, and nothing can be said of them", r.Trimmed, r.Acked)))
	}
	_, err := fmt.Fprintf(a.Out, "\n%d acknowledged appends in [%v, %v): %s; replicas identical: %v\n", r.Acked-r.Trimmed, r.Begin, r.End, verdict, r.Identical)
	return err
}
