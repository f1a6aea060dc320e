package storage

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// The payload of a state frame: the acceptor's state, and before it what the
// log itself has to remember. The log's end is in the frame's header.
//
//	  0  8  trim LSN: below it nothing is kept
//	  8  8  number of the oldest segment that still matters
//	 16  8  in a head: the lowest end that the log had while the segment before was written
//	 24  4  in a head: truncations within that segment that its reader must know of
//	 28  4  zero
//	 32 16  creation id
//	 48  8  system id
//	 56  8  first LSN
//	 64  8  term
//	 72 16  voted for
//	 88  8  commit LSN
//	 96  8  horizon LSN
//	104  8  membership generation
//	112  2  members            114  2  new members
//	116  4  history entries    120  4  properties in bytes    124  4  zero
//	128     members, then new members: 8 node id, 2 address length, address
//	        history: 8 term, 8 LSN each
//	        properties
const statePrefixBytes = 128

const (
	addrBytesMax = 255

	// stateBytesMax is the largest payload that a legal state can need.
	stateBytesMax = statePrefixBytes + 2*wal.MembersMax*(10+addrBytesMax) + 16*wal.HistoryMax + wal.PropertiesBytesMax
)

// logState is a state frame's payload.
type logState struct {
	wal.State
	trim       wal.LSN // [wal.State.FirstLSN, log's end]; a read below it is a *TrimmedError
	oldest     uint64  // segments with lower numbers are garbage
	prevLow    wal.LSN
	prevTruncs uint32
}

// size is the length of the encoded payload.
func (s *logState) size() int {
	n := statePrefixBytes + 16*len(s.History) + len(s.Properties)
	for _, set := range [2][]wal.Member{s.Membership.Members, s.Membership.NewMembers} {
		for _, m := range set {
			n += 10 + len(m.Addr)
		}
	}
	return n
}

// validate reports a state that no frame can hold or that breaks an invariant
// which holds on disk, for a log that ends at end.
func (s *logState) validate(end wal.LSN) error {
	for _, set := range [2][]wal.Member{s.Membership.Members, s.Membership.NewMembers} {
		if len(set) > wal.MembersMax {
			return fmt.Errorf("state has %d members, at most %d are allowed", len(set), wal.MembersMax)
		}
		for _, m := range set {
			if len(m.Addr) > addrBytesMax {
				return fmt.Errorf("state has a member address of %d bytes, at most %d are allowed", len(m.Addr), addrBytesMax)
			}
		}
	}
	if len(s.Properties) > wal.PropertiesBytesMax {
		return fmt.Errorf("state has %d bytes of properties, at most %d are allowed", len(s.Properties), wal.PropertiesBytesMax)
	}
	if s.Horizon > s.Commit || s.Commit > end || s.trim > end || s.FirstLSN > end {
		return fmt.Errorf("state is out of order: first %v, trim %v, horizon %v, commit %v, end %v",
			s.FirstLSN, s.trim, s.Horizon, s.Commit, end)
	}
	return s.History.Validate()
}

// appendTo encodes the payload behind b.
func (s *logState) appendTo(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint64(b, uint64(s.trim))
	b = le.AppendUint64(b, s.oldest)
	b = le.AppendUint64(b, uint64(s.prevLow))
	b = le.AppendUint32(b, s.prevTruncs)
	b = le.AppendUint32(b, 0)
	b = append(b, s.Creation[:]...)
	b = le.AppendUint64(b, s.SystemID)
	b = le.AppendUint64(b, uint64(s.FirstLSN))
	b = le.AppendUint64(b, uint64(s.Term))
	b = append(b, s.VotedFor[:]...)
	b = le.AppendUint64(b, uint64(s.Commit))
	b = le.AppendUint64(b, uint64(s.Horizon))
	b = le.AppendUint64(b, s.Membership.Generation)
	b = le.AppendUint16(b, uint16(len(s.Membership.Members)))
	b = le.AppendUint16(b, uint16(len(s.Membership.NewMembers)))
	b = le.AppendUint32(b, uint32(len(s.History)))
	b = le.AppendUint32(b, uint32(len(s.Properties)))
	b = le.AppendUint32(b, 0)
	for _, set := range [2][]wal.Member{s.Membership.Members, s.Membership.NewMembers} {
		for _, m := range set {
			b = le.AppendUint64(b, uint64(m.ID))
			b = le.AppendUint16(b, uint16(len(m.Addr)))
			b = append(b, m.Addr...)
		}
	}
	for _, p := range s.History {
		b = le.AppendUint64(b, uint64(p.Term))
		b = le.AppendUint64(b, uint64(p.LSN))
	}
	return append(b, s.Properties...)
}

var errStateShort = errors.New("state payload ends early")

// decodeState decodes a state frame's payload; end is the frame's LSN. The
// result shares no memory with b and is bounded by len(b).
func decodeState(b []byte, end wal.LSN) (*logState, error) {
	if len(b) < statePrefixBytes {
		return nil, errStateShort
	}
	le := binary.LittleEndian
	s := &logState{
		trim:       wal.LSN(le.Uint64(b)),
		oldest:     le.Uint64(b[8:]),
		prevLow:    wal.LSN(le.Uint64(b[16:])),
		prevTruncs: le.Uint32(b[24:]),
	}
	copy(s.Creation[:], b[32:])
	s.SystemID = le.Uint64(b[48:])
	s.FirstLSN = wal.LSN(le.Uint64(b[56:]))
	s.Term = wal.Term(le.Uint64(b[64:]))
	copy(s.VotedFor[:], b[72:])
	s.Commit = wal.LSN(le.Uint64(b[88:]))
	s.Horizon = wal.LSN(le.Uint64(b[96:]))
	s.Membership.Generation = le.Uint64(b[104:])
	members, newMembers := int(le.Uint16(b[112:])), int(le.Uint16(b[114:]))
	entries, properties := int64(le.Uint32(b[116:])), int64(le.Uint32(b[120:]))
	b = b[statePrefixBytes:]
	var err error
	if s.Membership.Members, b, err = decodeMembers(b, members); err != nil {
		return nil, err
	}
	if s.Membership.NewMembers, b, err = decodeMembers(b, newMembers); err != nil {
		return nil, err
	}
	if int64(len(b)) != 16*entries+properties {
		return nil, fmt.Errorf("state payload has %d bytes for %d history entries and %d bytes of properties", len(b), entries, properties)
	}
	if entries > 0 {
		s.History = make(wal.History, entries)
		for i := range s.History {
			s.History[i] = wal.Position{Term: wal.Term(le.Uint64(b[16*i:])), LSN: wal.LSN(le.Uint64(b[16*i+8:]))}
		}
	}
	if properties > 0 {
		s.Properties = append([]byte(nil), b[16*entries:]...)
	}
	if err := s.validate(end); err != nil {
		return nil, err
	}
	return s, nil
}

func decodeMembers(b []byte, n int) ([]wal.Member, []byte, error) {
	if n == 0 {
		return nil, b, nil
	}
	if n > wal.MembersMax {
		return nil, nil, fmt.Errorf("state has %d members, at most %d are allowed", n, wal.MembersMax)
	}
	le := binary.LittleEndian
	set := make([]wal.Member, n)
	for i := range set {
		if len(b) < 10 {
			return nil, nil, errStateShort
		}
		addr := int(le.Uint16(b[8:]))
		if len(b) < 10+addr {
			return nil, nil, errStateShort
		}
		set[i] = wal.Member{ID: wal.NodeID(le.Uint64(b)), Addr: string(b[10 : 10+addr])}
		b = b[10+addr:]
	}
	return set, b, nil
}
