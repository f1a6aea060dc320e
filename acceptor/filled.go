package acceptor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/proto"
	"github.com/seed7f3f3bb8/holdfast/storage"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"go.uber.org/zap"
)

// A filled copy is what a node keeps of a timeline whose copy it has lost: the
// committed bytes, fetched from peers, for reading. It lies in a directory of
// another name, T.filled, with a dot in it as no timeline's has. What votes and
// appends is opened under the name T and under no other; so the mark that
// keeps the copy from voting and the bytes are one thing, made by one rename,
// and no crash, restart or older program can separate them. Where T.filled is, T
// is not opened even if it is there. The log's state has no term and no vote, and
// the log is opened for reading only.

// filledDir is the directory of a timeline's copy for reading.
func (d *dataDir) filledDir(id wal.TimelineID) string { return d.of(id) + storage.FilledSuffix }

// filled lists the timelines of a tenant that have a copy for reading.
func (d *dataDir) filled(tenant, dir string) ([]wal.TimelineID, error) {
	entries, err := d.fs.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var ids []wal.TimelineID
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name, storage.FilledSuffix)
		id := wal.TimelineID{Tenant: tenant, Timeline: name}
		if ok && e.Dir && id.Validate() == nil {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// dirOf is the directory that holds the timeline's log.
func (t *timeline) dirOf() string {
	if t.filled.Load() {
		return t.node.dir.filledDir(t.id)
	}
	return t.node.dir.of(t.id)
}

// openLog opens the log as it may be used.
func (t *timeline) openLog() (*storage.Log, error) {
	if t.filled.Load() {
		return storage.OpenReadOnly(t.storageConfig())
	}
	return storage.Open(t.storageConfig())
}

// filledWhy is the reason of a filled copy's health.
func filledWhy(end wal.LSN) string {
	return fmt.Sprintf("the copy was lost and has been filled from peers up to %v for reading; it neither votes nor counts", end)
}

// busyFilling is the answer while a copy is being filled and cannot be opened.
func busyFilling(id wal.TimelineID) *consensus.Error {
	return &consensus.Error{Reason: proto.ReasonBusy, Detail: fmt.Sprintf("%v is being filled from peers here", id)}
}

// begin makes the copy, if it is not there, and opens its log for writing. The
// timeline is registered and nobody else writes until end.
func (x *filling) begin(ctx context.Context) (*timeline, error) {
	n := x.node
	lock := n.registry.changing(x.id)
	lock.Lock()
	defer lock.Unlock()
	if n.draining.Load() {
		return nil, drainingError
	}
	t := n.registry.get(x.id)
	fresh := t == nil
	if fresh {
		t = newTimeline(n, x.id)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.filling.Load() != nil {
		return nil, busyFilling(x.id)
	}
	if !fresh && !t.filled.Load() {
		if err := t.fillableLocked(); err != nil {
			return nil, err
		}
		// It is lost, and what is left of it must not be in the way.
		if err := t.closeLocked(ctx, reopenError); err != nil {
			return nil, err
		}
	}
	cfg := t.storageConfig()
	cfg.Dir = n.dir.filledDir(x.id)
	if err := x.open(ctx, t, cfg); err != nil {
		return nil, err
	}
	t.filled.Store(true)
	if err := storage.SetAside(cfg.FS, n.dir.of(x.id), n.dir.of(x.id), "its state was lost; replaced by a copy for reading"); err != nil {
		n.log.Warn("a lost copy could not be set aside", zap.String("timeline", t.name), zap.Error(err))
	}
	t.sick.Store(nil)
	t.cold.Store(nil)
	t.filling.Store(x)
	if r := t.open.Load(); r != nil {
		r.users++ // what was filled before is served meanwhile
	}
	n.registry.put(t)
	n.absences.drop(x.id)
	return t, nil
}

// fillableLocked refuses to fill what is not lost.
func (t *timeline) fillableLocked() error {
	health, why := wal.Healthy, ""
	if s := t.sick.Load(); s != nil {
		health, why = s.health, s.err.Detail
	} else {
		v, err := t.lookLocked()
		if err != nil {
			return err
		}
		health, why = v.health, v.why
	}
	if health != wal.Lost {
		return &consensus.Error{Reason: consensus.ReasonProtocol, Detail: fmt.Sprintf("the copy of %v here is %v and not lost (%s): a damaged one is repaired, a poisoned one opened again", t.id, health, why)}
	}
	return nil
}

// open opens the log of the copy, making it where it is missing, or anew where
// it is damaged or ends below what any peer still has.
func (x *filling) open(ctx context.Context, t *timeline, cfg storage.Config) error {
	oldest := wal.LSN(x.sources[0].status.GetOldestLsn())
	for _, s := range x.sources {
		oldest = min(oldest, wal.LSN(s.status.GetOldestLsn()))
	}
	for anew := false; ; anew = true {
		log, err := storage.Open(cfg)
		reason := ""
		var corrupt *storage.CorruptionError
		switch {
		case errors.Is(err, storage.ErrNotFound):
			reason = "it held no log"
		case errors.As(err, &corrupt):
			reason = err.Error()
		case err != nil:
			return err
		case log.State().Creation != x.creation:
			reason = fmt.Sprintf("it was of creation %v", log.State().Creation)
		case log.FlushLSN() < oldest:
			reason = fmt.Sprintf("it ended at %v and the oldest that peers still have is %v", log.FlushLSN(), oldest)
		default:
			x.log = log
			x.bulk = bulk{log: log, at: log.FlushLSN(), wrote: x.wrote}
			x.out.OldestLsn, x.out.FilledLsn = uint64(log.OldestLSN()), uint64(log.FlushLSN())
			return nil
		}
		if log != nil {
			_ = log.Close(nil) // nothing was written
		}
		if anew {
			return fmt.Errorf("the copy for reading cannot be used although it was just made: %s", reason)
		}
		// Its readers end with it.
		if err := t.closeLocked(ctx, reopenError); err != nil {
			return err
		}
		if err := storage.SetAside(cfg.FS, cfg.Dir, t.node.dir.of(t.id), reason); err != nil {
			return err
		}
		if err := x.create(cfg, oldest); err != nil {
			return err
		}
	}
}

func (x *filling) create(cfg storage.Config, oldest wal.LSN) error {
	status := x.best().status
	st := wal.State{
		Creation: x.creation, SystemID: status.GetSystemId(), FirstLSN: wal.LSN(status.GetFirstLsn()),
		Commit: oldest, Horizon: oldest,
	}
	var err error
	if st.Membership, err = proto.DecodeMembership(status.GetMembership()); err != nil {
		return err
	}
	return storage.CreateFrom(cfg, st, oldest)
}

// end lets the copy be opened with what it has now. It is called when the log
// was closed.
func (x *filling) end(t *timeline) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.filling.Store(nil)
	t.cold.Store(nil)
	t.sick.Store(nil)
	r := t.open.Load()
	if r == nil {
		return nil
	}
	r.users--
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeLimit)
	defer cancel()
	return t.closeLocked(ctx, reopenError)
}
