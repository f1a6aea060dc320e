package proposer_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/seed7f3f3bb8/holdfast/acceptor"
	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/metrics"
	"github.com/seed7f3f3bb8/holdfast/proposer"
	"github.com/seed7f3f3bb8/holdfast/proto"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// realNode is an acceptor as it runs in production, on a file system and TCP.
type realNode struct {
	tb     testing.TB
	id     wal.NodeID
	dir    string
	addr   string
	node   *acceptor.Node
	served chan error
}

func (n *realNode) start() {
	n.tb.Helper()
	m, err := metrics.NewAcceptor(prometheus.NewRegistry(), acceptor.Reasons())
	if err != nil {
		n.tb.Fatal(err)
	}
	if n.node, err = acceptor.New(acceptor.Config{NodeID: n.id, DataDir: n.dir, Metrics: m, SpareSegments: -1}); err != nil {
		n.tb.Fatal(err)
	}
	l, err := net.Listen("tcp", n.addr)
	if err != nil {
		n.tb.Fatal(err)
	}
	n.addr = l.Addr().String()
	n.served = make(chan error, 1)
	node := n.node
	go func() { n.served <- node.Serve(l) }()
}

func (n *realNode) stop() {
	if n.node == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := n.node.Shutdown(ctx); err != nil {
		n.tb.Error(err)
	}
	if err := <-n.served; err != nil {
		n.tb.Error(err)
	}
	n.node = nil
}

// realCluster is three of them with a timeline.
type realCluster struct {
	nodes []*realNode
	admin *admin.Client
	proposer.Config
}

func newRealCluster(tb testing.TB) *realCluster {
	tb.Helper()
	dir := tb.TempDir()
	c := &realCluster{Config: proposer.Config{Timeline: wal.TimelineID{Tenant: "test", Timeline: "real"}}}
	for i := range 3 {
		n := &realNode{tb: tb, id: wal.NodeID(i + 1), dir: filepath.Join(dir, strconv.Itoa(i+1)), addr: "127.0.0.1:0"}
		n.start()
		tb.Cleanup(n.stop)
		c.nodes = append(c.nodes, n)
		c.Acceptors = append(c.Acceptors, n.addr)
	}
	var err error
	if c.admin, err = admin.Dial(c.Acceptors); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { c.admin.Close() })
	if _, _, err := c.admin.Create(patient(tb), admin.Creation{Timeline: c.Timeline, First: fakeFirst}); err != nil {
		tb.Fatal(err)
	}
	return c
}

// own reads a node's own committed bytes.
func (c *realCluster) own(tb testing.TB, n *realNode, end wal.LSN) []byte {
	tb.Helper()
	var got []byte
	_, err := c.admin.Read(patient(tb), n.addr, admin.ReadOptions{Timeline: c.Timeline, Begin: fakeFirst, End: end}, func(chunk wal.Chunk) error {
		got = append(got, chunk.Data...)
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return got
}

func TestRealAcceptors(t *testing.T) {
	c := newRealCluster(t)
	m, err := metrics.NewProposer(prometheus.NewRegistry(), reasons())
	if err != nil {
		t.Fatal(err)
	}
	c.Metrics, c.WindowBytes = m, 1<<20
	p := open(t, c.Config)
	var mu sync.Mutex
	placed := map[wal.LSN][]byte{}
	load := func(appends int) {
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				for j := range appends {
					data := written(1+(i*131+j*977)%20_000, uint64(i*appends+j))
					begin, end, err := p.Append(context.Background(), data)
					if err == nil {
						err = p.Wait(context.Background(), end)
					}
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					placed[begin] = data
					mu.Unlock()
				}
			})
		}
		wg.Wait()
	}
	load(20)
	for _, n := range c.nodes { // each in turn is away for more than the window holds
		n.stop()
		load(20)
		n.start()
		eventually(t, "it has caught up", func() bool { return p.Peers()[n.id-1].Flush == p.Tail() })
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	want := c.own(t, c.nodes[0], p.Tail())
	if wal.LSN(len(want)) != p.Tail()-fakeFirst {
		t.Fatalf("%d bytes are committed on the first, expected %d", len(want), p.Tail()-fakeFirst)
	}
	for begin, data := range placed {
		if !bytes.Equal(want[begin-fakeFirst:][:len(data)], data) {
			t.Fatalf("the %d bytes at %v are not what was appended", len(data), begin)
		}
	}
	for _, n := range c.nodes[1:] {
		if !bytes.Equal(c.own(t, n, p.Tail()), want) {
			t.Errorf("node %d holds other bytes than the first", n.id)
		}
	}
	r, err := proposer.NewReader(patient(t), proposer.ReaderConfig{Acceptors: c.Acceptors, Timeline: c.Timeline, Begin: fakeFirst})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got := readN(t, r, everything); !bytes.Equal(got, want) {
		t.Errorf("the reader brings %d bytes, expected %d", len(got), len(want))
	}
}

func TestRealTakeOver(t *testing.T) {
	c := newRealCluster(t)
	first := open(t, c.Config)
	commit(t, first, written(100_000, 1))
	second := open(t, c.Config)
	commit(t, second, written(100_000, 2))
	select {
	case <-first.Done():
	case <-time.After(patience):
		t.Fatal("the first goes on")
	}
	var fenced *proposer.FencedError
	if !errors.As(first.Err(), &fenced) || fenced.Term != second.Status().Term {
		t.Errorf("the first stopped with %v", first.Err())
	}
	if second.Tail() != fakeFirst+200_000 {
		t.Errorf("the log ends at %v", second.Tail())
	}
}

func TestRealDeletionStopsTheProposer(t *testing.T) {
	c := newRealCluster(t)
	p := open(t, c.Config)
	commit(t, p, []byte("x"))
	if err := c.admin.Delete(patient(t), c.Timeline); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Done():
	case <-time.After(patience):
		t.Fatal("the proposer of a deleted timeline goes on")
	}
	var refused *proposer.RefusedError
	if !errors.As(p.Err(), &refused) {
		t.Errorf("it stopped with %v", p.Err())
	}
	if _, err := proposer.Open(patient(t), c.Config); !errors.Is(err, proposer.ErrNotFound) {
		t.Errorf("Open: %v", err)
	}
}

func TestManyProposersShareConnections(t *testing.T) {
	c := newRealCluster(t)
	shared := proposer.NewConnections()
	defer shared.Close()
	var wg sync.WaitGroup
	for i := range 20 {
		id := wal.TimelineID{Tenant: "many", Timeline: strconv.Itoa(i)}
		wg.Go(func() {
			if _, _, err := c.admin.Create(patient(t), admin.Creation{Timeline: id, First: fakeFirst}); err != nil {
				t.Error(err)
				return
			}
			p, err := proposer.Open(patient(t), proposer.Config{Acceptors: c.Acceptors, Timeline: id, Connections: shared})
			if err != nil {
				t.Error(err)
				return
			}
			defer p.Close()
			_, end, err := p.Append(patient(t), []byte(id.String()))
			if err == nil {
				err = p.Wait(patient(t), end)
			}
			if err != nil {
				t.Error(err)
			}
			r, err := proposer.NewReader(patient(t), proposer.ReaderConfig{Acceptors: c.Acceptors, Timeline: id, Connections: shared, Begin: fakeFirst, End: end})
			if err != nil {
				t.Error(err)
				return
			}
			defer r.Close()
			if chunk, err := r.Next(patient(t)); err != nil || string(chunk.Data) != id.String() {
				t.Errorf("%v: read %q, %v", id, chunk.Data, err)
			}
		})
	}
	wg.Wait()
	shared.Close()
	if _, err := proposer.Open(patient(t), proposer.Config{Acceptors: c.Acceptors, Timeline: c.Timeline, Connections: shared, DialOptions: proto.DialOptions()}); err == nil {
		t.Error("dial options for shared connections were accepted")
	}
}

func reasons() []string {
	var out []string
	for _, r := range proto.Reasons() {
		out = append(out, string(r))
	}
	return out
}

// BenchmarkReal is the whole way, disks included: three acceptors in this process.
func BenchmarkReal(b *testing.B) {
	for _, size := range []int{128, 8 << 10, 64 << 10} {
		for _, inFlight := range []int{1, 64, 256} {
			b.Run(strconv.Itoa(size)+"B/"+strconv.Itoa(inFlight), func(b *testing.B) {
				p := open(b, newRealCluster(b).Config)
				data := written(size, 1)
				b.SetBytes(int64(size))
				b.ReportAllocs()
				b.ResetTimer()
				appendWait(b, p, data, inFlight, b.N)
			})
		}
	}
}
