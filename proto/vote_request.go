package proto

import (
	"github.com/seed7f3f3bb8/holdfast/consensus"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// EncodeVoteRequest converts a VoteRequest.
func EncodeVoteRequest(r *consensus.VoteRequest) *holdfastv1.VoteRequest {
	return &holdfastv1.VoteRequest{Generation: r.Generation, Term: uint64(r.Term)}
}

// DecodeVoteRequest checks the form of a VoteRequest.
func DecodeVoteRequest(in *holdfastv1.VoteRequest) (*consensus.VoteRequest, error) {
	if in.GetTerm() == 0 {
		return nil, invalid("vote request: term is 0; terms begin at 1")
	}
	return &consensus.VoteRequest{Generation: in.GetGeneration(), Term: wal.Term(in.GetTerm())}, nil
}
