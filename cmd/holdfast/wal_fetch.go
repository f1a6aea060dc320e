package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed7f3f3bb8/holdfast/bridge/quorum"
	"github.com/seed7f3f3bb8/holdfast/bridge/walfetch"
	"github.com/seed7f3f3bb8/holdfast/cli"
)

// fetchFlags are the settings of "wal-fetch".
type fetchFlags struct {
	clientFlags
	standby, live bool
	wait          time.Duration
	ahead         int
	aheadDir      string
	fill          bool
}

func newWALFetch(a *app) *cobra.Command {
	var f fetchFlags
	cmd := &cobra.Command{
		Use:   "wal-fetch FILE TARGET",
		Short: "PostgreSQL's restore_command: bring a WAL or history file from the acceptors",
		Long: `Write one WAL segment or history file, whole and durable, or say that there is
none. The exit status is PostgreSQL's, not the other commands':

  0    the file is there
  1    a majority of the acceptors proves that there is no such file: recovery ends
  255  nothing is proved: PostgreSQL stops, and does not go on without what is missing

Recovery to the end of the log needs a log that nobody writes any more: run
"holdfast fence" first. With --standby the file that is still being filled counts
as missing, for a standby that streams it instead. With --live the log is taken
as it is now, for a copy that is never to become the primary.`,
		Example: `  restore_command = 'holdfast wal-fetch --acceptors a:7001,b:7001,c:7001 --timeline prod/main %f "%p"'
  restore_command = 'holdfast wal-fetch --standby --acceptors a:7001,b:7001,c:7001 --timeline prod/main %f "%p"'`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			outcome, err := f.run(cmd.Context(), a, args[0], args[1])
			if err == nil && outcome == walfetch.Absent {
				err = fmt.Errorf("%s: there is no such file", args[0])
			}
			return cli.WithCode(cli.Code(outcome.ExitStatus()), err)
		},
	}
	f.addTimelineTo(cmd, true)
	flags := cmd.Flags()
	flags.BoolVar(&f.standby, "standby", false, "for a standby that streams: a file that is not full yet is missing")
	flags.BoolVar(&f.live, "live", false, "for a copy: the log ends where it is committed now")
	flags.DurationVar(&f.wait, "wait", 30*time.Second, "how long a missing majority is waited for")
	flags.IntVar(&f.ahead, "read-ahead", 4, "segments to fetch before they are asked for; 0 = none")
	flags.StringVar(&f.aheadDir, "read-ahead-dir", "", "where they wait (default: a directory beside TARGET)")
	flags.BoolVar(&f.fill, "fill", false, "only fetch what follows FILE")
	_ = flags.MarkHidden("fill")
	cmd.MarkFlagsMutuallyExclusive("standby", "live")
	cli.CommandLineOnly(cmd, "fill")
	return cmd
}

// fillWait bounds a read-ahead.
const fillWait = 2 * time.Minute

func (f *fetchFlags) run(ctx context.Context, a *app, name, target string) (walfetch.Outcome, error) {
	if f.aheadDir == "" {
		f.aheadDir = filepath.Join(filepath.Dir(target), "holdfast-ahead")
	}
	ahead := walfetch.Ahead{Dir: f.aheadDir, Files: f.ahead, Key: f.timeline.String()}
	q, err := f.openQuorum(quorum.Config{})
	if err != nil {
		return walfetch.Failed, err
	}
	defer q.Close()
	fetcher := &walfetch.Fetcher{Source: q, Patience: f.wait}
	switch {
	case f.standby:
		fetcher.Mode = walfetch.Standby
	case f.live:
		fetcher.Mode = walfetch.Live
	}
	if f.fill {
		ctx, cancel := context.WithTimeout(ctx, fillWait)
		defer cancel()
		return walfetch.Delivered, ahead.Fill(ctx, fetcher, name)
	}
	outcome := walfetch.Delivered
	taken, err := ahead.Take(name, target)
	if err != nil {
		return walfetch.Failed, err
	}
	if !taken {
		outcome, err = fetcher.Fetch(ctx, name, target)
	}
	switch {
	case outcome == walfetch.Delivered && len(name) == 24 && f.ahead > 0:
		f.fillBehind(a, name, target)
	case outcome == walfetch.Absent && len(name) == 24 && f.ahead > 0:
		ahead.Clear()
	}
	return outcome, err
}

// fillBehind starts a process that fetches what follows while PostgreSQL
// replays. That it cannot be started is no fault: the files are fetched later.
func (f *fetchFlags) fillBehind(a *app, name, target string) {
	self, err := os.Executable()
	if err != nil {
		return
	}
	cmd := exec.Command(self, "wal-fetch", "--fill", "--acceptors", f.acceptors.String(), "--timeline", f.timeline.String(),
		"--read-ahead", fmt.Sprint(f.ahead), "--read-ahead-dir", f.aheadDir, name, target)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(a.Err, "holdfast: read-ahead:", err)
		return
	}
	_ = cmd.Process.Release()
}
