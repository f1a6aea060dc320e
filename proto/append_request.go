package proto

import (
	"fmt"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// EncodeAppendRequest converts an AppendRequest; its result shares Data. The
// hot path does not come this way: see Codec.
func EncodeAppendRequest(r *consensus.AppendRequest) *holdfastv1.AppendRequest {
	return &holdfastv1.AppendRequest{
		Generation: r.Generation,
		Term:       uint64(r.Term),
		BeginLsn:   uint64(r.Begin),
		CommitLsn:  uint64(r.Commit),
		HorizonLsn: uint64(r.Horizon),
		Crc32C:     r.CRC,
		Data:       r.Data,
	}
}

// DecodeAppendRequest checks the form of an AppendRequest; its result shares
// in's data. The checksum is not looked at: that is a rule.
func DecodeAppendRequest(in *holdfastv1.AppendRequest) (*consensus.AppendRequest, error) {
	r := &consensus.AppendRequest{
		Generation: in.GetGeneration(),
		Term:       wal.Term(in.GetTerm()),
		Begin:      wal.LSN(in.GetBeginLsn()),
		Commit:     wal.LSN(in.GetCommitLsn()),
		Horizon:    wal.LSN(in.GetHorizonLsn()),
		CRC:        in.GetCrc32C(),
	}
	if err := checkAppend(r, len(in.GetData())); err != nil {
		return nil, err
	}
	if len(in.GetData()) > 0 {
		r.Data = in.GetData()
	}
	return r, nil
}

// checkAppend checks an AppendRequest that will carry size bytes, before
// memory is taken for them.
func checkAppend(r *consensus.AppendRequest, size int) error {
	if size > wal.RequestBytesMax {
		return &consensus.Error{Reason: consensus.ReasonTooLarge,
			Detail: fmt.Sprintf("append request: %d bytes of data, at most %d are allowed; send them in several requests", size, wal.RequestBytesMax)}
	}
	if r.Term == 0 {
		return invalid("append request: term is 0; terms begin at 1")
	}
	if r.Begin+wal.LSN(size) < r.Begin {
		return invalid("append request: %d bytes at %v run over the end of the LSN space", size, r.Begin)
	}
	return nil
}
