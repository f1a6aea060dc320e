package metrics

import (
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Stage is a part of the way of an append, from the caller's call to its acknowledgement.
type Stage string

// Stages in the order in which an append passes them. Queue, write and sync
// are the acceptor's word, for the batch that completed the quorum; network is what remains
// of the time between send and answer.
const (
	StageBatch   Stage = "batch"   // waiting to be cut into a request
	StageSend    Stage = "send"    // cut, not yet taken by the stream
	StageNetwork Stage = "network" // on the way, there and back
	StageQueue   Stage = "queue"   // in the acceptor's inbox
	StageWrite   Stage = "write"   // being written
	StageSync    Stage = "sync"    // being synced
	StageWake    Stage = "wake"    // committed, the caller not yet told
)

// CampaignResult is how a campaign for a term ended.
type CampaignResult string

// Results of campaigns.
const (
	CampaignWon     CampaignResult = "won"
	CampaignLost    CampaignResult = "lost"    // no quorum of votes
	CampaignStopped CampaignResult = "stopped" // another writer has won: this proposer ends for good
)

// ReconnectReason is why a connection had to be made again.
type ReconnectReason string

// Reasons to connect again.
const (
	ReconnectRefused ReconnectReason = "refused" // nobody listens, or the name is not known
	ReconnectBroken  ReconnectReason = "broken"  // the connection ended
	ReconnectTimeout ReconnectReason = "timeout" // it did not answer in time
	ReconnectStatus  ReconnectReason = "status"  // the other side ended the stream with an error
)

// Proposer counts what proposers do. Several proposers of one process may share one.
type Proposer struct {
	AckSeconds   prometheus.Histogram // once per append, or per group that is acknowledged together
	StageSeconds *Durations[Stage]

	Appends        prometheus.Counter
	AppendBytes    prometheus.Counter
	RequestAppends prometheus.Histogram
	RequestBytes   prometheus.Histogram
	WindowWaits    prometheus.Histogram // seconds

	Errors    *Counters[string]
	Campaigns *Counters[CampaignResult]

	// Gauges are sums over the proposers that share them: add what has changed.
	EndLSN      prometheus.Gauge
	CommitLSN   prometheus.Gauge
	HorizonLSN  prometheus.Gauge
	WindowBytes prometheus.Gauge

	RefillBytes prometheus.Counter

	lag, inFlight, connected *prometheus.GaugeVec
	reconnects               *prometheus.CounterVec

	mu    sync.Mutex
	peers map[uint64]*ProposerPeer
}

// ProposerPeer counts what concerns one acceptor. Gauges are sums over the
// proposers that share them: add what has changed.
type ProposerPeer struct {
	LagBytes      prometheus.Gauge // the end of what was appended, less its flush LSN
	InFlightBytes prometheus.Gauge // sent and not acknowledged
	Connected     prometheus.Gauge // streams that are elected and take appends
	Reconnects    map[ReconnectReason]prometheus.Counter
}

// NewProposer registers the metrics of proposers. reasons is the closed set of
// error reasons; others are counted as "other".
func NewProposer(to prometheus.Registerer, reasons []string) (*Proposer, error) {
	r := &registry{to: to}
	position := r.gaugeVec("proposer_lsn_bytes", "Positions, summed over the proposers of this process.", "position")
	p := &Proposer{
		AckSeconds: r.histogram("ack_seconds", "Time from an append to its commit, as its caller sees it.", secondsBuckets()),
		StageSeconds: durations(r, "stage_seconds", "Where the time of an append went, by stage.", "stage",
			[]Stage{StageBatch, StageSend, StageNetwork, StageQueue, StageWrite, StageSync, StageWake}),

		Appends:        r.counter("proposer_appends_total", "Appends that were committed."),
		AppendBytes:    r.counter("proposer_append_bytes_total", "WAL bytes that were committed."),
		RequestAppends: r.histogram("request_appends", "Appends that went out in one request.", countBuckets()),
		RequestBytes:   r.histogram("request_bytes", "WAL bytes of one request.", bytesBuckets()),
		WindowWaits:    r.histogram("window_wait_seconds", "How long an append waited for room in the window; only the waits that happened.", secondsBuckets()),

		Errors: counters(r, "proposer_errors_total", "Errors that acceptors have answered, by reason.", "reason", reasons),
		Campaigns: counters(r, "campaigns_total", "Campaigns for a term, by result.", "result",
			[]CampaignResult{CampaignWon, CampaignLost, CampaignStopped}),

		EndLSN:      position.WithLabelValues("end"),
		CommitLSN:   position.WithLabelValues("commit"),
		HorizonLSN:  position.WithLabelValues("horizon"),
		WindowBytes: r.gauge("window_bytes", "WAL bytes kept in memory until every acceptor has them or is refilled from another."),

		RefillBytes: r.counter("refill_bytes_total", "WAL bytes read from one acceptor to fill another."),

		lag:       r.gaugeVec("proposer_peer_lag_bytes", "How far an acceptor is behind the end of what was appended.", "peer"),
		inFlight:  r.gaugeVec("proposer_peer_in_flight_bytes", "WAL bytes sent to an acceptor and not acknowledged.", "peer"),
		connected: r.gaugeVec("proposer_peer_streams", "Streams to an acceptor that take appends.", "peer"),
		reconnects: prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "proposer_reconnects_total",
			Help: "Connections to an acceptor made again, by reason."}, []string{"peer", "reason"}),
		peers: make(map[uint64]*ProposerPeer),
	}
	r.add(p.reconnects)
	return p, r.done()
}

// Peer returns the metrics of the acceptor with this node id, which must come
// from a membership: the label's values are bounded by it.
func (p *Proposer) Peer(node uint64) *ProposerPeer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if peer, ok := p.peers[node]; ok {
		return peer
	}
	label := strconv.FormatUint(node, 10)
	peer := &ProposerPeer{
		LagBytes:      p.lag.WithLabelValues(label),
		InFlightBytes: p.inFlight.WithLabelValues(label),
		Connected:     p.connected.WithLabelValues(label),
		Reconnects:    make(map[ReconnectReason]prometheus.Counter),
	}
	for _, reason := range []ReconnectReason{ReconnectRefused, ReconnectBroken, ReconnectTimeout, ReconnectStatus} {
		peer.Reconnects[reason] = p.reconnects.WithLabelValues(label, string(reason))
	}
	p.peers[node] = peer
	return peer
}
