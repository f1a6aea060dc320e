package acceptor

import (
	"time"

	"github.com/seed7f3f3bb8/holdfast/metrics"
	"github.com/seed7f3f3bb8/holdfast/proto"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"google.golang.org/protobuf/types/known/durationpb"
)

// encode is v as it goes over the wire.
func (t *timeline) encode(v *view) *holdfastv1.TimelineStatus {
	st := &v.state
	out := &holdfastv1.TimelineStatus{
		Timeline: t.name, CreationId: proto.EncodeCreationID(st.Creation), NodeId: uint64(t.node.cfg.NodeID),
		Membership: proto.EncodeMembership(st.Membership), SystemId: st.SystemID, FirstLsn: uint64(st.FirstLSN),
		Health: proto.EncodeHealth(v.health), HealthReason: v.why,
		Term: uint64(st.Term), VotedFor: proto.EncodeProposerID(st.VotedFor),
		History: proto.EncodeHistory(st.History), LastLogTerm: uint64(v.lastLogTerm),
		WriteLsn: uint64(v.write), FlushLsn: uint64(v.flush), CommitLsn: uint64(v.commit),
		HorizonLsn: uint64(v.horizon), OldestLsn: uint64(v.oldest),
		Segments: uint32(v.segments), DiskBytes: uint64(v.diskBytes), InboxBytes: uint64(v.inboxBytes),
		Properties: st.Properties, Opened: v.opened,
		Filled: t.filled.Load(),
	}
	for _, d := range v.damage[:min(len(v.damage), damageShownMax)] {
		out.Damage = append(out.Damage, encodeDamage(d))
	}
	r := t.open.Load()
	if r == nil {
		if ill := t.sick.Load(); ill != nil {
			out.Health, out.HealthReason = proto.EncodeHealth(ill.health), ill.err.Detail
		}
		return out
	}
	if c := r.proposer.Load(); c != nil {
		out.Proposer = &holdfastv1.ProposerStatus{ProposerId: proto.EncodeProposerID(c.proposer), Connection: c.connection, Addr: c.addr}
	}
	if heard := r.heard.Load(); heard > 0 {
		out.LastContactAge = durationpb.New(time.Duration(t.node.now() - heard))
	}
	return out
}

// damageShownMax bounds the damaged places in a status.
const damageShownMax = 100

func (t *timeline) isDeleted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.deleted
}

// health is what is known without a look at the disk; a cold copy that nobody
// has looked at counts as OK.
func (t *timeline) health() wal.Health {
	if r := t.open.Load(); r != nil {
		return r.loop.Health()
	}
	if ill := t.sick.Load(); ill != nil {
		return ill.health
	}
	if t.filled.Load() {
		return wal.Lost
	}
	if v := t.cold.Load(); v != nil {
		return v.health
	}
	return wal.Healthy
}

// count counts this node's copies.
func (n *Node) count() *holdfastv1.NodeTimelines {
	absent := uint64(n.absences.len())
	out := &holdfastv1.NodeTimelines{Total: absent, Lost: absent}
	for _, t := range n.registry.all() {
		out.Total++
		if t.open.Load() != nil {
			out.Opened++
		}
		switch t.health() {
		case wal.Poisoned:
			out.Poisoned++
		case wal.Quarantined:
			out.Quarantined++
		case wal.Lost:
			out.Lost++
		}
	}
	return out
}

// State is what the node says of itself when its metrics are scraped; see
// metrics.NewAcceptorState. It does not wait for a disk.
func (n *Node) State() metrics.AcceptorState {
	count := n.count()
	s := metrics.AcceptorState{
		Ready: len(n.NotReady()) == 0, Opened: int(count.Opened),
		OK:       int(count.Total - count.Poisoned - count.Quarantined - count.Lost),
		Poisoned: int(count.Poisoned), Quarantined: int(count.Quarantined), Lost: int(count.Lost),
		InboxBytesMax: uint64(n.cfg.InboxBytesNode), Peers: n.gossip.states(),
	}
	s.DiskFreeBytes, s.DiskTotalBytes = n.disk()
	for _, t := range n.registry.all() {
		v := t.cold.Load()
		if r := t.open.Load(); r != nil {
			v = r.view()
		}
		if v == nil {
			continue // cold, and nobody has looked at it
		}
		s.TermMax = max(s.TermMax, uint64(v.state.Term))
		s.InboxBytes += uint64(v.inboxBytes)
		s.Segments += uint64(v.segments)
		s.SegmentBytes += uint64(v.diskBytes)
		p := positions(v)
		s.Positions.Write += p.Write
		s.Positions.Flush += p.Flush
		s.Positions.Commit += p.Commit
		s.Positions.Horizon += p.Horizon
		s.Positions.Oldest += p.Oldest
	}
	for _, id := range n.cfg.TimelineMetrics {
		if t := n.registry.get(id); t != nil {
			if r := t.open.Load(); r != nil {
				s.Timelines = append(s.Timelines, metrics.TimelineState{Name: t.name, Positions: positions(r.view())})
			}
		}
	}
	return s
}

func positions(v *view) metrics.Positions {
	return metrics.Positions{Write: uint64(v.write), Flush: uint64(v.flush), Commit: uint64(v.commit), Horizon: uint64(v.horizon), Oldest: uint64(v.oldest)}
}

// Reasons is the closed set of error reasons, for metrics.NewAcceptor.
func Reasons() []string {
	var out []string
	for _, r := range proto.Reasons() {
		out = append(out, string(r))
	}
	return out
}
