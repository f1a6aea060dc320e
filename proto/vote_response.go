package proto

import (
	"github.com/seed7f3f3bb8/holdfast/consensus"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// EncodeVoteResponse converts a VoteResponse; its result shares Properties.
func EncodeVoteResponse(r *consensus.VoteResponse) *holdfastv1.VoteResponse {
	return &holdfastv1.VoteResponse{
		Term:       uint64(r.Term),
		Granted:    r.Granted,
		FlushLsn:   uint64(r.Flush),
		CommitLsn:  uint64(r.Commit),
		HorizonLsn: uint64(r.Horizon),
		History:    EncodeHistory(r.History),
		SystemId:   r.SystemID,
		Properties: r.Properties,
	}
}

// DecodeVoteResponse checks the form of a VoteResponse: positions in order and
// a history that the log can vouch for. The result shares no memory with in.
func DecodeVoteResponse(in *holdfastv1.VoteResponse) (*consensus.VoteResponse, error) {
	r := &consensus.VoteResponse{
		Term:     wal.Term(in.GetTerm()),
		Granted:  in.GetGranted(),
		Flush:    wal.LSN(in.GetFlushLsn()),
		Commit:   wal.LSN(in.GetCommitLsn()),
		Horizon:  wal.LSN(in.GetHorizonLsn()),
		SystemID: in.GetSystemId(),
	}
	if r.Horizon > r.Commit || r.Commit > r.Flush {
		return nil, invalid("vote response: horizon %v, commit %v and flush %v are out of order", r.Horizon, r.Commit, r.Flush)
	}
	var err error
	if r.History, err = DecodeHistory(in.GetHistory()); err != nil {
		return nil, invalidErr("vote response", err)
	}
	if n := len(r.History); n > 0 && r.History[n-1].LSN > r.Flush {
		return nil, invalid("vote response: the history reaches %v, beyond the log's end %v", r.History[n-1].LSN, r.Flush)
	}
	if r.History.LastTerm() > r.Term {
		return nil, invalid("vote response: the history ends with term %d, above the acceptor's term %d", r.History.LastTerm(), r.Term)
	}
	if r.Properties, err = decodeProperties(in.GetProperties()); err != nil {
		return nil, invalidErr("vote response", err)
	}
	return r, nil
}
