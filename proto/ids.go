package proto

import (
	"strings"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// EncodeCreationID returns the id's 16 bytes, nil for the zero id.
func EncodeCreationID(id wal.CreationID) []byte {
	if id.IsZero() {
		return nil
	}
	return id[:]
}

// DecodeCreationID accepts exactly 16 bytes that are not all zero.
func DecodeCreationID(b []byte) (wal.CreationID, error) {
	id, err := DecodeCreationIDOrNone(b)
	if err == nil && id.IsZero() {
		err = invalid("creation id is missing, expected 16 bytes")
	}
	return id, err
}

// DecodeCreationIDOrNone accepts 16 bytes, or none for the zero id.
func DecodeCreationIDOrNone(b []byte) (id wal.CreationID, err error) {
	if len(b) != 0 && len(b) != len(id) {
		return id, invalid("creation id has %d bytes, expected %d", len(b), len(id))
	}
	copy(id[:], b)
	return id, nil
}

// EncodeProposerID returns the id's 16 bytes, nil for the zero id.
func EncodeProposerID(id wal.ProposerID) []byte {
	if id.IsZero() {
		return nil
	}
	return id[:]
}

// DecodeProposerID accepts exactly 16 bytes that are not all zero.
func DecodeProposerID(b []byte) (wal.ProposerID, error) {
	id, err := DecodeProposerIDOrNone(b)
	if err == nil && id.IsZero() {
		err = invalid("proposer id is missing, expected 16 bytes")
	}
	return id, err
}

// DecodeProposerIDOrNone accepts 16 bytes, or none for the zero id.
func DecodeProposerIDOrNone(b []byte) (id wal.ProposerID, err error) {
	if len(b) != 0 && len(b) != len(id) {
		return id, invalid("proposer id has %d bytes, expected %d", len(b), len(id))
	}
	copy(id[:], b)
	return id, nil
}

// DecodeTimelineID parses and checks tenant/timeline. The result does not
// share memory with s, which may be part of a large message.
func DecodeTimelineID(s string) (wal.TimelineID, error) {
	const longest = 2*63 + 1
	if len(s) > longest {
		return wal.TimelineID{}, invalid("timeline name has %d bytes, at most %d are allowed", len(s), longest)
	}
	t, err := wal.ParseTimelineID(strings.Clone(s))
	if err != nil {
		return wal.TimelineID{}, invalid("%v", err)
	}
	return t, nil
}
