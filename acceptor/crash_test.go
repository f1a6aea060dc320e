package acceptor

import (
	"bytes"
	"math/rand/v2"
	"testing"

	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// TestPowerCutsWhileStreaming cuts the power of a copy of the disk again and
// again while a proposer streams, elections change and segments are made: whatever
// was acknowledged by then is there when a node starts on what is left.
func TestPowerCutsWhileStreaming(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	disk := vfs.NewMem()
	n := start(t, config(t, disk))
	n.create(mainline, born)
	x := n.lead(mainline, born, 1)
	for round := range 12 {
		if round%5 == 4 {
			x.cancel()
			x = n.lead(mainline, born, byte(round))
		}
		for range 1 + random.IntN(6) {
			x.append(pattern(x.at, 1+random.IntN(200<<10)))
		}
		acked := x.at
		x.acked(acked, 0)
		x.append(pattern(x.at, 1+random.IntN(200<<10))) // on its way at the moment of the cut
		left := disk.CrashWorst()
		if round%2 == 0 {
			left = disk.Crash(random)
		}
		again := start(t, config(t, left))
		s := again.status(mainline)
		if wal.LSN(s.FlushLsn) < acked || s.Health != holdfastv1.Health_HEALTH_OK || s.Term < uint64(x.term) {
			t.Fatalf("round %d: acknowledged up to %v in term %d, found %v", round, acked, x.term, s)
		}
		y := again.lead(mainline, born, 200)
		y.append([]byte("the term is adopted"))
		y.acked(y.at, 0)
		got, err := again.read(&holdfastv1.ReadRequest{
			Timeline: "t/main", BeginLsn: uint64(firstLSN), EndLsn: uint64(acked), Recovery: &holdfastv1.Recovery{PinnedTerm: uint64(y.term)},
		})
		if err != nil || !bytes.Equal(got, pattern(firstLSN, int(acked-firstLSN))) {
			t.Fatalf("round %d: read %d of %d acknowledged bytes, %v", round, len(got), acked-firstLSN, err)
		}
		again.leave()
	}
}
