package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/cli"
	"github.com/seed7f3f3bb8/holdfast/proposer"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"github.com/seed7f3f3bb8/holdfast/workload"
)

// loadFlags are the settings of "load".
type loadFlags struct {
	clientFlags
	spawn       spawnFlags
	create      bool
	size        cli.Bytes
	concurrency int
	duration    time.Duration
	warm        time.Duration
	seed        uint64
	ackLog      string
	segments    string
	until       cli.LSN
	window      cli.Bytes
	request     cli.Bytes
	noCoalesce  bool
	rate        cli.Bytes
	settle      time.Duration
	settleAll   bool // --settle was given: a member that is away is waited for, too
	openWait    time.Duration
	asJSON      bool
}

func newLoad(a *app) *cobra.Command {
	f := loadFlags{size: 8 << 10, window: 64 << 20, request: 256 << 10}
	cmd := &cobra.Command{
		Use:   "load",
		Short: "Drive a timeline: a closed loop of appends, or PostgreSQL's segment files",
		Long: `Drive a timeline as its proposer.

Without --from-segments it is a closed loop: each of --concurrency clients has
one append of --size in flight and begins the next when that one is committed.
With --from-segments it streams PostgreSQL WAL segment files at their own
positions and goes on where the log ends, so a load that was interrupted is
completed by repeating it.

Before it leaves it waits a little for those acceptors that are connected and
behind: an append is committed when a majority has it, and only a proposer brings
the others the rest.

With --spawn it starts acceptors of its own on this machine, measures what they
cost as well, and removes them and their data.`,
		Example: `  holdfast load --spawn 3 --size 128 --json
  holdfast load --acceptors a:7001,b:7001,c:7001 --timeline prod/test --create --size 8KiB --concurrency 64 --duration 10s
  holdfast load --acceptors a:7001,b:7001,c:7001 --timeline prod/test --ack-log acks.log --json
  holdfast load --acceptors a:7001,b:7001,c:7001 --timeline prod/pg --create --from-segments ./pg_wal --until 0/704E0C8`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.settleAll = cmd.Flags().Changed("settle")
			return f.run(cmd.Context(), a)
		},
	}
	f.addTimelineTo(cmd, true)
	f.spawn.addTo(cmd)
	jsonFlag(cmd, &f.asJSON)
	flags := cmd.Flags()
	flags.BoolVar(&f.create, "create", false, "create the timeline if it is not there")
	flags.Var(&f.size, "size", "bytes of an append")
	flags.IntVar(&f.concurrency, "concurrency", 64, "clients")
	flags.DurationVar(&f.duration, "duration", 10*time.Second, "how long to measure")
	flags.DurationVar(&f.warm, "warm", 0, "how long to drive before measuring")
	flags.Uint64Var(&f.seed, "seed", 0, "what payloads are made from; 0 = chosen at random")
	flags.StringVar(&f.ackLog, "ack-log", "", "file to record acknowledged appends in, for audit")
	flags.StringVar(&f.segments, "from-segments", "", "directory of PostgreSQL WAL segment files to stream")
	flags.Var(&f.until, "until", "end of the valid WAL in the segment files (default: their end)")
	flags.Var(&f.rate, "rate", "stream segment files no faster than so many bytes a second; 0 = as fast as it goes")
	flags.DurationVar(&f.settle, "settle", settleWait, "before leaving, wait so long for acceptors that are behind; if it is given, for those that are away, too, and exit code 3 says that one is still behind")
	flags.DurationVar(&f.openWait, "open-wait", 30*time.Second, "how long winning the election may take")
	flags.Var(&f.window, "window-bytes", "bytes that may be on their way")
	flags.Var(&f.request, "request-bytes", "the most that is coalesced into one request")
	flags.BoolVar(&f.noCoalesce, "no-coalesce", false, "send every append as a request of its own, for comparison")
	cli.Between(cmd, "size", &f.size, 1, proposer.AppendBytesMax)
	cli.Between(cmd, "concurrency", &f.concurrency, 1, clientsMax)
	cli.AtLeast(cmd, "duration", &f.duration, time.Millisecond)
	cli.AtLeast(cmd, "warm", &f.warm, 0)
	cli.AtLeast(cmd, "settle", &f.settle, 0)
	cli.AtLeast(cmd, "open-wait", &f.openWait, time.Millisecond)
	cli.Between(cmd, "request-bytes", &f.request, 1, wal.RequestBytesMax)
	return cmd
}

const (
	settleWait = 30 * time.Second // without --settle
	clientsMax = 100_000

	// payloadsBytesMax bounds what all clients together hold in memory.
	payloadsBytesMax = 4 << 30
)

func (f *loadFlags) run(ctx context.Context, a *app) error {
	if f.spawn.nodes > 0 {
		stop, err := f.spawn.start(ctx, f)
		if err != nil {
			return err
		}
		return errors.Join(f.load(ctx, a), stop())
	}
	return f.load(ctx, a)
}

func (f *loadFlags) load(ctx context.Context, a *app) error {
	files, err := f.openSegments()
	if err != nil {
		return err
	}
	first := wal.LSN(0)
	if files != nil {
		first = files.Begin
	} else if all := f.size * cli.Bytes(f.concurrency); all > payloadsBytesMax {
		return cli.Errorf(cli.Usage, "--size %v for each of %d clients is %s of memory, at most %s: use fewer or smaller", f.size, f.concurrency, all.Human(), cli.Bytes(payloadsBytesMax).Human())
	}
	if f.create {
		if err := f.createTimeline(ctx, first); err != nil {
			return err
		}
	}
	acks, err := f.openAckLog()
	if err != nil {
		return err
	}
	err = f.propose(ctx, a, files, acks)
	if acks != nil {
		err = errors.Join(err, acks.Close())
	}
	return err
}

// openSegments looks at the files and at --until before anything is created or
// sent: what is appended by mistake cannot be taken back. It returns nil without --from-segments.
func (f *loadFlags) openSegments() (*workload.SegmentFiles, error) {
	if f.segments == "" {
		if f.until.Given {
			return nil, cli.Errorf(cli.Usage, "--until is about --from-segments")
		}
		return nil, nil
	}
	files, err := workload.OpenSegmentFiles(f.segments)
	if err == nil && f.until.Given && (f.until.LSN <= files.Begin || f.until.LSN > files.End) {
		err = cli.Errorf(cli.Usage, "--until %v is not in the segment files in %s: they hold [%v, %v)", f.until.LSN, f.segments, files.Begin, files.End)
	}
	return files, err
}

func (f *loadFlags) propose(ctx context.Context, a *app, files *workload.SegmentFiles, acks *workload.AckLog) error {
	p, err := f.openProposer(ctx)
	if err != nil {
		return err
	}
	if files != nil {
		err = f.feed(ctx, a, p, files, acks)
	} else {
		err = f.drive(ctx, a, p, acks)
	}
	if err == nil && f.settle > 0 && ctx.Err() == nil {
		err = f.wait(ctx, a, p)
	}
	return errors.Join(err, p.Close())
}

// wait returns when every acceptor that is awaited holds everything.
func (f *loadFlags) wait(parent context.Context, a *app, p *proposer.Proposer) error {
	ctx, cancel := context.WithTimeout(parent, f.settle)
	defer cancel()
	progress := a.NewProgress(func() string {
		return "waiting for every acceptor: " + cli.Bytes(workload.Lag(p.Status())).Human() + " to go"
	})
	settle := workload.SettleConnected
	if f.settleAll {
		settle = workload.Settle
	}
	err := settle(ctx, p)
	progress.Stop()
	switch {
	case parent.Err() != nil:
		return nil // an interrupt: it has waited long enough
	case err != nil && f.settleAll:
		return cli.Errorf(cli.Degraded, "not every acceptor holds everything after %v: %w", f.settle, err)
	}
	s := p.Status()
	for _, m := range s.Members {
		if m.Adopted && m.Flush >= s.Tail {
			continue
		}
		switch {
		case m.Err != nil:
			fmt.Fprintf(a.Err, "holdfast: warning: acceptor %s does not take part: %v\n", m.Addr, m.Err)
		case m.LagBytes > 0:
			fmt.Fprintf(a.Err, "holdfast: warning: acceptor %s is %s behind; the next proposer brings it the rest\n", m.Addr, cli.Bytes(m.LagBytes).Human())
		case m.Connected:
			fmt.Fprintf(a.Err, "holdfast: warning: acceptor %s is behind; the next proposer brings it the rest\n", m.Addr)
		default:
			fmt.Fprintf(a.Err, "holdfast: warning: acceptor %s is away; the next proposer brings it what it lacks\n", m.Addr)
		}
	}
	return nil
}

func (f *loadFlags) createTimeline(ctx context.Context, first wal.LSN) error {
	c, err := f.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := f.question(ctx)
	defer cancel()
	if found := c.Timelines(ctx, f.timeline.TimelineID); !incomplete(found) {
		if _, err := admin.Best(found); err == nil {
			return nil // it is there; a member may be away
		}
	}
	_, _, err = c.Create(ctx, admin.Creation{Timeline: f.timeline.TimelineID, First: first})
	return err
}

// incomplete reports whether a creation reached only some: then it is repeated.
func incomplete(found []admin.Answer[*admin.Timeline]) bool {
	missing := false
	for _, x := range found {
		if x.Err == nil && x.Value.Term != 0 {
			return false
		}
		missing = missing || errors.Is(x.Err, admin.ErrNotFound)
	}
	return missing
}

func (f *loadFlags) openAckLog() (*workload.AckLog, error) {
	for f.seed == 0 {
		var b [8]byte
		rand.Read(b[:])
		f.seed = binary.LittleEndian.Uint64(b[:])
	}
	if f.ackLog == "" {
		return nil, nil
	}
	return workload.OpenAckLog(f.ackLog, f.timeline.TimelineID, f.seed)
}

func (f *loadFlags) openProposer(ctx context.Context) (*proposer.Proposer, error) {
	ctx, cancel := context.WithTimeout(ctx, f.openWait)
	defer cancel()
	p, err := proposer.Open(ctx, proposer.Config{
		Acceptors: f.acceptors, Timeline: f.timeline.TimelineID,
		WindowBytes: int(f.window), RequestBytesMax: int(f.request), NoCoalesce: f.noCoalesce,
	})
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w within %v: %w", admin.ErrNoQuorum, f.openWait, err)
	}
	return p, err
}

func (f *loadFlags) drive(ctx context.Context, a *app, p *proposer.Proposer, acks *workload.AckLog) error {
	load := workload.Load{
		Size: int(f.size), Concurrency: f.concurrency, Duration: f.duration, Warm: f.warm,
		Payloads: workload.NewPayloads(f.seed), Acks: acks,
	}
	probe := f.spawn.probe(ctx)
	load.Began, load.Ended = probe.Begin, probe.End
	var meter workload.Meter
	rates := workload.NewRates(&meter)
	progress := a.NewProgress(func() string { return rates.Next().String() })
	result, err := load.Drive(ctx, p, &meter)
	progress.Stop()
	if f.asJSON {
		return errors.Join(err, a.printJSON(loadReport{readBuildInfo().Version, result, probe.Cost(result.Ops, result.Payload)}))
	}
	fmt.Fprintf(a.Out, "%d appends of %v by %d clients in %.1f s: %.0f appends/s, %.1f MB/s\n",
		result.Ops, f.size.String(), result.Clients, result.Seconds, result.OpsS, result.MBS)
	fmt.Fprintf(a.Out, "ack p50 %.2f ms, p99 %.2f ms, p99.9 %.2f ms, max %.2f ms\n", result.P50MS, result.P99MS, result.P999MS, result.MaxMS)
	return err
}

// feedResult is what "load --from-segments --json" prints.
type feedResult struct {
	Timeline wal.TimelineID `json:"timeline"`
	Begin    wal.LSN        `json:"begin"` // where this run went on
	End      wal.LSN        `json:"end"`   // committed
	Bytes    uint64         `json:"bytes"`
	Seconds  float64        `json:"secs"`
	MBS      float64        `json:"mb_s"`
}

// feedChunkBytes is what one append of a feed carries.
const feedChunkBytes = 128 << 10

func (f *loadFlags) feed(ctx context.Context, a *app, p *proposer.Proposer, files *workload.SegmentFiles, acks *workload.AckLog) error {
	began, begin := time.Now(), p.Tail()
	feed := workload.Feed{Files: files, Until: f.until.LSN, Chunk: feedChunkBytes, Acks: acks, BytesPerSecond: int(f.rate)}
	var meter workload.FeedMeter
	progress := a.NewProgress(func() string {
		return fmt.Sprintf("sent %v, committed %v", wal.LSN(meter.Sent.Load()), wal.LSN(meter.Acked.Load()))
	})
	err := feed.Run(ctx, p, begin, &meter)
	progress.Stop()
	end := max(begin, p.Commit())
	result := feedResult{f.timeline.TimelineID, begin, end, uint64(end - begin), time.Since(began).Seconds(), 0}
	result.MBS = float64(result.Bytes) / 1e6 / result.Seconds
	if f.asJSON {
		return errors.Join(err, a.printJSON(result))
	}
	if err == nil {
		fmt.Fprintf(a.Out, "[%v, %v) committed: %s in %.1f s, %.1f MB/s\n", begin, end, cli.Bytes(result.Bytes).Human(), result.Seconds, result.MBS)
	}
	return err
}
