package workload

import "encoding/binary"

// Payloads makes the bytes of appends from a seed and a counter, always the
// same for the same pair. It is safe for concurrent use.
type Payloads struct {
	seed uint64
	pool []byte // random bytes that every payload is cut from
}

// poolBytes is small enough for a CPU's cache and a prime, so that payloads of
// round sizes do not begin at the same few places.
const poolBytes = 262_139

// NewPayloads prepares the payloads of one seed.
func NewPayloads(seed uint64) *Payloads {
	p := &Payloads{seed: seed, pool: make([]byte, poolBytes)}
	x := seed
	for i := 0; i < len(p.pool); i += 8 {
		x += 0x9e3779b97f4a7c15
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], scramble(x))
		copy(p.pool[i:], word[:])
	}
	return p
}

// Fill writes the payload of counter into dst; its length is the payload's.
//
//	counter 8, seed 8, then pool bytes from a place that the counter chooses
func (p *Payloads) Fill(counter uint64, dst []byte) {
	at := int(scramble(counter^p.seed) % poolBytes)
	for n := 0; n < len(dst); {
		n += copy(dst[n:], p.pool[at:])
		at = 0
	}
	var head [16]byte
	binary.LittleEndian.PutUint64(head[:], counter)
	binary.LittleEndian.PutUint64(head[8:], p.seed)
	copy(dst, head[:])
}

// scramble is the finalizer of SplitMix64: every bit of x reaches every bit of the result.
func scramble(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
