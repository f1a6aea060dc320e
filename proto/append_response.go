package proto

import (
	"github.com/seed7f3f3bb8/holdfast/consensus"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// EncodeAppendResponse converts an AppendResponse. The hot path does not come
// this way: see Codec.
func EncodeAppendResponse(r *consensus.AppendResponse) *holdfastv1.AppendResponse {
	return &holdfastv1.AppendResponse{
		Term:       uint64(r.Term),
		FlushLsn:   uint64(r.Flush),
		CommitLsn:  uint64(r.Commit),
		QueueNanos: r.Stages.QueueNanos,
		WriteNanos: r.Stages.WriteNanos,
		SyncNanos:  r.Stages.SyncNanos,
	}
}

// DecodeAppendResponse checks the form of an AppendResponse.
func DecodeAppendResponse(in *holdfastv1.AppendResponse) (*consensus.AppendResponse, error) {
	r := &consensus.AppendResponse{
		Term:   wal.Term(in.GetTerm()),
		Flush:  wal.LSN(in.GetFlushLsn()),
		Commit: wal.LSN(in.GetCommitLsn()),
		Stages: consensus.Stages{QueueNanos: in.GetQueueNanos(), WriteNanos: in.GetWriteNanos(), SyncNanos: in.GetSyncNanos()},
	}
	if err := checkAppendResponse(r); err != nil {
		return nil, err
	}
	return r, nil
}

func checkAppendResponse(r *consensus.AppendResponse) error {
	if r.Commit > r.Flush {
		return invalid("append response: commit %v is above flush %v", r.Commit, r.Flush)
	}
	return nil
}
