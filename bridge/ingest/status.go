package ingest

import (
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/seed7f3f3bb8/holdfast/bridge/pgwal"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Protection says what a COMMIT on the primary can rely on now.
type Protection string

const (
	// Unknown: the bridge has not attached since it started.
	Unknown Protection = "unknown"
	// Protected: WAL streams and its commit position follows.
	Protected Protection = "protected"
	// Waiting: WAL is there, but no majority acknowledges it: commits wait.
	Waiting Protection = "waiting"
	// Unprotected: the bridge was attached and no longer is. Commits wait if
	// synchronous_standby_names is set, and are not safe if it is not.
	Unprotected Protection = "unprotected"
)

// Status is what a bridge knows of itself. A field that is not known is nil,
// never a made-up value.
type Status struct {
	Protection     Protection `json:"protection"`
	Reason         string     `json:"reason,omitempty"` // why it is not protected
	UpstreamUp     bool       `json:"upstream_connected"`
	MessageAge     *float64   `json:"last_message_age_seconds"`
	SystemID       uint64     `json:"system_id,string,omitempty"`
	TLI            pgwal.TLI  `json:"tli,omitempty"`
	Received       *wal.LSN   `json:"received_lsn"`
	Commit         *wal.LSN   `json:"commit_lsn"`
	ServerEnd      *wal.LSN   `json:"server_flush_lsn"`
	FeedbackLag    *uint64    `json:"feedback_lag_bytes"`  // received and not committed
	SlotRetained   *uint64    `json:"slot_retained_bytes"` // WAL that the primary keeps for the slot
	Synced         *bool      `json:"synced"`              // all that PostgreSQL had when the bridge attached is committed
	Sessions       uint64     `json:"sessions"`
	LastDisconnect string     `json:"last_disconnect,omitempty"`
}

// statusBoard is where the session writes and Status reads.
type statusBoard struct {
	received  atomic.Uint64 // 0 = unknown, as all positions here
	commit    atomic.Uint64
	serverEnd atomic.Uint64
	lastHeard atomic.Int64 // Unix nanoseconds
	appending atomic.Int64 // since when Append has not returned, 0 = it has

	mu         sync.Mutex // guards what follows
	up         bool
	waiting    bool
	systemID   uint64
	tli        pgwal.TLI
	restartLSN wal.LSN // PostgreSQL's flush LSN when the session attached
	sessions   uint64
	last       string
}

func (b *statusBoard) heard() { b.lastHeard.Store(time.Now().UnixNano()) }

func (b *statusBoard) committed(c wal.LSN) { b.commit.Store(uint64(c)) }

func (b *statusBoard) identified(s pgwal.Server) {
	b.heard()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.systemID = s.SystemID
}

func (b *statusBoard) attached(s pgwal.Server, tli pgwal.TLI, start wal.LSN) {
	b.received.Store(uint64(start))
	b.commit.Store(0)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.up, b.waiting, b.tli, b.restartLSN = true, false, tli, s.Flush
	b.sessions++
}

func (b *statusBoard) switched(tli pgwal.TLI) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tli = tli
}

func (b *statusBoard) detached(err error) {
	b.appending.Store(0)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.up, b.waiting = false, false
	if err != nil {
		b.last = err.Error()
	}
}

func (b *statusBoard) everAttached() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sessions > 0
}

// Status returns a snapshot.
func (b *Bridge) Status() Status {
	s := &b.status
	s.mu.Lock()
	defer s.mu.Unlock()
	out := Status{UpstreamUp: s.up, SystemID: s.systemID, TLI: s.tli, Sessions: s.sessions, LastDisconnect: s.last}
	switch {
	case s.sessions == 0:
		out.Protection, out.Reason = Unknown, "not attached yet: "+orElse(s.last, "no majority of the acceptors, or PostgreSQL, has answered")
	case !s.up:
		out.Protection, out.Reason = Unprotected, s.last
	case s.waiting:
		out.Protection, out.Reason = Waiting, "no majority of the acceptors acknowledges: commits wait"
	default:
		out.Protection = Protected
	}
	if at := s.lastHeard.Load(); at != 0 {
		age := time.Since(time.Unix(0, at)).Seconds()
		out.MessageAge = &age
	}
	out.Received, out.Commit, out.ServerEnd = known(&s.received), known(&s.commit), known(&s.serverEnd)
	out.FeedbackLag = difference(out.Received, out.Commit)
	out.SlotRetained = difference(out.ServerEnd, out.Commit)
	if s.sessions > 0 && out.Commit != nil {
		synced := *out.Commit >= s.restartLSN
		out.Synced = &synced
	}
	return out
}

// Ready reports whether commits are protected now, and if not, why.
func (b *Bridge) Ready() (bool, string) {
	s := b.Status()
	return s.Protection == Protected, s.Reason
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func known(v *atomic.Uint64) *wal.LSN {
	l := wal.LSN(v.Load())
	if l == 0 {
		return nil
	}
	return &l
}

func difference(high, low *wal.LSN) *uint64 {
	if high == nil || low == nil {
		return nil
	}
	d := uint64(0)
	if *high > *low {
		d = uint64(*high - *low)
	}
	return &d
}

// watchProtection notices, and says loudly, when commits begin and cease to wait.
func (b *Bridge) watchProtection() (stop func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(waitingAfter / 5)
		defer tick.Stop()
		var still time.Time // since when commit has stood at at with WAL pending
		var at uint64
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
			}
			commit, received := b.status.commit.Load(), b.status.received.Load()
			pending := received > commit || b.status.appending.Load() != 0
			if !pending || commit != at || still.IsZero() {
				at, still = commit, time.Now()
			}
			b.setWaiting(pending && time.Since(still) > waitingAfter)
		}
	}()
	return func() { close(quit); <-ended }
}

func (b *Bridge) setWaiting(waiting bool) {
	s := &b.status
	s.mu.Lock()
	changed := s.up && s.waiting != waiting
	if s.up {
		s.waiting = waiting
	}
	s.mu.Unlock()
	if !changed {
		return
	}
	received, commit := zap.Stringer("received_lsn", wal.LSN(s.received.Load())), zap.Stringer("commit_lsn", wal.LSN(s.commit.Load()))
	if waiting {
		b.log.Error("COMMITs ON POSTGRESQL WAIT: no majority of the acceptors acknowledges", received, commit)
	} else {
		b.log.Info("commits go on: a majority of the acceptors acknowledges again", received, commit)
	}
}
