package acceptor

import (
	"bytes"
	"path"
	"strings"
	"syscall"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/proto"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// TestPoisonAndRecovery: after a failed fdatasync nothing is acknowledged and no
// vote is given; what was durable is still read; once the disk works again the
// log is opened again by itself and goes on from what was durable.
func TestPoisonAndRecovery(t *testing.T) {
	fault := vfs.NewFault(vfs.NewMem())
	n := start(t, config(t, fault))
	n.create(mainline, born)
	x := n.lead(mainline, born, 1)
	first := pattern(x.at, 5000)
	x.append(first)
	x.acked(x.at, 0)
	x.commit()
	durable := x.at

	lost := fault.Inject(vfs.Rule{Ops: vfs.OpDatasync, Effect: vfs.LoseSync{}})
	x.append([]byte("never acknowledged"))
	if e := x.ended(); e.Reason != consensus.ReasonPoisoned {
		t.Fatalf("ended with %v", e)
	}
	s := n.status(mainline)
	if s.Health != holdfastv1.Health_HEALTH_POISONED || !strings.Contains(s.HealthReason, "sync") || wal.LSN(s.FlushLsn) != durable {
		t.Errorf("status %v", s)
	}
	if reasons := n.NotReady(); len(reasons) != 1 {
		t.Errorf("ready although the disk has failed for every timeline: %v", reasons)
	}
	if n.State().Poisoned != 1 {
		t.Error("the metrics do not know")
	}
	y, g := n.greet(mainline, born, 2)
	if g.Health != wal.Poisoned {
		t.Errorf("greeted with health %v", g.Health)
	}
	y.send(&consensus.VoteRequest{Generation: 1, Term: 9})
	if e := y.ended(); e.Reason != consensus.ReasonPoisoned {
		t.Errorf("a vote: %v", e)
	}
	if got, err := n.read(&holdfastv1.ReadRequest{Timeline: "t/main", BeginLsn: uint64(firstLSN)}); err != nil || !bytes.Equal(got, first) {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	// A heal that finds the disk broken leaves things as they are.
	r := n.registry.get(mainline).open.Load()
	r.reopen(t.Context())
	if n.registry.get(mainline).open.Load() != r {
		t.Error("opened again on a disk that fails")
	}

	lost.Remove()
	r.reopen(t.Context())
	s = n.status(mainline)
	if s.Health != holdfastv1.Health_HEALTH_OK || s.HealthReason != "" || wal.LSN(s.FlushLsn) != durable {
		t.Errorf("after the recovery: %v", s)
	}
	z := n.lead(mainline, born, 3)
	if z.at != durable {
		t.Errorf("goes on at %v, expected %v", z.at, durable)
	}
	z.append([]byte("goes on"))
	z.acked(z.at, 0)
}

func TestTheKeeperHealsByItself(t *testing.T) {
	fault := vfs.NewFault(vfs.NewMem())
	n := start(t, config(t, fault))
	n.create(mainline, born)
	x := n.lead(mainline, born, 1)
	x.append([]byte("x"))
	x.acked(x.at, 0)
	fault.Inject(vfs.Rule{Ops: vfs.OpWrites, Times: 1, Effect: vfs.Fail{Err: syscall.EIO}})
	x.append([]byte("lost"))
	x.ended()
	eventually(t, "reopening", func() bool { return n.status(mainline).Health == holdfastv1.Health_HEALTH_OK })
}

// TestFullDisk: appends that do not fit are refused, votes and restarts go on,
// and it returns by itself.
func TestFullDisk(t *testing.T) {
	disk := vfs.NewMem()
	c := config(t, disk)
	c.SpareSegments = 3
	n := start(t, c)
	n.create(mainline, born)
	x := n.lead(mainline, born, 1)
	x.append([]byte("x"))
	x.acked(x.at, 0)
	free, err := disk.FreeBytes("data")
	if err != nil {
		t.Fatal(err)
	}
	disk.SetCapacity(1<<40 - int64(free)) // what is used, and nothing more
	flushed := x.at
	for {
		at := x.at
		x.append(pattern(x.at, 256<<10))
		m, err := x.next()
		if err != nil {
			if reason(err) != consensus.ReasonNoSpace {
				t.Fatalf("ended with %v", err)
			}
			break
		}
		if r := m.(*consensus.AppendResponse); r.Flush != x.at {
			t.Fatalf("acknowledged %v after %v", r.Flush, x.at)
		}
		flushed = max(at, x.at)
	}
	for round := range 20 {
		y := n.lead(mainline, born, byte(round)+2)
		if y.at != flushed {
			t.Fatalf("the log ends at %v, expected %v", y.at, flushed)
		}
		y.cancel()
	}
	n.leave()
	n = start(t, c)
	y := n.lead(mainline, born, 100)
	y.append(pattern(y.at, 256<<10))
	if e := y.ended(); e.Reason != consensus.ReasonNoSpace {
		t.Errorf("still full: %v", e)
	}
	if s := n.status(mainline); s.Health != holdfastv1.Health_HEALTH_OK || wal.LSN(s.FlushLsn) != flushed {
		t.Errorf("status %v", s)
	}
	disk.SetCapacity(1 << 40)
	eventually(t, "space is used again", func() bool {
		n.round(t.Context(), prepareAgain)
		z := n.lead(mainline, born, byte(connections.Load()%100)+101)
		defer z.cancel()
		z.append(pattern(z.at, 256<<10))
		for {
			m, err := z.next()
			if err != nil {
				return false
			}
			if r, ok := m.(*consensus.AppendResponse); ok && r.Flush == z.at {
				return true
			}
		}
	})
}

// damaged is a node whose timeline has a flipped bit in the middle of its WAL.
func damaged(t *testing.T) (n *testNode, want []byte) {
	t.Helper()
	disk := vfs.NewMem()
	n = start(t, config(t, disk))
	n.create(mainline, born)
	x := n.lead(mainline, born, 1)
	for range 20 {
		data := pattern(x.at, 40000)
		want = append(want, data...)
		x.append(data)
	}
	x.acked(x.at, 0)
	x.commit()
	segment := path.Join("data", "t", "main", "0000000000000002.seg")
	if err := disk.FlipBit(segment, 300000, 3); err != nil {
		t.Fatal(err)
	}
	return n, want
}

func TestDamageFoundByAReaderQuarantines(t *testing.T) {
	n, want := damaged(t)
	got, err := n.read(&holdfastv1.ReadRequest{Timeline: "t/main", BeginLsn: uint64(firstLSN)})
	if reason(err) != proto.ReasonCorrupt || !bytes.HasPrefix(want, got) || len(got) < 200000 {
		t.Fatalf("read %d bytes, %v", len(got), err)
	}
	eventually(t, "quarantine", func() bool { return n.status(mainline).Health == holdfastv1.Health_HEALTH_QUARANTINED })
	_, g := n.greet(mainline, born, 2)
	if g.Health != wal.Quarantined {
		t.Errorf("greeted with health %v", g.Health)
	}
	// What is undamaged is served.
	tail := uint64(firstLSN) + 500000
	if got, err := n.read(&holdfastv1.ReadRequest{Timeline: "t/main", BeginLsn: tail}); err != nil || !bytes.Equal(got, want[500000:]) {
		t.Errorf("behind the damage: %d bytes, %v", len(got), err)
	}
}

func TestDamageFoundByAScrub(t *testing.T) {
	n, _ := damaged(t)
	stream, err := n.admin.ScrubTimeline(t.Context(), &holdfastv1.ScrubTimelineRequest{Timeline: "t/main", CreationId: born[:], BytesPerSecondMax: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	var damage []*holdfastv1.Damage
	var last *holdfastv1.ScrubTimelineResponse
	for {
		r, err := stream.Recv()
		if err != nil {
			break
		}
		damage = append(damage, r.Damage...)
		last = r
	}
	if len(damage) != 1 || damage[0].Segment != 2 || damage[0].EndLsn <= damage[0].BeginLsn || last.BytesDone != last.BytesTotal || last.BytesDone < 800000 {
		t.Errorf("damage %v, last %v", damage, last)
	}
	eventually(t, "quarantine", func() bool { return n.status(mainline).Health == holdfastv1.Health_HEALTH_QUARANTINED })
}

func TestALostCopySaysSo(t *testing.T) {
	disk := vfs.NewMem()
	n := start(t, config(t, disk))
	n.create(mainline, born)
	n.leave()
	if err := disk.Remove("data/t/main/0000000000000001.seg"); err != nil {
		t.Fatal(err)
	}
	n = start(t, config(t, disk))
	x := n.dial()
	x.send(hello(mainline, born, 1))
	if e := x.ended(); e.Reason != consensus.ReasonLost {
		t.Errorf("a greeting: %v", e)
	}
	if s := n.status(mainline); s.Health != holdfastv1.Health_HEALTH_LOST || s.HealthReason == "" {
		t.Errorf("status %v", s)
	}
	in := createRequest(mainline, wal.CreationID{8})
	if _, err := n.admin.CreateTimeline(t.Context(), in); reason(err) != proto.ReasonAlreadyExists {
		t.Errorf("creating over a lost copy: %v", err)
	}
	in.ReplaceCreationId = born[:]
	if _, err := n.admin.CreateTimeline(t.Context(), in); reason(err) != consensus.ReasonLost {
		t.Errorf("replacing a lost copy: %v", err)
	}
	if _, err := n.admin.DeleteTimeline(t.Context(), &holdfastv1.DeleteTimelineRequest{Timeline: "t/main", CreationId: born[:]}); err != nil {
		t.Errorf("deleting a lost copy: %v", err)
	}
}
