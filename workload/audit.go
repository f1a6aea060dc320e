package workload

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Cluster is what an audit needs of the acceptors; *admin.Client is one.
type Cluster interface {
	Timelines(ctx context.Context, id wal.TimelineID) []admin.Answer[*admin.Timeline]
	Read(ctx context.Context, addr string, o admin.ReadOptions, yield func(wal.Chunk) error) (wal.LSN, error)
}

// Audit reads every acknowledged append back from each acceptor's own disk.
type Audit struct {
	Cluster  Cluster
	Timeline wal.TimelineID
	Acks     *Acks
	Read     *atomic.Uint64 // counts the bytes read; nil if nobody looks

	AnswerWait time.Duration // how long an acceptor may take to say where it stands; 0 = as long as ctx
}

// AuditResult says what an audit found. Missing is the verdict.
type AuditResult struct {
	Timeline wal.TimelineID `json:"timeline"`
	Acked    int            `json:"acked_appends"`
	// Missing counts the acknowledged appends that the quorum's log does not
	// hold byte for byte: that log is the one from which the next proposer would begin.
	Missing int     `json:"missing"`
	Trimmed int     `json:"trimmed"` // below what is kept; nothing can be said of them
	Begin   wal.LSN `json:"begin"`   // compared range, of all replicas
	End     wal.LSN `json:"end"`
	// Identical: every member was read and holds the same bytes in the same range.
	Identical bool      `json:"replicas_identical"`
	Replicas  []Replica `json:"replicas"`
}

// Replica is one acceptor's part of an audit.
type Replica struct {
	Addr      string     `json:"addr"`
	Node      wal.NodeID `json:"node"` // 0 if it did not answer
	Read      bool       `json:"read"`
	Error     string     `json:"error,omitempty"`
	Health    string     `json:"health"`
	Commit    wal.LSN    `json:"commit_lsn"`
	Flush     wal.LSN    `json:"flush_lsn"`
	Present   int        `json:"present"`   // acknowledged appends found byte for byte
	Different int        `json:"different"` // other bytes stand there
	Behind    int        `json:"behind"`    // above the end of this log
	SHA256    string     `json:"sha256"`    // of [begin, end)
	Examples  []string   `json:"examples,omitempty"`
}

// Run audits. It returns admin.ErrNoQuorum or admin.ErrNotFound if the
// acceptors cannot say enough for a verdict.
func (a *Audit) Run(ctx context.Context) (*AuditResult, error) {
	if len(a.Acks.Runs) == 0 {
		return nil, errors.New("the ack log holds no load: there is nothing to prove")
	}
	for _, run := range a.Acks.Runs {
		if run.Timeline != a.Timeline {
			return nil, fmt.Errorf("the ack log is about %v, not about %v", run.Timeline, a.Timeline)
		}
	}
	answers := a.ask(ctx)
	best, err := admin.Best(answers)
	if err != nil {
		return nil, err
	}
	r := &AuditResult{Timeline: a.Timeline, Acked: len(a.Acks.List), Begin: best.Value.Oldest, End: best.Value.Flush}
	if len(a.Acks.List) > 0 {
		r.Begin = max(r.Begin, a.Acks.List[0].Begin)
	}
	for _, x := range answers {
		if x.Err == nil && x.Value.Creation == best.Value.Creation {
			r.Begin = max(r.Begin, x.Value.Oldest)
		}
	}
	r.End = max(r.End, r.Begin)
	payloads := make([]*Payloads, len(a.Acks.Runs))
	for i, run := range a.Acks.Runs {
		payloads[i] = NewPayloads(run.Seed)
	}

	r.Replicas = make([]Replica, len(answers))
	var wg sync.WaitGroup
	for i, x := range answers {
		wg.Go(func() {
			v := newVerifier(a.Acks, payloads, r.Begin)
			r.Replicas[i] = a.replica(ctx, x, best.Value.Creation, r.End, v)
			if x.Addr == best.Addr {
				r.Trimmed = v.trimmed
			}
		})
	}
	wg.Wait()
	for i, x := range answers {
		if x.Addr != best.Addr {
			continue
		}
		if !r.Replicas[i].Read {
			return r, fmt.Errorf("acceptor %s holds the quorum's log and could not be read: %s", x.Addr, r.Replicas[i].Error)
		}
		r.Missing = r.Replicas[i].Different + r.Replicas[i].Behind
	}
	r.Identical = identical(r.Replicas)
	return r, nil
}

func (a *Audit) ask(ctx context.Context) []admin.Answer[*admin.Timeline] {
	if a.AnswerWait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.AnswerWait)
		defer cancel()
	}
	return a.Cluster.Timelines(ctx, a.Timeline)
}

// replica reads one acceptor's bytes up to end, or as far as it has them.
func (a *Audit) replica(ctx context.Context, x admin.Answer[*admin.Timeline], creation wal.CreationID, end wal.LSN, v *verifier) Replica {
	r := Replica{Addr: x.Addr, Health: "unknown"}
	if x.Err != nil {
		r.Error = x.Err.Error()
		return r
	}
	t := x.Value
	r.Node, r.Health, r.Commit, r.Flush = t.Node, t.Health.String(), t.Commit, t.Flush
	if t.Health == wal.Lost {
		r.Error = "its copy is lost: " + t.HealthReason
		return r
	}
	if t.Creation != creation {
		r.Error = "its copy is of another creation of the timeline"
		return r
	}
	o := admin.ReadOptions{Timeline: a.Timeline, Creation: creation, Begin: v.at, End: min(end, t.Flush)}
	if o.End > t.Commit {
		// What it does not know to be committed it gives to a recovery read.
		o.PinnedTerm = t.History.LastTerm()
	}
	if o.Begin < o.End {
		_, err := a.Cluster.Read(ctx, x.Addr, o, func(c wal.Chunk) error {
			if a.Read != nil {
				a.Read.Add(uint64(len(c.Data)))
			}
			return v.chunk(c)
		})
		if err == nil && v.at != o.End {
			err = fmt.Errorf("its answer ended at %v, before %v", v.at, o.End)
		}
		if err != nil {
			r.Error = err.Error()
			return r
		}
	}
	r.Read, r.SHA256 = true, v.sum()
	r.Present, r.Different, r.Behind = v.present, v.differing, v.behind()
	for _, k := range v.different {
		r.Examples = append(r.Examples, fmt.Sprintf("[%v, %v)", k.Begin, k.End))
	}
	return r
}

// identical reports whether all replicas were read and hold the same bytes.
func identical(replicas []Replica) bool {
	for _, r := range replicas {
		if !r.Read || r.SHA256 != replicas[0].SHA256 || r.Flush != replicas[0].Flush {
			return false
		}
	}
	return len(replicas) > 0
}

// ErrMissing: an acknowledged append is not there.
var ErrMissing = errors.New("acknowledged appends are missing")

// Err is the verdict as an error: nil, or ErrMissing.
func (r *AuditResult) Err() error {
	if r.Missing > 0 {
		return fmt.Errorf("%w: %d of %d", ErrMissing, r.Missing, r.Acked)
	}
	return nil
}
