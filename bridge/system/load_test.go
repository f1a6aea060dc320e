package system

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed7f3f3bb8/holdfast/bridge/pgcluster"
)

// load inserts numbered rows from several clients, which connect again after
// every fault, and remembers what was acknowledged.
type load struct {
	w     *world
	stop  context.CancelFunc
	done  sync.WaitGroup
	next  atomic.Int64
	mu    sync.Mutex
	acked map[int64]bool
}

const loadTable = "CREATE TABLE acked(id bigint PRIMARY KEY, pad text)"

func (w *world) load(c *pgcluster.Cluster, clients int) *load {
	ctx, stop := context.WithCancel(w.ctx)
	l := &load{w: w, stop: stop, acked: map[int64]bool{}}
	for range clients {
		l.done.Go(func() {
			for ctx.Err() == nil {
				l.client(ctx, c)
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	w.Cleanup(func() { stop(); l.done.Wait() })
	return l
}

func (l *load) client(ctx context.Context, c *pgcluster.Cluster) {
	conn, err := pgconn.Connect(ctx, c.DSN("connect_timeout=2"))
	if err != nil {
		return
	}
	defer func() {
		soon, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		conn.Close(soon)
	}()
	for ctx.Err() == nil {
		id := l.next.Add(1)
		_, err := conn.Exec(ctx, fmt.Sprintf("INSERT INTO acked VALUES (%d, repeat('x', %d))", id, 50+id%300*(id%17))).ReadAll()
		if err != nil {
			return
		}
		l.mu.Lock()
		l.acked[id] = true
		l.mu.Unlock()
	}
}

func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

// more waits until n further rows are acknowledged.
func (l *load) more(n int) {
	l.w.Helper()
	want := l.count() + n
	l.w.until(fmt.Sprintf("acknowledgement of %d more rows", n), func() bool { return l.count() >= want })
}

func (l *load) end() {
	l.stop()
	l.done.Wait()
}

// audit compares what was acknowledged with what c has.
func (l *load) audit(c *pgcluster.Cluster) {
	l.w.Helper()
	rows, err := c.Query(l.w.ctx, "SELECT id FROM acked")
	l.w.check(err)
	have := map[string]bool{}
	for _, r := range rows {
		have[r[0]] = true
	}
	missing := 0
	for id := range l.acked {
		if !have[fmt.Sprint(id)] {
			missing++
		}
	}
	l.w.Logf("acknowledged %d, recovered %d, missing %d", len(l.acked), len(have), missing)
	if missing > 0 || len(l.acked) == 0 {
		l.w.Fatalf("%d of %d acknowledged rows are missing", missing, len(l.acked))
	}
}
