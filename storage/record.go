package storage

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
)

// damageFile lies beside the segments of a log in which a reader or a scrub has
// found damage. Opening reads only the heads of older segments and would take
// the log for healthy again. The file is a line with the checksum of the rest, and the
// rest is JSON. It goes with its directory: when a rebuild has put another in
// its place, it is kept aside with the damaged segments.
const damageFile = "DAMAGE"

// damageRecord is what the file holds.
type damageRecord struct {
	// Seq is the last sequence number that was durable. A log that now ends
	// earlier has lost its last frames since, and perhaps a vote with them: without this
	// number that would pass for a torn tail.
	Seq    uint64
	Damage []Damage
}

const (
	recordBytesMax = 1 << 20
	reasonBytesMax = 300
)

// RecordDamage makes the damage that is known durable beside the segments, so
// that the log is still quarantined when it is opened again. It does nothing if
// there is none, or nothing new. It blocks on the disk and must not be called
// while the directory is being replaced; an error leaves things as they are.
func (l *Log) RecordDamage() error {
	l.prepareMu.Lock()
	defer l.prepareMu.Unlock()
	l.mu.Lock()
	record := damageRecord{Damage: append([]Damage(nil), l.damage...)}
	if newest := l.table.newest(); newest != nil {
		record.Seq = newest.lastSeq
	}
	skip := l.closed || len(l.damage) == l.recorded
	l.mu.Unlock()
	if skip {
		return nil
	}
	for i := range record.Damage {
		d := &record.Damage[i]
		d.Reason = strings.ToValidUTF8(d.Reason[:min(len(d.Reason), reasonBytesMax)], "?")
	}
	text, err := json.MarshalIndent(&record, "", "  ")
	if err != nil {
		return err
	}
	text = append(fmt.Appendf(nil, "%08x\n", checksum(text)), text...)
	if err := replaceFile(l.cfg.FS, l.cfg.Dir, damageFile, text); err != nil {
		return err
	}
	l.mu.Lock()
	l.recorded = len(record.Damage)
	l.mu.Unlock()
	return nil
}

// replaceFile writes a file so that after a crash the old or the new one is there.
func replaceFile(fsys vfs.FS, dir, name string, text []byte) error {
	tmp := path.Join(dir, name+prepareSuffix)
	if err := fsys.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := fsys.Create(tmp)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(text, 0)
	if err == nil {
		err = f.Datasync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fsys.Rename(tmp, path.Join(dir, name)); err != nil {
		return err
	}
	return fsys.SyncDir(dir)
}

// readRecord reads the record of damage, if there is one.
func (o *opening) readRecord() error {
	f, err := o.cfg.FS.OpenRead(o.file(damageFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	o.record = &damageRecord{}
	if err := o.record.decode(f); err != nil {
		o.badRecord = err
	}
	return nil
}

func (r *damageRecord) decode(f vfs.File) error {
	size, err := f.Size()
	if err != nil {
		return err
	}
	if size > recordBytesMax {
		return fmt.Errorf("it holds %d bytes, at most %d are written", size, recordBytesMax)
	}
	text := make([]byte, size)
	if n, err := f.ReadAt(text, 0); err != nil && err != io.EOF || int64(n) < size {
		return fmt.Errorf("%d of %d bytes could be read: %w", n, size, err)
	}
	sum, rest, _ := strings.Cut(string(text), "\n")
	if sum != fmt.Sprintf("%08x", checksum([]byte(rest))) {
		return errors.New("it does not match its checksum")
	}
	return json.Unmarshal([]byte(rest), r)
}

// recall adds to what opening found what was found before.
func (o *opening) recall() {
	if o.record == nil {
		return
	}
	for _, d := range o.record.Damage {
		d.Begin, d.End = max(d.Begin, o.state.trim), min(d.End, o.end)
		if d.Begin >= d.End {
			d.Begin, d.End = 0, 0
		}
		o.note(d)
	}
	if o.badRecord != nil || len(o.record.Damage) == 0 {
		// What it said of the log's end cannot be known any more.
		o.note(Damage{File: damageFile, Reason: fmt.Sprintf("the record of damage found earlier cannot be used: %v", o.badRecord)})
		o.stateLost = true
	}
	o.recorded = len(o.damage)
}
