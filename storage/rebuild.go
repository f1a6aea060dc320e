package storage

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// reasonFile says, in a quarantined directory, why it is there.
const reasonFile = "REASON"

// Rebuild writes a timeline's log anew, from bytes fetched elsewhere, beside the
// damaged one, and then puts it in its place with the old directory kept aside:
//
//	T.building      being filled; a crash leaves it to Sweep, which removes it
//	T.ready         complete and durable; a crash leaves it to Sweep, which goes on:
//	T -> T.quarantined, .quarantined-2, ...   the damaged one, with a file REASON
//	T.ready -> T
//
// The new log starts with a state that the caller vouches for; this package
// does not know where a lost one could come from. One goroutine uses it.
type Rebuild struct {
	Log *Log // the new log; for looking at
	cfg Config
	dir string
}

// NewRebuild begins a log at cfg.Dir + ".building", which holds st and begins
// at from: what lies below counts as trimmed. st.Commit and st.Horizon are
// lowered to from where they lie above; save the final state when the bytes are there.
func NewRebuild(cfg Config, st wal.State, from wal.LSN) (*Rebuild, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if from < st.FirstLSN {
		return nil, fmt.Errorf("cannot rebuild from %v, below the log's first position %v", from, st.FirstLSN)
	}
	r := &Rebuild{cfg: cfg, dir: path.Clean(cfg.Dir)}
	if there, err := exists(cfg.FS, r.dir+readySuffix); err != nil {
		return nil, err
	} else if there {
		return nil, fmt.Errorf("%s%s is complete and waits to be put in place (by Sweep): %w", r.dir, readySuffix, ErrExists)
	}
	building := cfg
	building.Dir = r.dir + buildingSuffix
	if err := removeTree(cfg.FS, building.Dir); err != nil {
		return nil, err
	}
	st = st.Clone()
	st.Commit, st.Horizon = min(st.Commit, from), min(st.Horizon, from)
	if err := makeDir(building, building.Dir, &logState{State: st, trim: from, oldest: 1}, from); err != nil {
		return nil, err
	}
	if r.Log, err = Open(building); err != nil {
		return nil, err
	}
	return r, nil
}

// Append adds chunks of term at the new log's end, making segments as they are
// needed, and syncs them. An error ends the rebuild: call Abort.
func (r *Rebuild) Append(term wal.Term, commit wal.LSN, chunks []wal.Chunk) error {
	return r.Log.AppendAlone(term, commit, chunks)
}

// AppendAlone is Append and Sync for a caller that is alone with the log and
// has no background goroutine: it makes segments as they are needed.
func (l *Log) AppendAlone(term wal.Term, commit wal.LSN, chunks []wal.Chunk) error {
	bytes := 0
	for i := range chunks {
		bytes += len(chunks[i].Data)
	}
	if err := l.roomAlone(len(chunks), bytes); err != nil {
		return err
	}
	if err := l.Append(term, commit, chunks, false); err != nil {
		return err
	}
	return l.Sync()
}

// SaveStateAlone is SaveState and Sync in the same way, the log's end staying where it is.
func (l *Log) SaveStateAlone(st *wal.State) error {
	if err := l.roomAlone(0, 0); err != nil {
		return err
	}
	if err := l.SaveState(st, l.WriteLSN()); err != nil {
		return err
	}
	return l.Sync()
}

// roomAlone does what the loop and its background do for a log that is in use.
func (l *Log) roomAlone(frames, bytes int) error {
	for range 3 { // seal, prepare, begin
		switch l.Space(frames, bytes) {
		case wal.SpaceOpen:
			return nil
		case wal.SpaceNext:
			if err := l.Seal(); err != nil {
				return err
			}
			if err := l.Sync(); err != nil {
				return err
			}
		default:
			if err := l.Prepare(); err != nil {
				return err
			}
		}
	}
	if l.Space(frames, bytes) == wal.SpaceOpen {
		return nil
	}
	return fmt.Errorf("%d bytes in %d chunks do not fit into one segment", bytes, frames)
}

// Finish saves st as the final state, closes the new log and puts it in place of the old one,
// which must be closed. reason is kept with the old directory. After an error or a crash
// Sweep either finishes the exchange or removes what there is of the new log.
func (r *Rebuild) Finish(st *wal.State, reason string) error {
	fsys := r.cfg.FS
	if err := r.Log.SaveStateAlone(st); err != nil {
		return errors.Join(err, r.Abort())
	}
	if err := r.Log.Close(nil); err != nil {
		return err
	}
	if there, err := exists(fsys, r.dir); err != nil {
		return err
	} else if there {
		if err := writeReason(fsys, r.dir, reason); err != nil && !IsNoSpace(err) {
			return err
		}
	}
	if err := fsys.Rename(r.dir+buildingSuffix, r.dir+readySuffix); err != nil {
		return err
	}
	if err := fsys.SyncDir(path.Dir(r.dir)); err != nil {
		return err
	}
	return swapIn(fsys, r.dir)
}

// Abort closes the new log and removes it.
func (r *Rebuild) Abort() error {
	_ = r.Log.Close(nil) // it is removed
	return removeTree(r.cfg.FS, r.dir+buildingSuffix)
}

// swapIn puts dir.ready in place of dir.
func swapIn(fsys vfs.FS, dir string) error {
	there, err := exists(fsys, dir)
	if err != nil {
		return err
	}
	if there {
		if err := moveAside(fsys, dir, dir); err != nil {
			return err
		}
	}
	if err := fsys.Rename(dir+readySuffix, dir); err != nil {
		return err
	}
	return fsys.SyncDir(path.Dir(dir))
}

// moveAside gives dir the first free name of those that dir T's damaged ones have.
func moveAside(fsys vfs.FS, dir, t string) error {
	aside := t + quarantinedSuffix
	for n := 2; ; n++ {
		taken, err := exists(fsys, aside)
		if err != nil {
			return err
		}
		if !taken {
			break
		}
		aside = fmt.Sprintf("%s%s-%d", t, quarantinedSuffix, n)
	}
	if err := fsys.Rename(dir, aside); err != nil {
		return err
	}
	return fsys.SyncDir(path.Dir(dir))
}

// SetAside keeps a directory that cannot be used, which must not be open, as a
// quarantined one of timeline directory t, with the reason in a file. It is no
// error if there is none.
func SetAside(fsys vfs.FS, dir, t, reason string) error {
	dir, t = path.Clean(dir), path.Clean(t)
	if there, err := exists(fsys, dir); err != nil || !there {
		return err
	}
	if err := writeReason(fsys, dir, reason); err != nil && !IsNoSpace(err) {
		return err
	}
	return moveAside(fsys, dir, t)
}

// Quarantined counts the directories that were set aside for timeline directory t.
func Quarantined(fsys vfs.FS, t string) (int, error) {
	entries, err := fsys.ReadDir(path.Dir(path.Clean(t)))
	if err != nil {
		return 0, err
	}
	n := 0
	for _, e := range entries {
		if e.Dir && strings.HasPrefix(e.Name, path.Base(path.Clean(t))+quarantinedSuffix) {
			n++
		}
	}
	return n, nil
}

func writeReason(fsys vfs.FS, dir, reason string) error {
	name := path.Join(dir, reasonFile)
	f, err := fsys.Create(name)
	if err != nil {
		f, err = fsys.Open(name)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(reason+"\n"), 0)
	if err == nil {
		err = f.Datasync()
	}
	return errors.Join(err, f.Close(), fsys.SyncDir(dir))
}
