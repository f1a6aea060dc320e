package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// UpstreamReason is why the bridge had to connect to PostgreSQL again.
type UpstreamReason string

// Reasons to connect to PostgreSQL again.
const (
	UpstreamRefused    UpstreamReason = "refused"     // nobody listens
	UpstreamAuth       UpstreamReason = "auth"        // password, role or pg_hba
	UpstreamSlotInUse  UpstreamReason = "slot_in_use" // another connection holds the slot
	UpstreamWALRemoved UpstreamReason = "wal_removed" // PostgreSQL does not have the WAL any more
	UpstreamStandby    UpstreamReason = "standby"     // it is a standby
	UpstreamBroken     UpstreamReason = "broken"      // the connection ended
	UpstreamTimeout    UpstreamReason = "timeout"     // it went silent
	UpstreamStorm      UpstreamReason = "storm"       // it asked for replies without end
	UpstreamTimeline   UpstreamReason = "timeline"    // it moved to another timeline
	UpstreamStopped    UpstreamReason = "stopped"     // it was shut down in an orderly way
	UpstreamQuorum     UpstreamReason = "quorum"      // the log could not be written, or refused this server
)

// BridgeStage is a part of a commit's way through the bridge.
type BridgeStage string

// Parts of a commit's way through the bridge.
const (
	BridgeReceive BridgeStage = "receive" // from PostgreSQL's clock at sending to read by the bridge
	BridgeCommit  BridgeStage = "commit"  // from read to committed
	BridgeReply   BridgeStage = "reply"   // writing the acknowledgement
)

// Bridge counts what a bridge does.
type Bridge struct {
	ReceivedBytes    prometheus.Counter
	ReceivedMessages prometheus.Counter
	Replies          prometheus.Counter
	Reconnects       *Counters[UpstreamReason]
	StageSeconds     *Durations[BridgeStage]

	Standbys         prometheus.Gauge
	StandbySentBytes prometheus.Counter
}

// NewBridge registers a bridge's metrics.
func NewBridge(to prometheus.Registerer) (*Bridge, error) {
	r := &registry{to: to}
	b := &Bridge{
		ReceivedBytes:    r.counter("bridge_received_bytes_total", "WAL bytes received from PostgreSQL."),
		ReceivedMessages: r.counter("bridge_received_messages_total", "WAL messages received from PostgreSQL."),
		Replies:          r.counter("bridge_replies_total", "Status replies sent to PostgreSQL."),
		Reconnects: counters(r, "bridge_reconnects_total", "Connections to PostgreSQL made again, by reason.", "reason",
			[]UpstreamReason{UpstreamRefused, UpstreamAuth, UpstreamSlotInUse, UpstreamWALRemoved, UpstreamStandby,
				UpstreamBroken, UpstreamTimeout, UpstreamStorm, UpstreamTimeline, UpstreamStopped, UpstreamQuorum}),
		StageSeconds: durations(r, "bridge_stage_seconds", "Where the time of a commit went in the bridge, by stage; sampled.", "stage",
			[]BridgeStage{BridgeReceive, BridgeCommit, BridgeReply}),
		Standbys:         r.gauge("bridge_standbys", "Standbys and receivers that are connected."),
		StandbySentBytes: r.counter("bridge_standby_sent_bytes_total", "WAL bytes sent to standbys and receivers."),
	}
	return b, r.done()
}

// Protection says whether a commit of PostgreSQL waits for the quorum.
type Protection string

// States of protection.
const (
	Protected         Protection = "protected"   // commits wait for the quorum, and it answers
	Waiting           Protection = "waiting"     // commits wait for a quorum that does not answer
	Unprotected       Protection = "unprotected" // commits do not wait
	ProtectionUnknown Protection = "unknown"     // PostgreSQL cannot be asked
)

// BridgeState is what a bridge says of itself when it is scraped. What is not
// known is negative and left out, never shown as zero.
type BridgeState struct {
	UpstreamConnected bool
	LastMessageAge    time.Duration // since PostgreSQL's last message
	SlotRetainedBytes int64         // WAL that the slot keeps on the primary
	FeedbackLagBytes  int64         // received and not yet reported as flushed
	PostgresTimeline  int64         // TLI
	Protection        Protection
}

type bridgeState struct {
	state                                                    func() BridgeState
	connected, age, retained, lag, postgresTimeline, protect *prometheus.Desc
}

// NewBridgeState registers a bridge's gauges. state is called on every
// scrape, from any goroutine.
func NewBridgeState(to prometheus.Registerer, state func() BridgeState) error {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prefix+name, help, labels, nil)
	}
	r := &registry{to: to}
	r.add(&bridgeState{
		state:            state,
		connected:        desc("bridge_upstream_connected", "1 while WAL is streamed from PostgreSQL."),
		age:              desc("bridge_last_message_age_seconds", "Time since PostgreSQL's last message; absent if there was none."),
		retained:         desc("bridge_slot_retained_bytes", "WAL that the replication slot keeps on the primary; absent if not known."),
		lag:              desc("bridge_feedback_lag_bytes", "WAL received and not yet reported to PostgreSQL as flushed; absent if not known."),
		postgresTimeline: desc("bridge_postgres_timeline", "PostgreSQL's timeline id; absent if not known."),
		protect:          desc("bridge_protection", "1 for the state that holds, 0 for the others.", "state"),
	})
	return r.done()
}

// Describe implements prometheus.Collector.
func (b *bridgeState) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{b.connected, b.age, b.retained, b.lag, b.postgresTimeline, b.protect} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (b *bridgeState) Collect(to chan<- prometheus.Metric) {
	s := b.state()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	is := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	known := func(d *prometheus.Desc, v float64) {
		if v >= 0 {
			gauge(d, v)
		}
	}
	gauge(b.connected, is(s.UpstreamConnected))
	known(b.age, s.LastMessageAge.Seconds())
	known(b.retained, float64(s.SlotRetainedBytes))
	known(b.lag, float64(s.FeedbackLagBytes))
	known(b.postgresTimeline, float64(s.PostgresTimeline))
	switch s.Protection {
	case Protected, Waiting, Unprotected:
	default:
		s.Protection = ProtectionUnknown
	}
	for _, p := range []Protection{Protected, Waiting, Unprotected, ProtectionUnknown} {
		gauge(b.protect, is(s.Protection == p), string(p))
	}
}
