package check

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/proposer"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

func checksum(b []byte) uint32 { return wal.Checksum(b) }

// Bounds of a node with a thousand timelines. They are wide: what they catch is
// growth with the number of timelines that nobody intended.
const (
	manyTimelines   = 1000
	manyRSSMiB      = 512
	manyDescriptors = 1200
)

// TestThousandTimelines: many logs in one process, all there after a kill, and
// what they cost has a bound.
func TestThousandTimelines(t *testing.T) {
	n := manyTimelines
	f, c := start(t)
	ids := make([]wal.TimelineID, n)
	for i := range ids {
		ids[i] = wal.TimelineID{Tenant: "tenant-" + strconv.Itoa(i%10), Timeline: "log-" + strconv.Itoa(i)}
	}
	began := time.Now()
	each(t, ids, func(ctx context.Context, id wal.TimelineID) error {
		if _, _, err := c.Create(ctx, admin.Creation{Timeline: id}); err != nil {
			return err
		}
		p, err := proposer.Open(ctx, proposer.Config{Acceptors: f.Addresses(), Timeline: id})
		if err != nil {
			return err
		}
		_, end, err := p.Append(ctx, []byte(id.String()))
		if err == nil {
			err = p.Wait(ctx, end)
		}
		if closeErr := p.Close(); err == nil {
			err = closeErr
		}
		return err
	})
	t.Logf("%d timelines created and appended to in %v", n, time.Since(began).Round(time.Millisecond))
	for _, node := range f.Nodes {
		costs(t, "in use", node.PID())
	}

	f.Kill()
	began = time.Now()
	for _, node := range f.Nodes {
		if err := node.Launch(); err != nil {
			t.Fatal(err)
		}
	}
	for _, node := range f.Nodes {
		if err := node.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("three nodes ready %v after kill -9", time.Since(began).Round(time.Millisecond))
	for _, node := range f.Nodes {
		costs(t, "restarted", node.PID())
	}
	for _, a := range c.List(t.Context(), "") {
		if a.Err != nil || len(a.Value) != n {
			t.Errorf("%s lists %d timelines, %v", a.Addr, len(a.Value), a.Err)
		}
	}
	each(t, ids, func(ctx context.Context, id wal.TimelineID) error {
		best, err := admin.Best(c.Timelines(ctx, id))
		if err != nil {
			return err
		}
		var got []byte
		_, err = c.Read(ctx, best.Addr, admin.ReadOptions{
			Timeline: id, Creation: best.Value.Creation, End: wal.LSN(len(id.String())), PinnedTerm: best.Value.History.LastTerm(),
		}, func(x wal.Chunk) error {
			got = append(got, x.Data...)
			return nil
		})
		if err == nil && !bytes.Equal(got, []byte(id.String())) {
			err = fmt.Errorf("read back %q", got)
		}
		return err
	})
	for _, node := range f.Nodes {
		costs(t, "read back", node.PID())
	}
}

// each works on all ids, a few at a time.
func each(t *testing.T, ids []wal.TimelineID, work func(context.Context, wal.TimelineID) error) {
	t.Helper()
	queue := make(chan wal.TimelineID)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for id := range queue {
				ctx, cancel := context.WithTimeout(t.Context(), testWait)
				if err := work(ctx, id); err != nil {
					t.Errorf("%v: %v", id, err)
				}
				cancel()
			}
		})
	}
	for _, id := range ids {
		if t.Failed() {
			break
		}
		queue <- id
	}
	close(queue)
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// costs reports a process's memory and descriptors and fails beyond the bounds.
func costs(t *testing.T, when string, pid int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	rss := 0
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmRSS:" {
			rss, _ = strconv.Atoi(f[1])
		}
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("pid %d %s: %d MiB, %d descriptors", pid, when, rss>>10, len(open))
	if rss>>10 > manyRSSMiB || len(open) > manyDescriptors {
		t.Errorf("more than %d MiB or %d descriptors", manyRSSMiB, manyDescriptors)
	}
}
