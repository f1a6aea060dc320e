package quorum

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/bridge/ingest"
	"github.com/seed7f3f3bb8/holdfast/bridge/pgwal"
	"github.com/seed7f3f3bb8/holdfast/metrics"
	"github.com/seed7f3f3bb8/holdfast/proposer"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Config names a log and where to ask for it.
type Config struct {
	Acceptors   []string
	Timeline    wal.TimelineID
	WindowBytes int               // of the writer; 0 = the proposer's default
	Logger      *zap.Logger       // nil = none
	Metrics     *metrics.Proposer // nil = none
}

// Quorum is one timeline on its acceptors. Its methods may be called by many goroutines.
type Quorum struct {
	config Config
	client *admin.Client
}

// New prepares connections; it waits for nobody. Close ends them.
func New(c Config) (*Quorum, error) {
	client, err := admin.Dial(c.Acceptors)
	if err != nil {
		return nil, err
	}
	return &Quorum{c, client}, nil
}

// Close ends the connections for reading. A Writer is closed by itself.
func (q *Quorum) Close() error { return q.client.Close() }

// Timeline is the log's name.
func (q *Quorum) Timeline() wal.TimelineID { return q.config.Timeline }

// Open implements ingest.Elector.
func (q *Quorum) Open(ctx context.Context, systemID uint64, decide func(context.Context, ingest.Election) (ingest.Decision, error)) (ingest.Writer, error) {
	p, err := proposer.Open(ctx, proposer.Config{
		Acceptors: q.config.Acceptors, Timeline: q.config.Timeline, SystemID: systemID, WindowBytes: q.config.WindowBytes,
		Logger: q.config.Logger, Metrics: q.config.Metrics,
		Decide: func(ctx context.Context, e proposer.Election) (proposer.Decision, error) {
			d, err := decide(ctx, ingest.Election{
				Term: e.Term, Donor: e.Donor, History: e.History, Start: e.Start, SystemID: e.SystemID, Properties: e.Properties,
				Commit: e.Commit, MayBeCommitted: e.MayBeCommitted,
			})
			return proposer.Decision{Start: d.Start, SystemID: d.SystemID, Properties: d.Properties}, err
		},
	})
	if err != nil {
		return nil, explain(err, q.config.Timeline)
	}
	return writer{p, q.config.Timeline}, nil
}

// writer gives a proposer's end the form that the bridge knows.
type writer struct {
	*proposer.Proposer
	timeline wal.TimelineID
}

func (w writer) Append(ctx context.Context, data []byte) (begin, end wal.LSN, err error) {
	begin, end, err = w.Proposer.Append(ctx, data)
	return begin, end, explain(err, w.timeline)
}

func (w writer) Err() error { return explain(w.Proposer.Err(), w.timeline) }

// explain says which ends of a proposer are for good.
func explain(err error, timeline wal.TimelineID) error {
	if err == nil {
		return nil // before the variables below, which would be allocated for every append
	}
	var fenced *proposer.FencedError
	var refused *proposer.RefusedError
	switch {
	case errors.As(err, &fenced):
		return &ingest.FencedError{Term: fenced.Term, Err: err}
	case errors.Is(err, proposer.ErrNotFound):
		return &ingest.LogError{Err: fmt.Errorf("timeline %v: %w", timeline, err), Remedy: `create it with "holdfast pg init"`}
	case errors.As(err, &refused):
		return &ingest.LogError{Err: err, Remedy: "check --acceptors and --timeline: the acceptors keep another creation of it, or another database's log"}
	}
	return err
}

// ReadDonor implements ingest.Elector.
func (q *Quorum) ReadDonor(ctx context.Context, e ingest.Election, begin, end wal.LSN, each func([]byte) error) error {
	for _, a := range q.client.Timelines(ctx, q.config.Timeline) {
		if a.Err != nil || a.Value.Node != e.Donor {
			continue
		}
		o := admin.ReadOptions{Timeline: q.config.Timeline, Creation: a.Value.Creation, Begin: begin, End: end,
			PinnedTerm: a.Value.History.LastTerm()}
		at, err := q.client.Read(ctx, a.Addr, o, func(c wal.Chunk) error { return each(c.Data) })
		if oldest, ok := admin.TrimmedAt(err); ok {
			return &ingest.TrimmedError{Oldest: oldest}
		}
		if err == nil && at != end {
			err = fmt.Errorf("acceptor %s ended the read of [%v, %v) at %v", a.Addr, begin, end, at)
		}
		return err
	}
	return fmt.Errorf("the log's donor, node %d, does not answer at any of the addresses that --acceptors names", e.Donor)
}

// View is what a majority of the members says of the log.
type View struct {
	Properties pgwal.Properties
	Written    bool // a PostgreSQL has written it; without, Properties are zero
	SystemID   uint64
	Creation   wal.CreationID
	First      wal.LSN  // where the log began
	Oldest     wal.LSN  // the oldest byte that some acceptor can still be read from
	Commit     wal.LSN  // the highest commit position that any of them knows
	End        wal.LSN  // of the log that the next election would begin from; nothing beyond can be committed
	Term       wal.Term // the last term of that log
}

// Settled reports whether everything in the log is known to be committed: its
// end cannot move back, and, while it is fenced, not forward either.
func (v View) Settled() bool { return v.Commit == v.End }

// Ancestry is the cluster's TLIs as far as the log reaches: a TLI that began
// beyond is not there yet.
func (v View) Ancestry() pgwal.Ancestry {
	a := v.Properties.Ancestry
	return a[:a.At(v.End)+1]
}

// View asks all members. Without answers of a majority it is an error, admin.ErrNoQuorum or admin.ErrNotFound.
func (q *Quorum) View(ctx context.Context) (View, error) {
	answers := q.client.Timelines(ctx, q.config.Timeline)
	best, err := admin.Best(answers)
	if err != nil {
		return View{}, fmt.Errorf("timeline %v: %w", q.config.Timeline, err)
	}
	b := best.Value
	v := View{SystemID: b.SystemID, Creation: b.Creation, First: b.First, Oldest: b.Oldest, End: b.Flush, Term: b.LastLogTerm}
	for _, a := range answers {
		if a.Err == nil && a.Value.Creation == b.Creation {
			v.Commit = max(v.Commit, a.Value.Commit)
			v.Oldest = min(v.Oldest, a.Value.Oldest)
		}
	}
	if b.LastLogTerm != 0 {
		if v.Properties, err = pgwal.DecodeProperties(b.Properties); err != nil {
			return View{}, fmt.Errorf("timeline %v: %w", q.config.Timeline, err)
		}
		v.Written = true
	}
	return v, nil
}
