package crashimage

import (
	"encoding/binary"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// fill writes the bytes that term puts at [at, at+len(b)): no two terms agree
// on a word, no two places do, and no copy need be kept to know them.
func fill(b []byte, seed uint64, term wal.Term, at wal.LSN) {
	var word [8]byte
	for n := 0; n < len(b); {
		place := uint64(at) + uint64(n)
		binary.LittleEndian.PutUint64(word[:], scramble(seed^uint64(term)*0x9e3779b97f4a7c15^place>>3))
		n += copy(b[n:], word[place&7:])
	}
}

// differs returns the first position of b, which begins at at, that is not what term put there.
func differs(b []byte, seed uint64, term wal.Term, at wal.LSN) (wal.LSN, bool) {
	var want [4096]byte
	for n := 0; n < len(b); {
		part := b[n:min(n+len(want), len(b))]
		fill(want[:len(part)], seed, term, at+wal.LSN(n))
		for i := range part {
			if part[i] != want[i] {
				return at + wal.LSN(n+i), true
			}
		}
		n += len(part)
	}
	return 0, false
}

// scramble lets every bit of x reach every bit of the result (the finalizer of SplitMix64).
func scramble(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
