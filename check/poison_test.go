package check

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed7f3f3bb8/holdfast/acceptor"
	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/metrics"
	"github.com/seed7f3f3bb8/holdfast/proposer"
	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// inner is an acceptor in this process, on a disk that can be made to fail.
type inner struct {
	addr string
	disk *vfs.Fault
	web  http.Handler
}

func startInner(t *testing.T, id wal.NodeID) inner {
	t.Helper()
	registry := prometheus.NewRegistry()
	m, err := metrics.NewAcceptor(registry, acceptor.Reasons())
	if err != nil {
		t.Fatal(err)
	}
	x := inner{disk: vfs.NewFault(vfs.NewMem())}
	node, err := acceptor.New(acceptor.Config{NodeID: id, DataDir: "data", FS: x.disk, Metrics: m, SpareSegments: -1})
	if err != nil {
		t.Fatal(err)
	}
	if err := metrics.NewAcceptorState(registry, node.State); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- node.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := node.Shutdown(ctx); err != nil {
			t.Errorf("node %d: %v", id, err)
		}
		<-served
	})
	x.addr = l.Addr().String()
	x.web = metrics.Handler(metrics.HandlerOptions{Gatherer: registry, Ready: node.NotReady})
	return x
}

// get asks the acceptor's HTTP side.
func (x *inner) get(path string) (code int, body string) {
	w := httptest.NewRecorder()
	x.web.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

// TestPoisonEndToEnd: the disk of one of three fails a sync, and goes on failing. Its copy refuses and
// says so wherever one may look, the other two carry on, and when the disk works again the copy
// is opened again, proved and filled by itself. Everything acknowledged is on it.
func TestPoisonEndToEnd(t *testing.T) {
	var nodes []inner
	var addrs []string
	for id := range wal.NodeID(3) {
		nodes = append(nodes, startInner(t, id+1))
		addrs = append(addrs, nodes[id].addr)
	}
	c, err := admin.Dial(addrs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	create(t, c, 0)
	p, err := proposer.Open(t.Context(), proposer.Config{Acceptors: addrs, Timeline: timeline})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	var want []byte
	write := func(n int) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), testWait)
		defer cancel()
		for range n {
			data := bytes.Repeat([]byte{byte(len(want) >> 12)}, 5000)
			_, end, err := p.Append(ctx, data)
			if err == nil {
				err = p.Wait(ctx, end)
			}
			if err != nil {
				t.Fatalf("the quorum does not carry on: %v", err)
			}
			want = append(want, data...)
		}
	}
	write(20)
	settle(t, p)
	bad := &nodes[1]
	if code, _ := bad.get("/readyz"); code != http.StatusOK {
		t.Fatalf("not ready before anything happened: %d", code)
	}

	failing := bad.disk.Inject(vfs.Rule{Ops: vfs.OpDatasync, Effect: vfs.LoseSync{}})
	write(1)
	failed := time.Now()
	eventually(t, "the status says so", func() bool { s := copyOf(t, c, 1); return s != nil && s.Health == wal.Poisoned })
	t.Logf("shown after %v", time.Since(failed))
	if s := copyOf(t, c, 1); s.HealthReason == "" || s.Flush > wal.LSN(len(want)) {
		t.Errorf("status %+v", s)
	}
	if code, body := bad.get("/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "the disk has failed") {
		t.Errorf("/readyz: %d %s", code, body)
	}
	if _, body := bad.get("/metrics"); !strings.Contains(body, `holdfast_timelines{health="poisoned"} 1`) || !strings.Contains(body, `holdfast_disk_errors_total{op="sync"} 1`) {
		t.Error("the metrics do not say so")
	}
	write(30)
	// It tries to come back, and a disk that still fails keeps it out.
	eventually(t, "an attempt on a broken disk", func() bool {
		_, body := bad.get("/metrics")
		return !strings.Contains(body, `holdfast_disk_errors_total{op="open"} 0`)
	})
	if s := copyOf(t, c, 1); s.Health != wal.Poisoned {
		t.Fatalf("back on a broken disk: %+v", s)
	}

	failing.Remove()
	write(10)
	eventually(t, "it comes back by itself", func() bool {
		s := copyOf(t, c, 1)
		return s != nil && s.Health == wal.Healthy && s.Flush == wal.LSN(len(want))
	})
	settle(t, p)
	if code, body := bad.get("/readyz"); code != http.StatusOK {
		t.Errorf("/readyz: %d %s", code, body)
	}
	var got []byte
	s := copyOf(t, c, 1)
	_, err = c.Read(t.Context(), bad.addr, admin.ReadOptions{Timeline: timeline, Creation: s.Creation, PinnedTerm: s.LastLogTerm}, func(c wal.Chunk) error {
		got = append(got, c.Data...)
		return nil
	})
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d of %d acknowledged bytes are on it, %v", len(got), len(want), err)
	}
}
