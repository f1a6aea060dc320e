package proto

import (
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// EncodeHistory converts a history; its result shares no memory with h.
func EncodeHistory(h wal.History) []*holdfastv1.Position {
	if len(h) == 0 {
		return nil
	}
	room := make([]holdfastv1.Position, len(h))
	out := make([]*holdfastv1.Position, len(h))
	for i, p := range h {
		out[i] = &room[i]
		out[i].Term, out[i].Lsn = uint64(p.Term), uint64(p.LSN)
	}
	return out
}

// DecodeHistory accepts what History.Validate accepts. No entries give nil.
func DecodeHistory(in []*holdfastv1.Position) (wal.History, error) {
	if len(in) == 0 {
		return nil, nil
	}
	if len(in) > wal.HistoryMax {
		return nil, invalid("term history has %d entries, at most %d are allowed", len(in), wal.HistoryMax)
	}
	h := make(wal.History, len(in))
	for i, p := range in {
		h[i] = wal.Position{Term: wal.Term(p.GetTerm()), LSN: wal.LSN(p.GetLsn())}
	}
	if err := h.Validate(); err != nil {
		return nil, invalid("%v", err)
	}
	return h, nil
}
