package acceptor

import (
	"fmt"
	"sync"
	"time"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/proto"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"go.uber.org/zap"
)

// absence is a timeline of which this node is a member, that has been written
// to, and that is not here: its disk was wiped or swapped for an empty one. Peers tell.
//
// Without a copy there is nothing that could vote, whatever is remembered
// here; so it is kept in memory only, and forgotten when peers tell no more,
// which is how a timeline that was deleted everywhere goes.
type absence struct {
	creation wal.CreationID
	peer     wal.NodeID // that told
	heard    time.Time
}

const (
	// Peers speak only of timelines that are open there. One that nobody uses is
	// opened by their scrub, once a day.
	absenceFor  = 36 * time.Hour
	absencesMax = 100_000
)

type absences struct {
	mu sync.Mutex
	of map[wal.TimelineID]absence
}

// note remembers an absence. It reports whether it is new.
func (a *absences) note(id wal.TimelineID, creation wal.CreationID, peer wal.NodeID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sweep()
	_, known := a.of[id]
	if !known && len(a.of) >= absencesMax {
		return false
	}
	if a.of == nil {
		a.of = map[wal.TimelineID]absence{}
	}
	a.of[id] = absence{creation, peer, time.Now()}
	return !known
}

func (a *absences) get(id wal.TimelineID) (absence, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sweep()
	x, ok := a.of[id]
	return x, ok
}

func (a *absences) drop(id wal.TimelineID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.of, id)
}

func (a *absences) len() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sweep()
	return len(a.of)
}

// sweep forgets what nobody tells any more. mu is held.
func (a *absences) sweep() {
	for id, x := range a.of {
		if time.Since(x.heard) > absenceFor {
			delete(a.of, id)
		}
	}
}

// missing hears from a peer of a timeline that is not here. A timeline that
// nobody has been elected for may be about to be created here.
func (n *Node) missing(p *proto.PeerTimeline, peer wal.NodeID) (lost bool) {
	if p.LastLogTerm == 0 || p.Health != wal.Healthy {
		return false
	}
	if n.absences.note(p.Timeline, p.Creation, peer) {
		n.log.Error("this node is a member of a timeline that is not on its disk: the copy is lost; it neither votes nor counts, and can be filled from peers for reading",
			zap.Stringer("timeline", p.Timeline), zap.Stringer("creation", p.Creation), zap.Uint64("peer", uint64(peer)))
	}
	return true
}

// detail says what an absence is, for a person.
func (x absence) detail(id wal.TimelineID) string {
	return fmt.Sprintf("%v is not on this node's disk, but node %d keeps it with this node as a member: the copy here is lost; fill it from peers for reading", id, x.peer)
}

// notHere is the answer about a timeline that this node does not have.
func (n *Node) notHere(id wal.TimelineID) *consensus.Error {
	if x, ok := n.absences.get(id); ok {
		return &consensus.Error{Reason: consensus.ReasonLost, Detail: x.detail(id)}
	}
	return notFound(id)
}

// absentStatus is the status of a timeline that is lost with all its traces.
func (n *Node) absentStatus(name string) *holdfastv1.TimelineStatus {
	id, err := proto.DecodeTimelineID(name)
	if err != nil || n.registry.get(id) != nil {
		return nil
	}
	x, ok := n.absences.get(id)
	if !ok {
		return nil
	}
	// No creation: a copy that does not exist is not one of the log's.
	return &holdfastv1.TimelineStatus{
		Timeline: name, NodeId: uint64(n.cfg.NodeID), Health: holdfastv1.Health_HEALTH_LOST, HealthReason: x.detail(id),
	}
}
