package acceptor

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/flush"
	"github.com/seed7f3f3bb8/holdfast/metrics"
	"github.com/seed7f3f3bb8/holdfast/proto"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Pace of the gossip.
const (
	gossipEvery      = time.Second
	gossipTimeout    = 2 * time.Second
	gossipBackoffMax = time.Minute
	gossipRepeat     = 30 // rounds after which even what has not changed is told again
)

// gossip tells peers what is committed and hears it from them (A7), so that an
// acceptor that missed the last word of a proposer that is gone can still serve
// what was committed. It is about open timelines only, and only about those
// that have changed since the peer was last told.
type gossip struct {
	node *Node

	mu    sync.Mutex
	peers map[string]*neighbour // by address
}

// neighbour is another node, at one address.
type neighbour struct {
	addr string
	conn *grpc.ClientConn

	// Guarded by gossip.mu.
	id      wal.NodeID
	contact time.Time // of its last answer
	lag     uint64    // see metrics.PeerState
	busy    bool      // a call is under way
	fails   int
	after   time.Time              // not before
	told    map[*timeline]toldMark // what it was told last
	lost    map[*timeline]bool     // of which it says that its copy is lost
}

type toldMark struct {
	commit, flush wal.LSN
	term          wal.Term
	round         int
}

func newGossip(n *Node) *gossip { return &gossip{node: n, peers: map[string]*neighbour{}} }

func (g *gossip) run(ctx context.Context) {
	t := time.NewTicker(gossipEvery)
	defer t.Stop()
	for round := 1; ; round++ {
		select {
		case <-t.C:
			g.round(ctx, round)
		case <-ctx.Done():
			return
		}
	}
}

// round calls every peer that there is something to tell.
func (g *gossip) round(ctx context.Context, round int) {
	news := map[string][]*timeline{}
	members := map[string]wal.NodeID{}
	for _, t := range g.node.opened.list() {
		r := t.open.Load()
		if r == nil || r.loop.Health() != wal.Healthy {
			continue
		}
		m := &r.loop.State().Membership
		for _, set := range [2][]wal.Member{m.Members, m.NewMembers} {
			for _, x := range set {
				if x.ID != g.node.cfg.NodeID && x.Addr != "" {
					members[x.Addr] = x.ID
					if !has(news[x.Addr], t) {
						news[x.Addr] = append(news[x.Addr], t)
					}
				}
			}
		}
	}
	for addr, list := range news {
		g.tell(ctx, addr, members[addr], list, round)
	}
}

func has(list []*timeline, t *timeline) bool { return len(list) > 0 && list[len(list)-1] == t }

// tell calls one peer about those of list that it has not heard of as they are now.
func (g *gossip) tell(ctx context.Context, addr string, id wal.NodeID, list []*timeline, round int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p, err := g.peerLocked(addr)
	if err != nil {
		return // the address of a member is not one
	}
	p.id = id
	if p.busy || time.Now().Before(p.after) {
		return
	}
	request := &holdfastv1.PeerStatusRequest{NodeId: uint64(g.node.cfg.NodeID), ToNodeId: uint64(id)}
	marks := map[*timeline]toldMark{}
	for _, t := range list {
		r := t.open.Load()
		if r == nil {
			continue
		}
		pos := r.loop.Positions()
		mark := toldMark{pos.Commit, pos.Flush, pos.LastLogTerm, round}
		if last, ok := p.told[t]; ok && round-last.round < gossipRepeat {
			last.round = round
			if last == mark && !p.lost[t] { // one that was lost is told every time, so that it knows
				continue
			}
		}
		if len(marks) == proto.PeerTimelinesMax {
			break // the others have their turn in the next round
		}
		marks[t] = mark
		request.Timelines = append(request.Timelines, proto.EncodePeerTimeline(r.peerTimeline(pos)))
	}
	if len(marks) == 0 {
		return
	}
	p.busy = true
	g.node.background.Go(func() { g.call(ctx, p, id, request, marks) })
}

// peerLocked returns the peer at an address. mu is held.
func (g *gossip) peerLocked(addr string) (*neighbour, error) {
	if p := g.peers[addr]; p != nil {
		return p, nil
	}
	options := append(proto.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	conn, err := grpc.NewClient(addr, append(options, g.node.cfg.PeerDialOptions...)...)
	if err != nil {
		return nil, err
	}
	p := &neighbour{addr: addr, conn: conn, told: map[*timeline]toldMark{}, lost: map[*timeline]bool{}}
	g.peers[addr] = p
	return p, nil
}

// conn is the connection to the peer at an address; it is not to be closed.
func (g *gossip) conn(addr string) (*grpc.ClientConn, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p, err := g.peerLocked(addr)
	if err != nil {
		return nil, err
	}
	return p.conn, nil
}

func (r *replica) peerTimeline(p flush.Positions) *proto.PeerTimeline {
	return &proto.PeerTimeline{
		Timeline: r.t.id, Creation: r.loop.State().Creation, LastLogTerm: p.LastLogTerm,
		Flush: p.Flush, Commit: p.Commit, Horizon: p.Horizon, Health: p.Health,
	}
}

func (g *gossip) call(ctx context.Context, p *neighbour, id wal.NodeID, request *holdfastv1.PeerStatusRequest, marks map[*timeline]toldMark) {
	ctx, cancel := context.WithTimeout(ctx, gossipTimeout)
	defer cancel()
	answer, err := holdfastv1.NewAdminServiceClient(p.conn).PeerStatus(ctx, request)
	var lag uint64
	var lost []*timeline
	if err == nil {
		lag, lost = g.node.hear(answer.GetTimelines(), id)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	p.busy = false
	if err != nil {
		p.fails++
		clear(p.told) // it may come back without memory, or without a disk
		wait := min(gossipEvery<<min(p.fails, 10), gossipBackoffMax)
		p.after = time.Now().Add(wait/2 + rand.N(wait/2))
		if p.fails == 1 {
			g.node.log.Info("a peer does not answer", zap.String("addr", p.addr), zap.Uint64("peer", uint64(p.id)), zap.Error(err))
		}
		return
	}
	p.fails, p.after, p.contact, p.lag = 0, time.Time{}, time.Now(), lag
	for t, mark := range marks {
		p.told[t] = mark
		if !slices.Contains(lost, t) {
			delete(p.lost, t)
		} else if !p.lost[t] {
			p.lost[t] = true
			g.node.log.Warn("a peer has lost its copy of a timeline; it counts as absent", zap.String("timeline", t.name), zap.Uint64("peer", uint64(p.id)), zap.String("addr", p.addr))
		}
	}
	for t := range p.told {
		if t.open.Load() == nil {
			delete(p.told, t)
			delete(p.lost, t)
		}
	}
}

// hear takes what a peer knows and returns by how much its logs are behind and
// which of them it has lost. A timeline that is cold here stays so.
func (n *Node) hear(in []*holdfastv1.PeerTimeline, peer wal.NodeID) (lag uint64, lost []*timeline) {
	for i, x := range in {
		if i == proto.PeerTimelinesMax {
			break
		}
		p, err := proto.DecodePeerTimeline(x)
		if err != nil {
			continue
		}
		t := n.registry.get(p.Timeline)
		if t == nil {
			n.missing(p, peer)
			continue
		}
		r := t.open.Load()
		if r == nil || r.loop.State().Creation != p.Creation {
			continue
		}
		if p.Health == wal.Lost {
			lost = append(lost, t)
			continue
		}
		own := r.loop.Positions()
		if own.Flush > p.Flush {
			lag += uint64(own.Flush - p.Flush)
		}
		if own.Health == wal.Healthy && p.Health == wal.Healthy && p.LastLogTerm == own.LastLogTerm && p.LastLogTerm != 0 && min(p.Commit, own.Flush) > own.Commit {
			r.loop.Post(flush.PeerCommit(p.PeerCommit()))
		}
	}
	return lag, lost
}

// PeerStatus implements the answering side of the gossip.
func (s *adminService) PeerStatus(_ context.Context, in *holdfastv1.PeerStatusRequest) (*holdfastv1.PeerStatusResponse, error) {
	n := s.node
	if len(in.GetTimelines()) > proto.PeerTimelinesMax {
		return nil, n.status(&consensus.Error{Reason: consensus.ReasonTooLarge, Detail: fmt.Sprintf("%d timelines in one call, at most %d are allowed", len(in.GetTimelines()), proto.PeerTimelinesMax)})
	}
	if to := wal.NodeID(in.GetToNodeId()); to != 0 && to != n.cfg.NodeID {
		return nil, n.status(&consensus.Error{Reason: consensus.ReasonMembership, Detail: fmt.Sprintf("this is node %d, node %d was expected at this address", n.cfg.NodeID, to)})
	}
	n.hear(in.GetTimelines(), wal.NodeID(in.GetNodeId()))
	out := &holdfastv1.PeerStatusResponse{NodeId: uint64(n.cfg.NodeID)}
	for _, x := range in.GetTimelines() {
		p, err := proto.DecodePeerTimeline(x)
		if err != nil {
			return nil, n.status(err)
		}
		t := n.registry.get(p.Timeline)
		if t == nil {
			if n.missing(p, wal.NodeID(in.GetNodeId())) {
				out.Timelines = append(out.Timelines, lostTimeline(p))
			}
			continue
		}
		if r := t.open.Load(); r == nil && t.health() == wal.Lost {
			out.Timelines = append(out.Timelines, lostTimeline(p))
		} else if r != nil && r.loop.State().Creation == p.Creation {
			out.Timelines = append(out.Timelines, proto.EncodePeerTimeline(r.peerTimeline(r.loop.Positions())))
		}
	}
	return out, nil
}

// lostTimeline is what a node says of a timeline that it should have.
func lostTimeline(asked *proto.PeerTimeline) *holdfastv1.PeerTimeline {
	return proto.EncodePeerTimeline(&proto.PeerTimeline{Timeline: asked.Timeline, Creation: asked.Creation, Health: wal.Lost})
}

// states is what is known of the peers, each node once, for the metrics.
func (g *gossip) states() []metrics.PeerState {
	g.mu.Lock()
	defer g.mu.Unlock()
	byNode := map[wal.NodeID]metrics.PeerState{}
	for _, p := range g.peers {
		if p.id == 0 {
			continue // it has not been told anything yet
		}
		s := metrics.PeerState{Node: uint64(p.id), LagBytes: p.lag, LostTimelines: len(p.lost), ContactAge: -1}
		if !p.contact.IsZero() {
			s.ContactAge = time.Since(p.contact)
		}
		if other, ok := byNode[p.id]; !ok || other.ContactAge < 0 || s.ContactAge >= 0 && s.ContactAge < other.ContactAge {
			byNode[p.id] = s
		}
	}
	out := make([]metrics.PeerState, 0, len(byNode))
	for _, s := range byNode {
		out = append(out, s)
	}
	return out
}

func (g *gossip) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.peers {
		_ = p.conn.Close() // the calls have ended with their context
	}
}
