package workload

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// verifier compares the bytes of one replica, given in order, with what was
// acknowledged.
type verifier struct {
	acks     []Ack
	payloads []*Payloads // of each run
	next     int         // the first ack that is not judged
	at       wal.LSN
	buffer   []byte // the part of acks[next] that has been seen
	expected []byte // scratch

	present   int
	different []Ack // at most differentMax of them
	differing int
	trimmed   int // acks that begin below what can be read
	digest    hash.Hash
}

// differentMax bounds the examples that a report carries.
const differentMax = 10

// newVerifier judges bytes from position begin on.
func newVerifier(a *Acks, payloads []*Payloads, begin wal.LSN) *verifier {
	v := &verifier{acks: a.List, payloads: payloads, at: begin, digest: sha256.New()}
	for v.next < len(v.acks) && v.acks[v.next].Begin < begin {
		v.next++
		v.trimmed++
	}
	return v
}

// chunk takes the next bytes.
func (v *verifier) chunk(c wal.Chunk) error {
	v.digest.Write(c.Data)
	data, at := c.Data, c.Begin
	v.at = c.End()
	for len(data) > 0 && v.next < len(v.acks) {
		k := v.acks[v.next]
		if skip := int64(k.Begin) - int64(at); skip > 0 { // bytes of nobody's acknowledged append
			n := min(skip, int64(len(data)))
			data, at = data[n:], at+wal.LSN(n)
			continue
		}
		want := int(k.End-k.Begin) - len(v.buffer)
		n := min(want, len(data))
		if n < want || len(v.buffer) > 0 {
			v.buffer = append(v.buffer, data[:n]...)
		}
		if n == want {
			whole := data[:n]
			if len(v.buffer) > 0 {
				whole = v.buffer
			}
			v.judge(k, whole)
			v.buffer = v.buffer[:0]
			v.next++
		}
		data, at = data[n:], at+wal.LSN(n)
	}
	return nil
}

func (v *verifier) judge(k Ack, got []byte) {
	same := wal.Checksum(got) == k.CRC
	if same && !k.Raw {
		if cap(v.expected) < len(got) {
			v.expected = make([]byte, len(got))
		}
		v.expected = v.expected[:len(got)]
		v.payloads[k.Run].Fill(k.Counter, v.expected)
		same = bytes.Equal(got, v.expected)
	}
	if same {
		v.present++
		return
	}
	v.differing++
	if len(v.different) < differentMax {
		v.different = append(v.different, k)
	}
}

// behind is how many acknowledged appends end above what was seen.
func (v *verifier) behind() int { return len(v.acks) - v.next }

func (v *verifier) sum() string { return hex.EncodeToString(v.digest.Sum(nil)) }
