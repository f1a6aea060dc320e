package workload

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed7f3f3bb8/holdfast/admin"
)

// loaded drives a short load into memory and returns its log and acks.
func loaded(t *testing.T) (*memoryLog, *Acks) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "acks")
	log := &memoryLog{first: 12345, failAt: 400, failWith: errors.New("enough")}
	acks, err := OpenAckLog(path, testTimeline, 99)
	if err != nil {
		t.Fatal(err)
	}
	load := Load{Size: 3000, Concurrency: 8, Duration: time.Minute, Payloads: NewPayloads(99), Acks: acks}
	var m Meter
	if _, err := load.Drive(t.Context(), log, &m); err == nil || err.Error() != "enough" {
		t.Fatalf("the load ended with %v", err)
	}
	if err := acks.Close(); err != nil {
		t.Fatal(err)
	}
	a, err := ReadAcksFile(path)
	if err != nil || len(a.List) < 350 {
		t.Fatalf("%v, %d acks", err, len(a.List))
	}
	return log, a
}

func TestAuditFindsAll(t *testing.T) {
	log, acks := loaded(t)
	r, err := (&Audit{Cluster: replicate(log), Timeline: testTimeline, Acks: acks}).Run(t.Context())
	if err != nil || r.Err() != nil || r.Missing != 0 || !r.Identical || r.Replicas[2].Present != len(acks.List) {
		t.Fatalf("%v, %+v", err, r)
	}
}

func TestAuditFindsDamage(t *testing.T) {
	log, acks := loaded(t)
	audit := func(c *memoryCluster) *AuditResult {
		t.Helper()
		r, err := (&Audit{Cluster: c, Timeline: testTimeline, Acks: acks}).Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}

	one := replicate(log)
	one.copies["b"][100_000] ^= 1
	if r := audit(one); r.Identical || r.Replicas[1].Different != 1 || len(r.Replicas[1].Examples) != 1 {
		t.Errorf("one flipped bit on one replica: %+v", r)
	}

	all := replicate(log)
	for _, c := range all.copies {
		c[100_000] ^= 1
	}
	if r := audit(all); r.Missing != 1 || !errors.Is(r.Err(), ErrMissing) || !r.Identical {
		t.Errorf("one flipped bit on all: %+v", r)
	}

	// Swapped payloads of one run have the right checksums nowhere but in each other's place.
	swapped := replicate(log)
	for _, c := range swapped.copies {
		x, y := c[:3000], c[3000:6000]
		for i := range x {
			x[i], y[i] = y[i], x[i]
		}
	}
	if r := audit(swapped); r.Missing != 2 {
		t.Errorf("swapped appends: %+v", r)
	}

	short, last := replicate(log), acks.List[len(acks.List)-1].End
	for addr, c := range short.copies {
		short.copies[addr] = c[:last-log.first-4000]
	}
	if r := audit(short); r.Missing != 2 || r.Replicas[0].Behind != 2 {
		t.Errorf("a lost tail: %+v", r)
	}

	behind := replicate(log)
	behind.copies["c"] = behind.copies["c"][:9000]
	if r := audit(behind); r.Missing != 0 || r.Identical || r.Replicas[2].Present != 3 {
		t.Errorf("one replica behind: %+v", r)
	}
}

func TestAuditNeedsAQuorum(t *testing.T) {
	log, acks := loaded(t)
	c := replicate(log)
	c.away["a"] = true
	r, err := (&Audit{Cluster: c, Timeline: testTimeline, Acks: acks}).Run(t.Context())
	if err != nil || r.Missing != 0 || r.Identical || r.Replicas[0].Read {
		t.Errorf("one away: %v, %+v", err, r)
	}
	c.away["b"] = true
	if _, err := (&Audit{Cluster: c, Timeline: testTimeline, Acks: acks}).Run(t.Context()); !errors.Is(err, admin.ErrNoQuorum) {
		t.Errorf("two away: %v", err)
	}
}
