package proposer

import (
	"context"
	"errors"
	"time"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/metrics"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// meter keeps a proposer's metrics. It looks at the clock once for a request
// and not for every append. Guarded by the proposer's mutex, but for to, which
// never changes; with to nil it does nothing.
type meter struct {
	to *metrics.Proposer

	placed  time.Time        // when the first byte that is not cut was placed
	appends int              // that have ended since the last cut
	marks   []mark           // shared cuts that are not committed, oldest first
	head    int              // the first mark that counts
	stages  consensus.Stages // of the acknowledgement that is being looked at

	// What the gauges hold of this proposer: others add to them too.
	end, commit, horizon, window float64
	members                      []memberGauges
}

// mark remembers one shared cut.
type mark struct {
	end         wal.LSN
	placed, cut time.Time
	appends     int
}

type memberGauges struct{ lag, inFlight, connected float64 }

// placing is called before bytes are placed; first if everything before is cut.
func (m *meter) placing(first bool) {
	if m.to != nil && first {
		m.placed = time.Now()
	}
}

// cut notes a shared cut that ends at end; more bytes wait if waiting is set.
func (m *meter) cut(end wal.LSN, bytes int, waiting bool) {
	if m.to == nil {
		return
	}
	now := time.Now()
	if len(m.marks) == cap(m.marks) && m.head > len(m.marks)/2 {
		m.marks = append(m.marks[:0], m.marks[m.head:]...)
		m.head = 0
	}
	m.marks = append(m.marks, mark{end, m.placed, now, m.appends})
	m.to.RequestAppends.Observe(float64(m.appends))
	m.to.RequestBytes.Observe(float64(bytes))
	m.to.StageSeconds.Observe(metrics.StageBatch, now.Sub(m.placed))
	m.appends = 0
	if waiting {
		m.placed = now
	}
}

// committed notes an advance of the commit LSN, which the acknowledgement with m.stages has brought.
func (m *meter) committed(from, to wal.LSN) {
	if m.to == nil || from == 0 {
		return
	}
	m.to.AppendBytes.Add(float64(to - from))
	now := time.Now()
	var last mark
	for m.head < len(m.marks) && m.marks[m.head].end <= to {
		last = m.marks[m.head]
		m.head++
		m.to.AckSeconds.Observe(now.Sub(last.placed).Seconds())
		m.to.Appends.Add(float64(last.appends))
	}
	if m.head == len(m.marks) {
		m.marks, m.head = m.marks[:0], 0
	}
	if last.end == 0 {
		return
	}
	queue, write, sync := time.Duration(m.stages.QueueNanos), time.Duration(m.stages.WriteNanos), time.Duration(m.stages.SyncNanos)
	m.to.StageSeconds.Observe(metrics.StageQueue, queue)
	m.to.StageSeconds.Observe(metrics.StageWrite, write)
	m.to.StageSeconds.Observe(metrics.StageSync, sync)
	m.to.StageSeconds.Observe(metrics.StageNetwork, max(0, now.Sub(last.cut)-queue-write-sync))
}

// sent notes how long a stream took to take a request.
func (m *meter) sent(since time.Time) {
	if m.to != nil {
		m.to.StageSeconds.Observe(metrics.StageSend, time.Since(since))
	}
}

// woke notes how long it took to tell everyone of an advance.
func (m *meter) woke(since time.Time) {
	if m.to != nil {
		m.to.StageSeconds.Observe(metrics.StageWake, time.Since(since))
	}
}

// now is the time, if anyone wants to know.
func (m *meter) now() (t time.Time) {
	if m.to != nil {
		t = time.Now()
	}
	return t
}

// waited notes that an append waited for room.
func (m *meter) waited(d time.Duration) {
	if m.to != nil {
		m.to.WindowWaits.Observe(d.Seconds())
	}
}

func (m *meter) refilled(bytes int) {
	if m.to != nil {
		m.to.RefillBytes.Add(float64(bytes))
	}
}

// phase counts campaigns.
func (m *meter) phase(last consensus.Phase, st consensus.ProposerStatus) {
	var fenced *FencedError
	switch {
	case m.to == nil:
	case st.Phase == consensus.Recovering:
		m.to.Campaigns.Inc(metrics.CampaignWon)
	case st.Phase == consensus.Waiting && (last == consensus.Campaigning || last == consensus.Deciding):
		m.to.Campaigns.Inc(metrics.CampaignLost)
	case st.Phase == consensus.Stopped && errors.As(st.Err, &fenced):
		m.to.Campaigns.Inc(metrics.CampaignStopped)
	}
}

// ended counts a stream that has ended with err.
func (m *meter) ended(node wal.NodeID, err error) {
	if m.to == nil {
		return
	}
	reason := metrics.ReconnectBroken
	var e *consensus.Error
	switch {
	case errors.As(err, &e):
		m.to.Errors.Inc(string(e.Reason))
		reason = metrics.ReconnectStatus
	case errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded:
		reason = metrics.ReconnectTimeout
	case errors.Is(err, errUnreachable):
		reason = metrics.ReconnectRefused
	}
	m.to.Peer(uint64(node)).Reconnects[reason].Inc()
}

// positions brings the gauges up to date; after a stop to nothing.
func (m *meter) positions(p *Proposer) {
	if m.to == nil {
		return
	}
	if m.members == nil {
		m.members = make([]memberGauges, len(p.members))
	}
	running := p.err == nil
	set := func(g interface{ Add(float64) }, held *float64, v float64) {
		if !running {
			v = 0
		}
		g.Add(v - *held)
		*held = v
	}
	set(m.to.EndLSN, &m.end, float64(p.window.tail))
	set(m.to.CommitLSN, &m.commit, float64(p.state.Commit))
	set(m.to.HorizonLSN, &m.horizon, float64(p.state.Horizon))
	set(m.to.WindowBytes, &m.window, float64(p.window.tail-p.window.begin))
	for i, x := range p.members {
		peer, held := m.to.Peer(uint64(x.node)), &m.members[i]
		var inFlight, connected float64
		if c := x.conn; c != nil && c.feeding {
			inFlight, connected = float64(c.pos-c.acked), 1
		}
		lag := float64(0)
		if x.acked < p.window.tail {
			lag = float64(p.window.tail - max(x.acked, p.state.Horizon))
		}
		set(peer.LagBytes, &held.lag, lag)
		set(peer.InFlightBytes, &held.inFlight, inFlight)
		set(peer.Connected, &held.connected, connected)
	}
}
