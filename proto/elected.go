package proto

import (
	"bytes"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// EncodeElected converts an Elected; its result shares Properties.
func EncodeElected(e *consensus.Elected) *holdfastv1.Elected {
	return &holdfastv1.Elected{
		Generation: e.Generation,
		Term:       uint64(e.Term),
		ResumeLsn:  uint64(e.Resume),
		History:    EncodeHistory(e.History),
		SystemId:   e.SystemID,
		Properties: e.Properties,
	}
}

// DecodeElected checks the form of an Elected: a history that ends with its
// term, and properties within bounds. The result shares no memory with in.
func DecodeElected(in *holdfastv1.Elected) (*consensus.Elected, error) {
	e := &consensus.Elected{
		Generation: in.GetGeneration(),
		Term:       wal.Term(in.GetTerm()),
		Resume:     wal.LSN(in.GetResumeLsn()),
		SystemID:   in.GetSystemId(),
	}
	var err error
	if e.History, err = DecodeHistory(in.GetHistory()); err != nil {
		return nil, invalidErr("elected", err)
	}
	if e.Term == 0 || e.History.LastTerm() != e.Term {
		return nil, invalid("elected: the history ends with term %d, expected the election's term %d", e.History.LastTerm(), e.Term)
	}
	if e.Properties, err = decodeProperties(in.GetProperties()); err != nil {
		return nil, invalidErr("elected", err)
	}
	return e, nil
}

func decodeProperties(b []byte) ([]byte, error) {
	if len(b) > wal.PropertiesBytesMax {
		return nil, invalid("properties have %d bytes, at most %d are allowed", len(b), wal.PropertiesBytesMax)
	}
	if len(b) == 0 {
		return nil, nil
	}
	return bytes.Clone(b), nil
}
