package system

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed7f3f3bb8/holdfast/bridge/pgcluster"
)

func (w *world) pgbenchInit() {
	w.Helper()
	_, err := w.in.Run(w.ctx, "pgbench", "-i", "-q", "-s", "1", w.primary.DSN())
	w.check(err)
}

// bench runs pgbench -N, and starts it again whenever it has lost its connections.
type bench struct {
	w    *world
	stop context.CancelFunc
	done sync.WaitGroup
	runs int // read after done
}

func (w *world) pgbench(clients int) *bench {
	ctx, stop := context.WithCancel(w.ctx)
	b := &bench{w: w, stop: stop}
	b.done.Go(func() {
		for ctx.Err() == nil {
			if _, err := w.in.Run(ctx, "pgbench", "-N", "-n", "-c", strconv.Itoa(clients), "-T", "3600", w.primary.DSN("connect_timeout=2")); err != nil {
				b.runs++
			}
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	w.Cleanup(b.end)
	return b
}

func (b *bench) end() {
	b.stop()
	b.done.Wait()
}

// audit checks what pgbench keeps in step: in each transaction the same change
// goes to an account and to the history, so a transaction that was recovered in
// part shows.
func (b *bench) audit(c *pgcluster.Cluster) {
	b.w.Helper()
	n := b.w.sql(c, "SELECT count(*) FROM pgbench_history")
	odd := b.w.sql(c, `SELECT count(*) FROM (SELECT aid, sum(delta) AS d FROM pgbench_history GROUP BY aid) h
		FULL JOIN (SELECT aid, abalance FROM pgbench_accounts WHERE abalance <> 0) a USING (aid) WHERE coalesce(d, 0) <> coalesce(abalance, 0)`)
	b.w.Logf("pgbench: %s transactions in %d runs, %s accounts out of step", strings.TrimSpace(n), b.runs, odd)
	if odd != "0" || n == "0" {
		b.w.Errorf("%s of pgbench's accounts do not have what its %s transactions gave them", odd, n)
	}
}
