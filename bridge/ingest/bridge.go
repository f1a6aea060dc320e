package ingest

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/seed7f3f3bb8/holdfast/bridge/pgclient"
	"github.com/seed7f3f3bb8/holdfast/bridge/pgwal"
)

// Bridge follows one PostgreSQL and writes one log. Make it with New, call Run
// once; Status may be called at any time.
type Bridge struct {
	config Config
	log    *zap.Logger
	observ Observer
	status statusBoard
}

// New makes a bridge. Nothing happens before Run.
func New(c Config) *Bridge {
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	if c.Observer == nil {
		c.Observer = noObserver{}
	}
	if c.Postgres.ApplicationName == "" {
		c.Postgres.ApplicationName = DefaultName
	}
	if c.Slot == "" {
		c.Slot = DefaultSlot
	}
	return &Bridge{config: c, log: c.Logger, observ: c.Observer}
}

// Run attaches and streams until ctx ends (then it returns nil) or going on
// would be wrong: a *FencedError, a final *pgwal.RefusedError, or, before the
// first attachment, a *pgclient.Problem that someone must solve.
func (b *Bridge) Run(ctx context.Context) error {
	stop := b.watchProtection()
	defer stop()
	backoff := backoffMin
	for {
		before := time.Now()
		err := b.session(ctx)
		if ctx.Err() != nil {
			return nil
		}
		b.status.detached(err)
		var fenced *FencedError
		if errors.As(err, &fenced) {
			b.log.Error("fenced: the connection to PostgreSQL is closed, nothing is acknowledged any more",
				zap.Uint64("winning_term", uint64(fenced.Term)))
			if b.config.OnFenced != nil {
				b.config.OnFenced(ctx)
			}
			return err
		}
		if b.final(err) {
			return err
		}
		reason := reasonOf(err)
		b.observ.Reconnected(reason)
		if time.Since(before) > 10*backoffMax {
			backoff = backoffMin
		}
		wait := backoff
		if needsPerson(err) {
			wait = backoffProblem
		}
		b.log.Warn("not attached to PostgreSQL; trying again", zap.String("reason", reason), zap.Error(err), zap.Duration("in", wait))
		backoff = min(2*backoff, backoffMax)
		select {
		case <-time.After(wait/2 + rand.N(wait/2+1)):
		case <-ctx.Done():
			return nil
		}
	}
}

// final reports whether going on by itself would be wrong or useless.
func (b *Bridge) final(err error) bool {
	var refused *pgwal.RefusedError
	if errors.As(err, &refused) {
		return refused.Final
	}
	var log *LogError
	if errors.As(err, &log) || pgclient.KindOf(err) == pgclient.WALRemoved {
		return true
	}
	// A fault of the configuration is told at once when the bridge is started;
	// later it may be a change in progress, and a bridge that left would have to be started by hand.
	return needsPerson(err) && !b.status.everAttached()
}

func needsPerson(err error) bool {
	var p *pgclient.Problem
	return errors.As(err, &p) && p.Final
}

// reasonOf is a metric's label for the end of a session.
func reasonOf(err error) string {
	var refused *pgwal.RefusedError
	var fenced *FencedError
	switch {
	case errors.As(err, &refused):
		return "refused"
	case errors.As(err, &fenced):
		return "fenced"
	case errors.Is(err, errWriter):
		return "quorum"
	}
	return string(pgclient.KindOf(err))
}
