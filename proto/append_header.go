package proto

import (
	"encoding/binary"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"google.golang.org/protobuf/encoding/protowire"
)

// The bytes of an AppendRequest, as it stands in a ProposerMessage:
//
//	22 LL          ProposerMessage.append_request (field 4, length-delimited), varint length of all below
//	09 8 bytes     generation
//	11 8 bytes     term
//	19 8 bytes     begin_lsn
//	21 8 bytes     commit_lsn
//	29 8 bytes     horizon_lsn
//	35 4 bytes     crc32c
//	7A NN          data (field 15, length-delimited), varint length of the rest; left out when there is none
//	NN bytes       WAL
//
// Zero values are written too, which protobuf allows, so that the header has
// one length. All integers are little-endian.
const (
	tagAppendRequest = 4<<3 | 2
	tagGeneration    = 1<<3 | 1
	tagTerm          = 2<<3 | 1
	tagBegin         = 3<<3 | 1
	tagCommit        = 4<<3 | 1
	tagHorizon       = 5<<3 | 1
	tagCRC           = 6<<3 | 5
	tagData          = 15<<3 | 2

	appendFixedBytes  = 5*9 + 5
	appendHeaderBytes = 1 + binary.MaxVarintLen32 + appendFixedBytes + 1 + binary.MaxVarintLen32 // the most that a header takes
)

// appendAppendHeader appends everything of r's encoding but the data itself.
func appendAppendHeader(b []byte, r *consensus.AppendRequest) []byte {
	size := appendFixedBytes
	if len(r.Data) > 0 {
		size += 1 + protowire.SizeBytes(len(r.Data))
	}
	b = binary.AppendUvarint(append(b, tagAppendRequest), uint64(size))
	b = binary.LittleEndian.AppendUint64(append(b, tagGeneration), r.Generation)
	b = binary.LittleEndian.AppendUint64(append(b, tagTerm), uint64(r.Term))
	b = binary.LittleEndian.AppendUint64(append(b, tagBegin), uint64(r.Begin))
	b = binary.LittleEndian.AppendUint64(append(b, tagCommit), uint64(r.Commit))
	b = binary.LittleEndian.AppendUint64(append(b, tagHorizon), uint64(r.Horizon))
	b = binary.LittleEndian.AppendUint32(append(b, tagCRC), r.CRC)
	if len(r.Data) > 0 {
		b = binary.AppendUvarint(append(b, tagData), uint64(len(r.Data)))
	}
	return b
}

// parseAppendHeader reads the header of an AppendRequest from head, the first
// bytes of a ProposerMessage of total bytes. It fills r but for Data and says
// where the data begins (at total if there is none).
//
// Fields may come in any order, or not at all, or twice, when the last counts;
// data comes last. Whatever else protobuf allows, and whatever it does not, is
// not ok and left to the standard decoder.
func parseAppendHeader(head []byte, total int, r *consensus.AppendRequest) (dataAt int, ok bool) {
	if len(head) == 0 || head[0] != tagAppendRequest {
		return 0, false
	}
	size, n := binary.Uvarint(head[1:])
	i := 1 + n
	if n <= 0 || size != uint64(total-i) {
		return 0, false
	}
	*r = consensus.AppendRequest{}
	for i < len(head) {
		tag := head[i]
		i++
		switch tag {
		case tagGeneration, tagTerm, tagBegin, tagCommit, tagHorizon:
			if len(head)-i < 8 {
				return 0, false
			}
			v := binary.LittleEndian.Uint64(head[i:])
			i += 8
			switch tag {
			case tagGeneration:
				r.Generation = v
			case tagTerm:
				r.Term = wal.Term(v)
			case tagBegin:
				r.Begin = wal.LSN(v)
			case tagCommit:
				r.Commit = wal.LSN(v)
			default:
				r.Horizon = wal.LSN(v)
			}
		case tagCRC:
			if len(head)-i < 4 {
				return 0, false
			}
			r.CRC = binary.LittleEndian.Uint32(head[i:])
			i += 4
		case tagData:
			size, n := binary.Uvarint(head[i:])
			i += n
			if n <= 0 || size != uint64(total-i) {
				return 0, false
			}
			return i, true
		default:
			return 0, false
		}
	}
	return i, i == total
}

// AppendHeader appends to b everything of r's encoding, as it stands in a
// ProposerMessage, but the data itself. A proposer that sends the same request
// on several streams encodes it once: the header, then the data as the last bytes.
func AppendHeader(b []byte, r *consensus.AppendRequest) []byte { return appendAppendHeader(b, r) }

// AppendHeaderBytesMax is the most that AppendHeader appends.
const AppendHeaderBytesMax = appendHeaderBytes
