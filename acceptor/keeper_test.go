package acceptor

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/seed7f3f3bb8/holdfast/proto"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// fill appends and commits megabytes.
func (x *client) fill(megabytes int) {
	x.t.Helper()
	for range megabytes * 4 {
		x.append(pattern(x.at, 256<<10))
		x.acked(x.at, 0)
	}
	x.commit()
}

func TestTrim(t *testing.T) {
	n := start(t, config(t, vfs.NewMem()))
	n.create(mainline, born)
	x := n.lead(mainline, born, 1)
	x.fill(8)
	trim := func(before wal.LSN) (*holdfastv1.TrimTimelineResponse, error) {
		return n.admin.TrimTimeline(t.Context(), &holdfastv1.TrimTimelineRequest{Timeline: "t/main", CreationId: born[:], BeforeLsn: uint64(before)})
	}
	if _, err := trim(x.at + 1); reason(err) != proto.ReasonAboveHorizon {
		t.Errorf("above the horizon: %v", err)
	}
	middle := firstLSN + 5<<20
	r, err := trim(middle)
	if err != nil || wal.LSN(r.OldestLsn) != middle || r.SegmentsRemoved == 0 || r.BytesRemoved == 0 {
		t.Errorf("trimmed %v, %v", r, err)
	}
	_, err = n.read(&holdfastv1.ReadRequest{Timeline: "t/main", BeginLsn: uint64(middle) - 1})
	if e := proto.FromStatus(err); e == nil || e.Reason != proto.ReasonTrimmed || e.Expected != middle {
		t.Errorf("a read below: %v", err)
	}
	got, err := n.read(&holdfastv1.ReadRequest{Timeline: "t/main", BeginLsn: uint64(middle)})
	if err != nil || len(got) != 3<<20 || got[0] != pattern(middle, 1)[0] {
		t.Errorf("a read of the rest: %d bytes, %v", len(got), err)
	}
	if r, err := trim(middle - 100); err != nil || wal.LSN(r.OldestLsn) != middle || r.SegmentsRemoved != 0 {
		t.Errorf("trimmed again: %v, %v", r, err)
	}
}

func TestRetention(t *testing.T) {
	c := config(t, vfs.NewMem())
	c.RetainBytes = 2 << 20
	n := start(t, c)
	n.create(mainline, born)
	x := n.lead(mainline, born, 1)
	x.fill(10)
	eventually(t, "old WAL goes", func() bool {
		n.round(t.Context(), 1)
		return wal.LSN(n.status(mainline).OldestLsn) == x.at-2<<20
	})
	most := uint64(0)
	for range 4 {
		x.fill(4)
		n.round(t.Context(), 1)
		eventually(t, "segments are used again", func() bool {
			n.round(t.Context(), 1)
			return wal.LSN(n.status(mainline).OldestLsn) == x.at-2<<20
		})
		most = max(most, n.status(mainline).DiskBytes)
	}
	if most > 16<<20 {
		t.Errorf("%d bytes are on the disk where 2 MiB are to be kept", most)
	}
}

// TestIdleTimelinesCostLittle: after use they give back goroutines and
// descriptors, and in the end everything.
func TestIdleTimelinesCostLittle(t *testing.T) {
	const many = 50
	disk := vfs.NewFault(vfs.NewMem())
	c := config(t, disk)
	c.LogsHotMax = 8
	n := start(t, c)
	name := func(i int) wal.TimelineID { return wal.TimelineID{Tenant: "t", Timeline: fmt.Sprint("n", i)} }
	for i := range many {
		n.create(name(i), born)
	}
	var open []*client
	for i := range many {
		eventually(t, "a place among the hot", func() bool { return n.hot.len() < 2*c.LogsHotMax })
		x := n.lead(name(i), born, 1)
		x.append([]byte("x"))
		x.acked(x.at, 0)
		open = append(open, x)
	}
	eventually(t, "few hot logs", func() bool {
		n.round(t.Context(), 1)
		return n.hot.len() <= c.LogsHotMax
	})
	// One that was cooled writes again.
	for _, x := range open {
		x.append([]byte("y"))
		x.acked(x.at, 0)
		n.hot.cool(0)
	}
	for _, x := range open {
		x.cancel()
	}
	eventually(t, "no hot logs", func() bool { // each may write once more: its last state frame
		n.hot.cool(n.now() + int64(time.Hour))
		return n.hot.len() == 0
	})
	n.cfg.CloseIdleAfter = 1
	eventually(t, "closed", func() bool {
		n.round(t.Context(), 1)
		return len(n.opened.list()) == 0
	})
	for i := range many {
		if s := n.status(name(i)); s.Opened || wal.LSN(s.FlushLsn) != firstLSN+2 {
			t.Errorf("a closed timeline: %v", s)
		}
	}
	x := n.lead(name(0), born, 2)
	x.append([]byte("z"))
	x.acked(x.at, 0)
}

// TestColdTimelinesCostOneStruct: what a node needs for each timeline that
// nobody has used since it began.
func TestColdTimelinesCostOneStruct(t *testing.T) {
	const many = 10_000
	n := &Node{registry: newRegistry()}
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // what earlier tests left to finalizers and pools
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for i := range many {
		n.registry.put(newTimeline(n, wal.TimelineID{Tenant: fmt.Sprint("tenant", i%10), Timeline: fmt.Sprint("timeline", i)}))
	}
	if each := (heap() - before) / many; each > 512 {
		t.Errorf("%d bytes for each cold timeline", each)
	}
	runtime.KeepAlive(n)
}
