package main

import (
	"fmt"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/cli"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

func newStatus(a *app) *cobra.Command {
	var flags clientFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what each acceptor says, and what nobody can say",
		Long: `Ask every acceptor and show its own answer. What is not known is shown as
unknown: an acceptor that does not answer is not shown as it last was.`,
		Example: `  holdfast status --acceptors a:7001,b:7001,c:7001
  holdfast status --acceptors a:7001,b:7001,c:7001 --timeline prod/main --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := flags.dial()
			if err != nil {
				return err
			}
			defer c.Close()
			ctx, cancel := flags.question(cmd.Context())
			defer cancel()
			report := statusReport{Verdict: verdictOK}
			// Both questions at a time: one that hangs must not use up the other's time.
			var copies []admin.Answer[*admin.Timeline]
			var asking sync.WaitGroup
			if flags.timeline.String() != "" {
				asking.Go(func() { copies = c.Timelines(ctx, flags.timeline.TimelineID) })
			}
			report.addNodes(c.Nodes(ctx))
			asking.Wait()
			if copies != nil {
				report.addTimeline(flags.timeline.TimelineID, copies)
			}
			if asJSON {
				err = a.printJSON(report)
			} else {
				err = report.print(a)
			}
			if err != nil {
				return err
			}
			return report.err()
		},
	}
	flags.addTimelineTo(cmd, false)
	jsonFlag(cmd, &asJSON)
	return cmd
}

// Verdicts of a status report, from good to bad.
const (
	verdictOK       = "ok"
	verdictDegraded = "degraded"  // works, with a member missing or unhealthy
	verdictNoQuorum = "no quorum" // no majority answers
	verdictNotFound = "not found" // no acceptor has the timeline
)

// statusReport is what "status --json" prints. Pointers are null where nothing is known.
type statusReport struct {
	Verdict   string          `json:"verdict"`
	Why       []string        `json:"why,omitempty"`
	Acceptors []nodeStatus    `json:"acceptors"`
	Timeline  *timelineStatus `json:"timeline,omitempty"`
}

type nodeStatus struct {
	Addr          string      `json:"addr"`
	Node          *wal.NodeID `json:"node"`
	Version       *string     `json:"version"`
	UptimeSeconds *float64    `json:"uptime_seconds"`
	Ready         *bool       `json:"ready"`
	NotReady      []string    `json:"not_ready_reasons,omitempty"`
	Timelines     *uint64     `json:"timelines"`
	Unhealthy     *uint64     `json:"unhealthy_timelines"`
	DiskFree      *uint64     `json:"disk_free_bytes"`
	Error         string      `json:"error,omitempty"`
}

type timelineStatus struct {
	Timeline wal.TimelineID `json:"timeline"`
	Creation string         `json:"creation_id"`
	Commit   *wal.LSN       `json:"commit_lsn"` // highest that an acceptor knows of
	Members  []memberStatus `json:"members"`
}

type memberStatus struct {
	Addr        string      `json:"addr"`
	Node        *wal.NodeID `json:"node"`
	Health      string      `json:"health"` // "unknown" if it did not answer
	Reason      string      `json:"health_reason,omitempty"`
	Damage      []damage    `json:"damage,omitempty"`
	Term        *wal.Term   `json:"term"`
	LastLogTerm *wal.Term   `json:"last_log_term"`
	Write       *wal.LSN    `json:"write_lsn"`
	Flush       *wal.LSN    `json:"flush_lsn"`
	Commit      *wal.LSN    `json:"commit_lsn"`
	Horizon     *wal.LSN    `json:"horizon_lsn"`
	Oldest      *wal.LSN    `json:"oldest_lsn"`
	LagBytes    *uint64     `json:"lag_bytes"` // behind the member that is furthest
	DiskBytes   *uint64     `json:"disk_bytes"`
	Proposer    string      `json:"proposer,omitempty"`   // whose stream is open
	ContactAge  *float64    `json:"last_contact_seconds"` // null: none since it started
	Error       string      `json:"error,omitempty"`
}

func (r *statusReport) worsen(verdict, why string) {
	rank := map[string]int{verdictOK: 0, verdictDegraded: 1, verdictNotFound: 2, verdictNoQuorum: 3}
	if rank[verdict] > rank[r.Verdict] {
		r.Verdict = verdict
	}
	r.Why = append(r.Why, why)
}

func (r *statusReport) addNodes(answers []admin.Answer[admin.Node]) {
	silent := 0
	for _, x := range answers {
		s := nodeStatus{Addr: x.Addr}
		if x.Err != nil {
			s.Error = x.Err.Error()
			silent++
			r.worsen(verdictDegraded, fmt.Sprintf("acceptor %s: %v", x.Addr, x.Err))
			r.Acceptors = append(r.Acceptors, s)
			continue
		}
		info := x.Value.Info
		version, ready, total, free := info.GetVersion(), info.GetReady(), info.GetTimelines().GetTotal(), info.GetDiskFreeBytes()
		sick := info.GetTimelines().GetPoisoned() + info.GetTimelines().GetQuarantined() + info.GetTimelines().GetLost()
		s.Node, s.Version, s.Ready, s.Timelines, s.Unhealthy, s.DiskFree = &x.Value.ID, &version, &ready, &total, &sick, &free
		s.NotReady = info.GetNotReadyReasons()
		if up := info.GetUptime(); up != nil {
			seconds := up.AsDuration().Seconds()
			s.UptimeSeconds = &seconds
		}
		if !ready {
			r.worsen(verdictDegraded, fmt.Sprintf("acceptor %s is not ready: %q", x.Addr, s.NotReady))
		}
		if sick > 0 {
			r.worsen(verdictDegraded, fmt.Sprintf("acceptor %s has %d unhealthy timelines", x.Addr, sick))
		}
		r.Acceptors = append(r.Acceptors, s)
	}
	if len(answers)-silent <= len(answers)/2 {
		r.worsen(verdictNoQuorum, fmt.Sprintf("%d of %d acceptors answer", len(answers)-silent, len(answers)))
	}
}

func (r *statusReport) err() error {
	switch r.Verdict {
	case verdictDegraded:
		return cli.Errorf(cli.Degraded, "degraded")
	case verdictNoQuorum:
		return admin.ErrNoQuorum
	case verdictNotFound:
		return admin.ErrNotFound
	}
	return nil
}

func (r *statusReport) print(a *app) error {
	paint := cli.Painter(a.Colour(a.Out))
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ACCEPTOR\tNODE\tREADY\tUPTIME\tTIMELINES\tDISK FREE\tVERSION")
	for _, s := range r.Acceptors {
		if s.Node == nil {
			fmt.Fprintf(w, "%s\tunknown\tunknown\tunknown\tunknown\tunknown\tunknown\n", s.Addr)
			continue
		}
		fmt.Fprintf(w, "%s\t%d\t%v\t%s\t%d\t%s\t%s\n", s.Addr, *s.Node, *s.Ready, age(s.UptimeSeconds), *s.Timelines,
			cli.Bytes(*s.DiskFree).Human(), *s.Version)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if r.Timeline != nil {
		r.Timeline.print(a)
	}
	colour := map[string]string{verdictOK: cli.Green, verdictDegraded: cli.Yellow}[r.Verdict]
	fmt.Fprintf(a.Out, "\n%s\n", paint.Paint(or(colour, cli.Red), r.Verdict))
	for _, why := range r.Why {
		fmt.Fprintln(a.Out, " ", why)
	}
	return nil
}

// age prints seconds as a short duration; unknown if there are none.
func age(seconds *float64) string {
	if seconds == nil {
		return "unknown"
	}
	d := time.Duration(*seconds * float64(time.Second))
	if d < 10*time.Second {
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
