package nemesis

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/proposer"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"github.com/seed7f3f3bb8/holdfast/workload"
)

// deck deals faults: each kind once, in a new order each time.
type deck struct {
	w     *world
	kinds []fault
	cards []fault
}

// next deals the next fault that may happen now.
func (d *deck) next(ruined bool) *fault {
	for range 2 {
		for i, f := range d.cards {
			if f.ruins && ruined {
				continue
			}
			d.cards = append(d.cards[:i:i], d.cards[i+1:]...)
			return &f
		}
		d.cards = append(d.cards, d.kinds...)
		d.w.rng.Shuffle(len(d.cards), func(i, j int) { d.cards[i], d.cards[j] = d.cards[j], d.cards[i] })
	}
	return nil
}

// playRound is one timeline's life: faults, healing, judgement.
func (w *world) playRound(ctx context.Context, d *deck, r *Report, until time.Time) error {
	w.timeline = wal.TimelineID{Tenant: "nemesis", Timeline: fmt.Sprintf("round-%d", w.round)}
	w.histories = nil
	for _, m := range w.machines {
		m.damaged = false
	}
	if !eventually(ctx, progressWait, func() bool {
		soon, cancel := context.WithTimeout(ctx, questionWait)
		defer cancel()
		id, _, err := w.admin.Create(soon, admin.Creation{Timeline: w.timeline, First: firstLSN})
		if err != nil {
			w.o.Log("create: " + err.Error())
		}
		w.creation = id
		return err == nil
	}) {
		return errors.New("the timeline cannot be created")
	}
	if _, err := w.startClient(proposerA); err != nil {
		return err
	}
	if err := w.progress(ctx); err != nil {
		return err
	}
	err := w.suffer(ctx, d, r, minTime(until, time.Now().Add(roundTime)))
	if err == nil {
		err = w.judgeRound(ctx, r)
	}
	if err != nil {
		return err
	}
	return w.cleanUp(ctx)
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// suffer deals one fault after the other. After each the log must go on.
func (w *world) suffer(ctx context.Context, d *deck, r *Report, until time.Time) error {
	ruined := false
	for time.Now().Before(until) && ctx.Err() == nil {
		f := d.next(ruined)
		if f == nil {
			return nil
		}
		ruined = ruined || f.ruins
		before, _ := w.high(ctx)
		start := time.Now()
		if err := errors.Join(f.do(ctx, w), w.broken); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		healed := time.Now()
		if f.elects && !eventually(ctx, progressWait, func() bool { term, _ := w.high(ctx); return term > before }) {
			return fmt.Errorf("after %s: nobody was elected within %v", f.name, progressWait)
		}
		if err := w.progress(ctx); err != nil {
			return fmt.Errorf("after %s: %w", f.name, err)
		}
		after, commit := w.high(ctx)
		s := r.Faults[f.name]
		if s == nil {
			s = &Suffered{}
			r.Faults[f.name] = s
		}
		s.Times++
		s.Elections += int(after - before)
		w.o.Log(fmt.Sprintf("%s: %v, then new commits after %v; term %d, commit %v", f.name, healed.Sub(start).Round(time.Millisecond), time.Since(healed).Round(time.Millisecond), after, commit))
		for _, m := range w.machines {
			if !m.node.Running() && !m.down {
				return fmt.Errorf("%s: node %d ended by itself", f.name, m.at)
			}
		}
	}
	return ctx.Err()
}

// settleWait bounds how long replicas may take to become the same.
const settleWait = 30 * time.Second

// judgeRound heals nothing more, for nothing is broken any more: it waits until
// the replicas that were left alone are the same and looks at all the evidence.
func (w *world) judgeRound(ctx context.Context, r *Report) error {
	w.leaveAll()
	if err := w.settle(ctx); err != nil {
		return err
	}
	all, err := readHistories(w.histories)
	if err != nil {
		return err
	}
	acks, err := acksOf(w.timeline, all)
	if err != nil {
		return err
	}
	auditCtx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	result, err := (&workload.Audit{Cluster: w.admin, Timeline: w.timeline, Acks: acks, AnswerWait: 10 * time.Second}).Run(auditCtx)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	if err := result.Err(); err != nil {
		return fmt.Errorf("audit: %w: %+v", err, result.Replicas)
	}
	sum := ""
	for i, x := range result.Replicas {
		if w.machines[i].damaged {
			w.o.Log(fmt.Sprintf("node %d, whose copy was damaged: %s, %d present, %d behind, %s", i+1, x.Health, x.Present, x.Behind, x.Error))
			if x.Health == wal.Healthy.String() && x.Different > 0 {
				return fmt.Errorf("audit: the copy of node %d was damaged, it says that all is well, and it is not: %+v", i+1, x)
			}
			continue
		}
		if !x.Read || x.Different > 0 || x.Behind > 0 || sum != "" && x.SHA256 != sum {
			return fmt.Errorf("audit: node %d was left alone and is not like the others: %+v", i+1, result.Replicas)
		}
		sum = x.SHA256
	}
	log, err := finalLog(auditCtx, w.admin, w.timeline)
	if err != nil {
		return fmt.Errorf("the log: %w", err)
	}
	v, err := judgeHistories(all, log)
	r.Acked += v.acked
	r.Unknown += v.unknown
	r.Absent += v.absent
	r.Wins += v.wins
	r.Reads += v.reads
	w.o.Log(fmt.Sprintf("round %d: %d acknowledged, %d of unknown outcome are there and %d are not, %d elections, %d reads; log of %d bytes", w.round, v.acked, v.unknown, v.absent, v.wins, v.reads, len(log)))
	return err
}

// settle has a last proposer bring every acceptor that was left alone to the log's end.
func (w *world) settle(ctx context.Context) error {
	soon, cancel := context.WithTimeout(ctx, settleWait)
	defer cancel()
	p, err := proposer.Open(soon, proposer.Config{Acceptors: w.outer(), Timeline: w.timeline})
	if err != nil {
		return fmt.Errorf("no proposer can go on with what is there: %w", err)
	}
	defer p.Close()
	tail := p.Tail()
	if err := p.Wait(soon, tail); err != nil {
		return fmt.Errorf("the log's end is not committed: %w", err)
	}
	why := ""
	if !eventually(soon, settleWait, func() bool {
		why = ""
		for i, a := range w.look(ctx) {
			if w.machines[i].damaged {
				continue
			}
			if a.Err != nil {
				why += fmt.Sprintf("node %d: %v; ", i+1, a.Err)
			} else if a.Value.Flush != tail || a.Value.Commit != tail || a.Value.Health != wal.Healthy {
				why += fmt.Sprintf("node %d: %v, flush %v, commit %v; ", i+1, a.Value.Health, a.Value.Flush, a.Value.Commit)
			}
		}
		return why == ""
	}) {
		return fmt.Errorf("acceptors that were left alone do not reach the log's end %v within %v: %s", tail, settleWait, why)
	}
	return nil
}

// cleanUp removes the round's timeline. What a damaged disk holds is taken away whole.
func (w *world) cleanUp(ctx context.Context) error {
	for _, m := range w.machines {
		if m.damaged {
			if err := wipe(ctx, w, m); err != nil {
				return err
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := w.admin.Delete(ctx, w.timeline); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	for _, m := range w.machines {
		if left, _ := filepath.Glob(filepath.Join(m.data, w.timeline.Tenant, w.timeline.Timeline)); len(left) > 0 {
			return fmt.Errorf("node %d still has the deleted timeline", m.at)
		}
	}
	return nil
}
