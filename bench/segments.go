package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed7f3f3bb8/holdfast/acceptor"
	"github.com/seed7f3f3bb8/holdfast/proposer"
	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// segmentsMain asks whether an append notices that a segment ends: acks of those
// that began about when an acceptor began a segment, against all others.
func segmentsMain(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("segments", flag.ExitOnError)
	size := fs.Int("P", 8192, "payload")
	clients := fs.Int("C", 16, "appends in flight")
	segment := fs.Int64("segment", 4, "MiB of a segment")
	measure := fs.Duration("T", 8*time.Second, "measured time")
	parent := fs.String("dir", "", "where data goes")
	_ = fs.Parse(args)
	return inScratch(*parent, func(dir string) error {
		c, err := startCluster(dir, func(a *acceptor.Config) {
			a.SegmentBytes, a.SpareSegments, a.RetainBytes = *segment<<20, -1, 64<<20
		})
		if err != nil {
			return err
		}
		var s switches
		for _, m := range c.members {
			last := ""
			m.disk.Observe(func(op vfs.Op, name string) {
				if op == vfs.OpWritevAt && name != last {
					last = name
					s.add(time.Now())
				}
			})
		}
		p, err := c.open(ctx, wal.TimelineID{Tenant: "bench", Timeline: "segments"}, proposer.Config{})
		if err != nil {
			return errors.Join(err, c.stop())
		}
		acks := drive(ctx, p, *size, *clients, *measure)
		err = errors.Join(p.Close(), c.stop())
		s.report(acks)
		return err
	})
}

// ack is one append: when it began and when it was acknowledged.
type ack struct{ began, ended time.Time }

func drive(ctx context.Context, p *proposer.Proposer, size, clients int, d time.Duration) []ack {
	end := time.Now().Add(d)
	all := make([][]ack, clients)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			data := make([]byte, size)
			for {
				a := ack{began: time.Now()}
				if a.began.After(end) {
					return
				}
				_, lsn, err := p.Append(ctx, data)
				if err != nil || p.Wait(ctx, lsn) != nil {
					return
				}
				a.ended = time.Now()
				all[i] = append(all[i], a)
			}
		})
	}
	wg.Wait()
	return slices.Concat(all...)
}

// switches are the moments at which an acceptor wrote to a new segment.
type switches struct {
	mu sync.Mutex
	at []time.Time
}

func (s *switches) add(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = append(s.at, t)
}

const switchNear = 5 * time.Millisecond

func (s *switches) report(acks []ack) {
	slices.SortFunc(s.at, time.Time.Compare)
	var during, other []time.Duration
	for _, a := range acks {
		// By when it began, not by what it met: a slow append meets more.
		i, _ := slices.BinarySearchFunc(s.at, a.began.Add(-switchNear), time.Time.Compare)
		if i < len(s.at) && s.at[i].Before(a.began.Add(switchNear)) {
			during = append(during, a.ended.Sub(a.began))
		} else {
			other = append(other, a.ended.Sub(a.began))
		}
	}
	fmt.Printf("%d segments begun by three acceptors\n", len(s.at))
	fmt.Println("| appends | number | p50 ms | p99 ms | max ms |\n|---|--:|--:|--:|--:|")
	for _, x := range []struct {
		name string
		of   []time.Duration
	}{{"begun within 5 ms of that", during}, {"all others", other}} {
		slices.Sort(x.of)
		at := func(q float64) float64 {
			if len(x.of) == 0 {
				return 0
			}
			return float64(x.of[min(len(x.of)-1, int(q*float64(len(x.of))))]) / 1e6
		}
		fmt.Printf("| %s | %d | %.2f | %.2f | %.2f |\n", x.name, len(x.of), at(.5), at(.99), at(1))
	}
}
