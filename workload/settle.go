package workload

import (
	"context"
	"time"

	"github.com/seed7f3f3bb8/holdfast/proposer"
)

// settlePoll is how often Settle looks.
const settlePoll = 20 * time.Millisecond

// Lag is what the member that is furthest behind lacks, in bytes; one that does
// not store the present term's log lacks all of it.
func Lag(s proposer.Status) (most uint64) {
	for _, m := range s.Members {
		if !m.Adopted {
			return max(most, uint64(s.Tail))
		}
		most = max(most, m.LagBytes)
	}
	return most
}

// Settle waits until every member has made everything durable, or ctx ends, or
// the proposer stops.
func Settle(ctx context.Context, p *proposer.Proposer) error {
	return settle(ctx, p, func(proposer.MemberStatus) bool { return true })
}

// SettleConnected is Settle for the members that are connected and take part: one
// that is away is not waited for.
func SettleConnected(ctx context.Context, p *proposer.Proposer) error {
	return settle(ctx, p, func(m proposer.MemberStatus) bool { return m.Connected && m.Err == nil })
}

func settle(ctx context.Context, p *proposer.Proposer, awaited func(proposer.MemberStatus) bool) error {
	poll := time.NewTicker(settlePoll)
	defer poll.Stop()
	for {
		s := p.Status()
		settled := true
		for _, m := range s.Members {
			settled = settled && (!awaited(m) || m.Adopted && m.Flush >= s.Tail)
		}
		switch {
		case s.Err != nil:
			return s.Err
		case settled:
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-poll.C:
		}
	}
}
