package acceptor

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/proto"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
)

// TestDamageIsRememberedAcrossARestart: damage in an old segment that a reader
// or a scrub has found keeps the copy from voting when the node has been started again,
// although opening reads only the newest segment.
func TestDamageIsRememberedAcrossARestart(t *testing.T) {
	disk := vfs.NewMem()
	n := start(t, config(t, disk))
	n.create(mainline, born)
	x := n.lead(mainline, born, 1)
	for range 60 { // more than one segment
		x.append(pattern(x.at, 40000))
	}
	x.acked(x.at, 0)
	x.commit()
	x.append([]byte("says what is committed"))
	x.acked(x.at, 0)
	if err := disk.FlipBit("data/t/main/0000000000000002.seg", 300000, 3); err != nil {
		t.Fatal(err)
	}
	again := start(t, config(t, disk.CrashWorst()))
	if again.lead(mainline, born, 3); again.status(mainline).Health != holdfastv1.Health_HEALTH_OK {
		t.Fatal("the test wants damage that opening does not see")
	}
	n.quarantined()
	damage := n.status(mainline).Damage
	if len(damage) != 1 || damage[0].EndLsn <= damage[0].BeginLsn {
		t.Fatalf("the status shows %v", damage)
	}
	again = start(t, config(t, disk.CrashWorst()))
	y, _ := again.greet(mainline, born, 3)
	y.send(&consensus.VoteRequest{Generation: 1, Term: 9})
	if e := y.ended(); e.Reason != consensus.ReasonQuarantined {
		t.Errorf("a vote after a restart: %v", e)
	}
	s := again.status(mainline)
	if s.Health != holdfastv1.Health_HEALTH_QUARANTINED || len(s.Damage) != 1 || s.Damage[0].BeginLsn != damage[0].BeginLsn || s.Damage[0].EndLsn != damage[0].EndLsn {
		t.Errorf("status after a restart: %v", s)
	}
	if got, err := again.read(&holdfastv1.ReadRequest{Timeline: "t/main", BeginLsn: damage[0].BeginLsn}); reason(err) != proto.ReasonCorrupt {
		t.Errorf("a read of the damaged range: %d bytes, %v", len(got), err)
	}
	// Opening it again is no way out.
	if r, err := again.admin.ReopenTimeline(t.Context(), &holdfastv1.ReopenTimelineRequest{Timeline: "t/main", CreationId: born[:]}); err != nil || r.Timeline.Health != holdfastv1.Health_HEALTH_QUARANTINED {
		t.Errorf("reopened: %v, %v", r, err)
	}
}

// TestDamageIsRepairedByItself: with a peer that has the bytes nobody has to
// ask. As long as it does not answer, the status says what is missing.
func TestDamageIsRepairedByItself(t *testing.T) {
	nodes, want := rotten(t)
	n := nodes[0]
	n.cfg.ManualRepair = false
	for range cap(nodes[1].readers) {
		nodes[1].readers <- struct{}{} // the peer takes no more reads
	}
	n.quarantined()
	eventually(t, "a failed repair", func() bool { return strings.Contains(n.status(mainline).HealthReason, "no peer could give") })
	for range cap(nodes[1].readers) {
		<-nodes[1].readers
	}
	eventually(t, "repair", func() bool {
		if r := n.registry.get(mainline).open.Load(); r != nil {
			r.mend.schedule(0)
		}
		n.round(t.Context(), 1)
		return n.status(mainline).Health == holdfastv1.Health_HEALTH_OK
	})
	got, err := n.read(&holdfastv1.ReadRequest{Timeline: "t/main", BeginLsn: uint64(firstLSN), Recovery: &holdfastv1.Recovery{PinnedTerm: 1}})
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	n.lead(mainline, born, 2)
}

// TestBackgroundScrub: rot that nobody reads is found.
func TestBackgroundScrub(t *testing.T) {
	disk := vfs.NewMem()
	c := config(t, disk)
	n := start(t, c)
	n.create(mainline, born)
	x := n.lead(mainline, born, 1)
	x.append(pattern(x.at, 400000))
	x.acked(x.at, 0)
	n.leave()
	if err := disk.FlipBit("data/t/main/0000000000000002.seg", 300000, 3); err != nil {
		t.Fatal(err)
	}
	c = config(t, disk)
	c.ScrubEvery, c.ScrubBytesPerSecond = 10*time.Millisecond, 1<<40
	n = start(t, c)
	eventually(t, "quarantine", func() bool { return n.status(mainline).Health == holdfastv1.Health_HEALTH_QUARANTINED })
}

// TestRepairSurvivesPowerCuts cuts the power while a damaged copy is repaired.
// What is left is the damaged copy, known as that, or the whole one, and term,
// vote, flush and commit are what they were.
func TestRepairSurvivesPowerCuts(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	nodes, want := rotten(t)
	disk := nodes[0].cfg.FS.(*vfs.Mem)
	nodes[0].quarantined()
	before := nodes[0].status(mainline)
	left := disk.CrashWorst()
	nodes[0].leave()
	repaired, whole := 0, false
	for at := 0; !whole; at += 1 + at/7 {
		mem := left.CrashWorst()
		fault := vfs.NewFault(mem)
		c := config(t, fault)
		c.ScrubBytesPerSecond = -1
		n := start(t, c)
		n.status(mainline)
		count := fault.Mutations()
		fault.CrashAfter(count + at)
		_, err := n.repair()
		whole = !fault.Crashed()
		n.abandon()
		mem = mem.Crash(random)
		again := start(t, config(t, mem))
		s := again.status(mainline)
		switch s.Health {
		case holdfastv1.Health_HEALTH_OK:
			repaired++
			got, err := again.read(&holdfastv1.ReadRequest{Timeline: "t/main", BeginLsn: uint64(firstLSN), Recovery: &holdfastv1.Recovery{PinnedTerm: 1}})
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("cut after %d: read %d bytes, %v", at, len(got), err)
			}
		case holdfastv1.Health_HEALTH_QUARANTINED:
			if err == nil {
				t.Fatalf("cut after %d: repaired and not", at)
			}
		default:
			t.Fatalf("cut after %d: %v", at, s)
		}
		if s.Term != before.Term || !bytes.Equal(s.VotedFor, before.VotedFor) || s.FlushLsn != before.FlushLsn || s.CommitLsn < before.CommitLsn {
			t.Fatalf("cut after %d: before %v, after %v", at, before, s)
		}
		again.leave()
	}
	if repaired < 2 {
		t.Errorf("repaired %d times", repaired)
	}
}

// abandon ends a node whose disk is gone, which cannot leave in order.
func (n *testNode) abandon() {
	n.left.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = n.Shutdown(ctx)
	<-n.served
	_ = n.conn.Close()
}
