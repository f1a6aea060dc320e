package storage

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Open recovers the log in cfg.Dir. It writes nothing; it does call fdatasync
// on the newest segments, so that what it then reads is what the disk has.
//
// ErrNotFound: there is no segment. *PoisonedError: a sync failed. *CorruptionError:
// something once durable is gone or changed; the Log that may come with it is
// quarantined: it serves what is undamaged and takes no writes. Any other
// error (a directory that cannot be listed, no descriptors) says nothing about
// the log. The caller sees to it that a directory is open for writing once at a time.
//
// A new log takes writes once Prepare has been called.
func Open(cfg Config) (*Log, error) { return open(cfg, false) }

// OpenReadOnly is Open without the fdatasync and without any permission to
// write, for looking at a log that no one writes. What was written and never
// synced may be shown as part of it.
func OpenReadOnly(cfg Config) (*Log, error) { return open(cfg, true) }

// opening is the work of Open. What belongs to the log is found from the
// newest segment with a valid head upward; older segments only have their head read.
type opening struct {
	*Log
	files []segmentFile // rising by number
	cur   cursor        // its buffer is used for everything

	state     *logState
	stateLost bool
	record    *damageRecord // of damage found earlier; nil: there is none
	badRecord error         // why it cannot be used
	durable   uint64        // highest sequence number that any valid frame says was durable
	seq       uint64        // of the last frame that counts
	end       wal.LSN       // of the log
	commit    wal.LSN       // highest known
	term      wal.Term
	newest    int // index in files of the newest with a valid head
	synced    int // files from this index on were synced
}

// segmentFile is a file that is named like a segment.
type segmentFile struct {
	number uint64
	size   int64

	file   vfs.File
	header segmentHeader
	bad    error // why the header cannot be used; then nonce is from the head, if that is valid
	short  error // the file was cut

	head  *logState // nil: no valid head
	first found     // the head's frame
}

func (f *segmentFile) name() string { return segmentName(f.number) }

func open(cfg Config, readOnly bool) (*Log, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	l := &Log{cfg: cfg, readOnly: readOnly}
	o := &opening{Log: l}
	defer o.closeFiles()
	if err := o.list(); err != nil {
		return nil, err
	}
	if err := o.readRecord(); err != nil {
		return nil, err
	}
	for o.newest, o.synced = len(o.files), len(o.files); ; {
		if err := o.findNewest(); err != nil {
			return nil, err
		}
		if o.newest < 0 {
			o.note(Damage{File: o.files[len(o.files)-1].name(), Reason: "no segment has a valid head", End: EndUnknown})
			return nil, &CorruptionError{Dir: cfg.Dir, Damage: l.damage, StateLost: true}
		}
		whole := o.replay()
		if err := o.cur.win.failure(); err != nil {
			return nil, err
		}
		if whole {
			break
		}
		o.damage, o.health = nil, wal.Healthy
	}
	if err := cmp.Or(o.linkOlder(), o.cur.win.failure()); err != nil {
		return nil, err
	}
	o.checkNewer()
	o.recall()
	return o.finish()
}

func (o *opening) closeFiles() {
	for i := range o.files {
		if f := o.files[i].file; f != nil {
			_ = f.Close() // opened for reading
		}
	}
}

func (o *opening) note(d Damage) { o.addDamage(d) }

func (o *opening) list() error {
	entries, err := o.cfg.FS.ReadDir(o.cfg.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", o.cfg.Dir, ErrNotFound)
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if n, ok := parseSegmentName(e.Name); ok && !e.Dir {
			o.files = append(o.files, segmentFile{number: n, size: e.Size})
		}
	}
	slices.SortFunc(o.files, func(a, b segmentFile) int {
		if a.number < b.number {
			return -1
		}
		return 1
	})
	if len(o.files) == 0 {
		return fmt.Errorf("%s holds no segment: %w", o.cfg.Dir, ErrNotFound)
	}
	return nil
}

// load opens file i and reads its header and head.
func (o *opening) load(i int) error {
	f := &o.files[i]
	if f.file == nil {
		var err error
		if f.file, err = o.cfg.FS.OpenRead(o.file(f.name())); err != nil {
			return err
		}
	}
	c := &o.cur
	c.start(f.file, f.number, 0, sectorBytes, 0, f.size)
	f.header, f.bad = decodeSegmentHeader(c.win.bytes(0, sectorBytes))
	switch {
	case f.size < 2*sectorBytes:
		f.short = fmt.Errorf("the file holds %d bytes, less than any segment", f.size)
	case f.bad != nil:
	case f.header.number != f.number:
		f.bad = fmt.Errorf("the segment header is that of segment %d", f.header.number)
	case f.header.size > f.size:
		// Its size was durable before it got its name.
		f.short = fmt.Errorf("the file holds %d bytes and once held %d", f.size, f.header.size)
	}
	c.nonce, c.anyLife = f.header.nonce, f.bad != nil
	frame, ok := c.at(sectorBytes)
	if !ok || !frame.isHead() {
		return c.win.failure()
	}
	payload, ok := c.payload(frame)
	if !ok {
		return c.win.failure()
	}
	if head, err := decodeState(payload, frame.lsn); err == nil {
		f.head, f.first = head, frame
		f.header.nonce = frame.nonce
	}
	return nil
}

// release closes file i, so that a log of many segments is opened with few descriptors.
func (o *opening) release(i int) {
	if f := o.files[i].file; f != nil {
		_ = f.Close() // opened for reading
		o.files[i].file = nil
	}
}

// findNewest finds the newest segment with a valid head, below the last one
// that was tried, and makes what it holds and what follows it durable.
func (o *opening) findNewest() error {
	for o.newest--; o.newest >= 0; o.newest-- {
		if err := o.load(o.newest); err != nil {
			return err
		}
		if o.files[o.newest].head == nil {
			continue
		}
		for ; !o.readOnly && o.synced > o.newest; o.synced-- {
			if err := o.files[o.synced-1].file.Datasync(); err != nil {
				return &PoisonedError{err}
			}
		}
		return nil
	}
	return nil
}

// finish turns what was found into a Log.
func (o *opening) finish() (*Log, error) {
	l := o.Log
	newest := l.table.newest()
	o.state.Commit = max(o.state.Commit, min(o.commit, o.end))
	l.saved, l.flush, l.write = o.state, o.end, o.end
	l.nextNumber = newest.number + 1
	l.w.state, l.w.end = o.state, o.end
	l.w.seq, l.w.durable = o.seq, o.seq // read from the device, or proved by a later frame
	l.w.cutTo = EndUnknown
	if len(l.damage) == 0 {
		if l.readOnly {
			l.err = ErrReadOnly
		}
		return l, nil
	}
	l.health = wal.Quarantined
	if o.stateLost {
		l.health = wal.Lost
	}
	e := &CorruptionError{Dir: l.cfg.Dir, Damage: slices.Clone(l.damage), StateLost: o.stateLost}
	l.err = e
	return l, e
}
