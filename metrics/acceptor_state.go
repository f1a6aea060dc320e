package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// AcceptorState is what an acceptor says of itself when it is scraped.
type AcceptorState struct {
	Ready bool

	// Timelines on this node by health; they sum up to all of them.
	OK, Poisoned, Quarantined, Lost int
	Opened                          int

	// Positions are sums over all timelines of this node: their rates are
	// bytes per second, their differences are bytes.
	Positions Positions
	TermMax   uint64

	InboxBytes     uint64 // taken by all inboxes now
	InboxBytesMax  uint64 // what they may take together
	Segments       uint64
	SegmentBytes   uint64
	DiskFreeBytes  uint64
	DiskTotalBytes uint64

	Peers []PeerState // each node once

	// Timelines that the operator has asked to see one by one, each once; empty
	// by default, because their number has no bound.
	Timelines []TimelineState
}

// Positions of one log, in bytes; or sums of those.
type Positions struct{ Write, Flush, Commit, Horizon, Oldest uint64 }

// PeerState is what this node knows of another.
type PeerState struct {
	Node uint64
	// LagBytes is how far the peer's flush LSNs are behind ours, summed over
	// the timelines that both keep; ahead counts as 0.
	LagBytes uint64
	// LostTimelines are those that both should keep and the peer has lost.
	LostTimelines int
	// ContactAge is the time since its last answer; negative if there was none.
	ContactAge time.Duration
}

// TimelineState is one timeline of the allow-list.
type TimelineState struct {
	Name      string
	Positions Positions
}

type acceptorState struct {
	state func() AcceptorState

	ready, timelines, opened, lsn, term                          *prometheus.Desc
	inbox, inboxMax, segments, segmentBytes                      *prometheus.Desc
	diskFree, diskTotal, peerLag, peerLost, peerAge, timelineLSN *prometheus.Desc
}

// NewAcceptorState registers an acceptor's gauges. state is called on every
// scrape, from any goroutine, and must not wait for a disk.
func NewAcceptorState(to prometheus.Registerer, state func() AcceptorState) error {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prefix+name, help, labels, nil)
	}
	r := &registry{to: to}
	r.add(&acceptorState{
		state:        state,
		ready:        desc("ready", "1 if the node serves proposers and readers."),
		timelines:    desc("timelines", "Timelines on this node, by health.", "health"),
		opened:       desc("timelines_opened", "Timelines whose log is open."),
		lsn:          desc("lsn_bytes", "Positions, summed over the timelines of this node.", "position"),
		term:         desc("term_max", "The highest term of any timeline of this node."),
		inbox:        desc("inbox_bytes", "Bytes received and not yet written."),
		inboxMax:     desc("inbox_limit_bytes", "What all inboxes may hold together."),
		segments:     desc("segments", "Segment files."),
		segmentBytes: desc("segment_bytes", "Size of all segment files."),
		diskFree:     desc("disk_free_bytes", "Free space on the file system of the data directory."),
		diskTotal:    desc("disk_size_bytes", "Size of the file system of the data directory."),
		peerLag:      desc("peer_lag_bytes", "How far a peer's flush LSNs are behind this node's, summed over common timelines.", "peer"),
		peerLost:     desc("peer_lost_timelines", "Timelines that this node keeps and a peer that is a member has lost.", "peer"),
		peerAge:      desc("peer_contact_age_seconds", "Time since a peer's last answer; absent if there was none.", "peer"),
		timelineLSN:  desc("timeline_lsn_bytes", "Positions of the timelines that the operator has asked for.", "timeline", "position"),
	})
	return r.done()
}

// Describe implements prometheus.Collector.
func (a *acceptorState) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{a.ready, a.timelines, a.opened, a.lsn, a.term, a.inbox, a.inboxMax, a.segments,
		a.segmentBytes, a.diskFree, a.diskTotal, a.peerLag, a.peerLost, a.peerAge, a.timelineLSN} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (a *acceptorState) Collect(to chan<- prometheus.Metric) {
	s := a.state()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	ready := 0.0
	if s.Ready {
		ready = 1
	}
	gauge(a.ready, ready)
	gauge(a.timelines, float64(s.OK), "ok")
	gauge(a.timelines, float64(s.Poisoned), "poisoned")
	gauge(a.timelines, float64(s.Quarantined), "quarantined")
	gauge(a.timelines, float64(s.Lost), "lost")
	gauge(a.opened, float64(s.Opened))
	for _, p := range s.Positions.all() {
		gauge(a.lsn, float64(p.bytes), p.name)
	}
	gauge(a.term, float64(s.TermMax))
	gauge(a.inbox, float64(s.InboxBytes))
	gauge(a.inboxMax, float64(s.InboxBytesMax))
	gauge(a.segments, float64(s.Segments))
	gauge(a.segmentBytes, float64(s.SegmentBytes))
	gauge(a.diskFree, float64(s.DiskFreeBytes))
	gauge(a.diskTotal, float64(s.DiskTotalBytes))
	for _, p := range s.Peers {
		peer := strconv.FormatUint(p.Node, 10)
		gauge(a.peerLag, float64(p.LagBytes), peer)
		gauge(a.peerLost, float64(p.LostTimelines), peer)
		if p.ContactAge >= 0 {
			gauge(a.peerAge, p.ContactAge.Seconds(), peer)
		}
	}
	for _, t := range s.Timelines {
		for _, p := range t.Positions.all() {
			gauge(a.timelineLSN, float64(p.bytes), t.Name, p.name)
		}
	}
}

type namedPosition struct {
	name  string
	bytes uint64
}

func (p Positions) all() []namedPosition {
	return []namedPosition{{"write", p.Write}, {"flush", p.Flush}, {"commit", p.Commit}, {"horizon", p.Horizon}, {"oldest", p.Oldest}}
}
