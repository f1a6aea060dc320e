package proto

import (
	"github.com/seed7f3f3bb8/holdfast/consensus"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// PeerTimelinesMax bounds the timelines of one PeerStatus call, either way.
const PeerTimelinesMax = 1000

// PeerTimeline is what one acceptor tells another of a timeline that both keep.
type PeerTimeline struct {
	Timeline    wal.TimelineID
	Creation    wal.CreationID
	LastLogTerm wal.Term
	Flush       wal.LSN
	Commit      wal.LSN
	Horizon     wal.LSN
	Health      wal.Health
}

// PeerCommit is the part that concerns the state machine.
func (p *PeerTimeline) PeerCommit() *consensus.PeerCommit {
	return &consensus.PeerCommit{Creation: p.Creation, LastLogTerm: p.LastLogTerm, Commit: p.Commit}
}

// EncodePeerTimeline converts a PeerTimeline.
func EncodePeerTimeline(p *PeerTimeline) *holdfastv1.PeerTimeline {
	return &holdfastv1.PeerTimeline{
		Timeline:    p.Timeline.String(),
		CreationId:  EncodeCreationID(p.Creation),
		LastLogTerm: uint64(p.LastLogTerm),
		FlushLsn:    uint64(p.Flush),
		CommitLsn:   uint64(p.Commit),
		HorizonLsn:  uint64(p.Horizon),
		Health:      EncodeHealth(p.Health),
	}
}

// DecodePeerTimeline checks the form of a PeerTimeline.
func DecodePeerTimeline(in *holdfastv1.PeerTimeline) (*PeerTimeline, error) {
	p := &PeerTimeline{
		LastLogTerm: wal.Term(in.GetLastLogTerm()),
		Flush:       wal.LSN(in.GetFlushLsn()),
		Commit:      wal.LSN(in.GetCommitLsn()),
		Horizon:     wal.LSN(in.GetHorizonLsn()),
	}
	var err error
	if p.Timeline, err = DecodeTimelineID(in.GetTimeline()); err != nil {
		return nil, invalidErr("peer status", err)
	}
	if p.Creation, err = DecodeCreationID(in.GetCreationId()); err != nil {
		return nil, invalidErr("peer status", err)
	}
	if p.Health, err = DecodeHealth(in.GetHealth()); err != nil {
		return nil, invalidErr("peer status", err)
	}
	if p.Horizon > p.Commit || p.Commit > p.Flush {
		return nil, invalid("peer status of %v: horizon %v, commit %v and flush %v are out of order", p.Timeline, p.Horizon, p.Commit, p.Flush)
	}
	return p, nil
}
