package ingest

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed7f3f3bb8/holdfast/bridge/pgclient"
	"github.com/seed7f3f3bb8/holdfast/bridge/pgwal"
	"github.com/seed7f3f3bb8/holdfast/bridge/pgwire"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// feedback reports to the walsender of one connection: at once when the commit
// position moves, on demand but not more often than replySpacing, and steadily,
// so that wal_sender_timeout never passes.
type feedback struct {
	conn     *pgclient.Conn
	interval time.Duration
	segment  pgwal.SegmentBytes
	observ   Observer

	// commit is what is reported as written, flushed and applied; 0 until the
	// log's commit position is known. All three are the same: an early "written"
	// would make remote_write mean that one process's memory holds the commit,
	// and without "applied" remote_apply would hang.
	commit atomic.Uint64

	demand  chan struct{} // holds one: an answer is wanted
	quit    chan struct{}
	ended   chan struct{}
	samples samples
}

func newFeedback(conn *pgclient.Conn, interval time.Duration, segment pgwal.SegmentBytes, observ Observer) *feedback {
	f := &feedback{conn: conn, interval: interval, segment: segment, observ: observ,
		demand: make(chan struct{}, 1), quit: make(chan struct{}), ended: make(chan struct{})}
	go f.run()
	return f
}

// stop ends the goroutine. The connection must be closed already, or a write
// to it might block.
func (f *feedback) stop() {
	close(f.quit)
	<-f.ended
}

// demanded says that the walsender wants an answer now.
func (f *feedback) demanded() {
	select {
	case f.demand <- struct{}{}:
	default:
	}
}

func (f *feedback) run() {
	defer close(f.ended)
	tick := time.NewTicker(f.interval)
	defer tick.Stop()
	f.send(true)
	for {
		select {
		case <-f.quit:
			return
		case <-tick.C:
			// Asking for an answer shows whether the server is still there.
			f.send(true)
			f.holdSegment()
		case <-f.demand:
			f.send(false)
			// While the walsender shuts down it demands an answer after every
			// answer. This pause is what bounds that.
			pause := time.NewTimer(replySpacing)
			select {
			case <-pause.C:
			case <-f.quit:
			}
			pause.Stop()
		}
	}
}

// send reports the present position. A failed write shows in Receive, too.
func (f *feedback) send(wantAnswer bool) error {
	at := wal.LSN(f.commit.Load())
	f.conn.SetWriteDeadline(time.Now().Add(time.Minute))
	return f.conn.SendStatus(pgwire.StatusUpdate{Write: at, Flush: at, Apply: at, ReplyRequested: wantAnswer})
}

// acknowledge reports that everything below commit is committed.
func (f *feedback) acknowledge(commit wal.LSN) error {
	now := time.Now()
	f.commit.Store(uint64(commit))
	if err := f.conn.SendStatus(pgwire.StatusUpdate{Write: commit, Flush: commit, Apply: commit}); err != nil {
		return err
	}
	f.observ.Stage(StageReply, time.Since(now))
	f.samples.committed(commit, now, f.observ)
	f.holdSegment()
	return nil
}

// holdSegment keeps the slot from letting go of the last segment when the
// commit position is exactly at its end, as after pg_switch_wal: the next
// attachment must still be able to compare bytes. Reporting one byte less takes
// back nothing, because PostgreSQL releases waiting commits for good.
func (f *feedback) holdSegment() {
	at := wal.LSN(f.commit.Load())
	if at == 0 || f.segment.Offset(at) != 0 {
		return
	}
	f.conn.SendStatus(pgwire.StatusUpdate{Write: at, Flush: at - 1, Apply: at})
}

// received notes when WAL arrived.
func (f *feedback) received(x pgwire.XLogData) {
	f.observ.Received(len(x.Data))
	f.samples.received(x, f.observ)
}

// samples measures the time of one run of WAL at a time: a figure for the
// latency of commits that costs nothing per message.
type samples struct {
	mu    sync.Mutex
	end   wal.LSN // of the run that is under way, 0 = none
	since time.Time
}

func (s *samples) received(x pgwire.XLogData, observ Observer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != 0 || len(x.Data) == 0 {
		return
	}
	s.end, s.since = x.Start+wal.LSN(len(x.Data)), time.Now()
	if d := s.since.Sub(pgwire.FromMicros(x.Time)); d >= 0 { // the server's clock may differ
		observ.Stage(StageReceive, d)
	}
}

func (s *samples) committed(commit wal.LSN, now time.Time, observ Observer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end == 0 || commit < s.end {
		return
	}
	observ.Stage(StageCommit, now.Sub(s.since))
	s.end = 0
}
