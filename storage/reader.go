package storage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"

	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Frame is a piece of the log as it was written: one chunk and the term that wrote it.
type Frame struct {
	Term   wal.Term
	Commit wal.LSN // what its writer knew to be committed
	Chunk  wal.Chunk
}

// Reader reads the durable bytes of a log in order, frame by frame, while the
// log is being written. It keeps one segment open, which is not recycled
// meanwhile. Its methods are for one goroutine; its memory is the larger of 256 KiB and
// the largest frame it meets.
type Reader struct {
	log *Log
	pos wal.LSN
	cut wal.LSN // lowest end that the log was truncated to since this reader passed; under log.mu

	mu     sync.Mutex // held while reading; the log's Close takes it to end the reader
	closed bool
	seg    *segment // pinned
	file   vfs.File
	cur    cursor
	again  bool // the cursor's last frame may cover pos, too
	last   found
}

// NewReader returns a reader that stands at from, which need not be there yet.
func (l *Log) NewReader(from wal.LSN) *Reader {
	r := &Reader{log: l, pos: from, cut: EndUnknown}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		r.closed = true
		return r
	}
	l.readers = append(l.readers, r)
	return r
}

// Position is the LSN that Next will read next.
func (r *Reader) Position() wal.LSN { return r.pos }

// Close lets go of the segment. It is idempotent.
func (r *Reader) Close() error {
	l := r.log
	l.mu.Lock()
	if i := slices.Index(l.readers, r); i >= 0 {
		l.readers = slices.Delete(l.readers, i, i+1)
	}
	l.mu.Unlock()
	r.end()
	return nil
}

// end is Close without taking the reader off the log's list.
func (r *Reader) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.leave()
}

// leave closes and unpins the reader's segment.
func (r *Reader) leave() {
	if r.seg == nil {
		return
	}
	if r.file != nil {
		_ = r.file.Close() // opened for reading
	}
	r.log.mu.Lock()
	r.seg.pins--
	r.log.mu.Unlock()
	r.seg, r.file, r.again = nil, nil, false
}

// Next returns the bytes at the reader's position, up to limit at most, and
// moves behind them. A frame that is returned whole has its writer's checksum;
// every frame was verified. The data is valid until the next call.
//
// io.EOF: the position has reached limit or the end of what is durable; try
// again later. *TrimmedError: it is below the oldest that is kept. *TruncatedError: the log was
// cut beneath the reader. *DamageError: the bytes here are damaged; Skip moves past them. ErrClosed.
func (r *Reader) Next(limit wal.LSN) (Frame, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		v, err := r.look(limit)
		if err != nil {
			return Frame{}, err
		}
		if v.survey {
			if err := r.log.survey(&r.cur, r.seg, r.file); err != nil {
				return Frame{}, err
			}
			r.again = false
			off, seq := r.seekLocked()
			r.cur.start(r.file, r.seg.number, r.seg.nonce, off, seq, v.used)
			continue
		}
		f, ok, err := r.step(v)
		if ok || err != nil {
			return f, err
		}
	}
}

// Skip moves the reader to pos, in either direction.
func (r *Reader) Skip(pos wal.LSN) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leave()
	r.log.mu.Lock()
	r.pos, r.cut = pos, EndUnknown
	r.log.mu.Unlock()
}

// view is what the reader may believe for one step.
type view struct {
	end     wal.LSN // of what the open segment can give: durable, below limit, not overwritten since
	lastSeq uint64
	used    int64
	truncs  []truncation
	survey  bool
}

// look takes a consistent view of the log and sees to it that the segment of
// the reader's position is open.
func (r *Reader) look(limit wal.LSN) (view, error) {
	l := r.log
	for {
		l.mu.Lock()
		v, seg, err := r.lookLocked(limit)
		if err == nil && seg != r.seg {
			seg.pins++
		}
		l.mu.Unlock()
		if err != nil || seg == r.seg {
			return v, err
		}
		r.leave()
		r.seg = seg
		file, err := l.cfg.FS.OpenRead(l.file(segmentName(seg.number)))
		if errors.Is(err, fs.ErrNotExist) {
			return view{}, r.damaged(Damage{File: segmentName(seg.number), Reason: "the segment is missing", Begin: r.pos, End: v.end})
		}
		if err != nil {
			r.leave()
			return view{}, fmt.Errorf("cannot open the segment of %v: %w", r.pos, err)
		}
		r.file = file
		off, seq := r.seekLocked()
		r.cur.start(file, seg.number, seg.nonce, off, seq, v.used)
	}
}

func (r *Reader) seekLocked() (int64, uint64) {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	return r.seg.seek(r.pos)
}

// lookLocked is look with log.mu held; it also returns the position's segment.
func (r *Reader) lookLocked(limit wal.LSN) (view, *segment, error) {
	l := r.log
	switch oldest := l.oldest(); {
	case r.closed || l.closed:
		return view{}, nil, ErrClosed
	case r.cut < r.pos:
		return view{}, nil, &TruncatedError{r.pos, r.cut}
	case r.pos < oldest:
		return view{}, nil, &TrimmedError{r.pos, oldest}
	case r.pos >= min(limit, l.flush):
		return view{}, nil, io.EOF
	}
	r.cut = EndUnknown
	v := view{end: min(limit, l.flush)}
	for i := range l.damage {
		d := &l.damage[i]
		if d.Covers(r.pos) {
			return view{}, nil, &DamageError{*d}
		}
		if d.Begin > r.pos && d.Begin < d.End {
			v.end = min(v.end, d.Begin)
		}
	}
	i := l.table.find(r.pos)
	if i < 0 || l.table[i].missing {
		d := Damage{File: l.cfg.Dir, Reason: "no segment holds this position", Begin: r.pos, End: r.pos + 1}
		if i+1 < len(l.table) {
			d.End = max(d.End, l.table[i+1].floor)
		}
		return view{}, nil, &DamageError{d}
	}
	s := l.table[i]
	v.end = min(v.end, l.table.liveEnd(i))
	v.lastSeq, v.used, v.truncs, v.survey = s.lastSeq, s.used, s.truncs, !s.surveyed
	return v, s, nil
}

// step looks at one frame. It returns false when that does not cover the position.
func (r *Reader) step(v view) (Frame, bool, error) {
	c := &r.cur
	c.win.extend(v.used)
	f, gap := r.last, false
	if !r.again {
		var ok bool
		if f, ok = c.next(); !ok || f.seq > v.lastSeq {
			if f, ok = c.resync(); !ok || f.seq > v.lastSeq {
				return Frame{}, false, r.damaged(Damage{File: segmentName(r.seg.number), Offset: c.off, Reason: r.why("frames are gone"), Begin: r.pos, End: v.end})
			}
			if err := c.win.failure(); err != nil {
				r.leave()
				return Frame{}, false, err
			}
			gap = true
			r.note(Damage{File: segmentName(r.seg.number), Offset: f.off, Reason: "frames are gone in front of this offset"})
		}
	}
	r.again = false
	end := min(f.end(), v.end, bound(v.truncs, f.off))
	switch {
	case f.kind != kindData || end <= r.pos:
		return Frame{}, false, nil
	case f.lsn > r.pos:
		reason := "data frames do not follow each other"
		if gap {
			reason = "frames are gone in front of this offset"
		}
		return Frame{}, false, r.damaged(Damage{File: segmentName(r.seg.number), Offset: f.off, Reason: r.why(reason), Begin: r.pos, End: min(f.lsn, v.end)})
	}
	data, intact := c.payload(f)
	if !intact {
		return Frame{}, false, r.damaged(Damage{File: segmentName(r.seg.number), Offset: f.off, Reason: r.why("data does not match its checksum"), Begin: max(f.lsn, r.log.OldestLSN()), End: end})
	}
	chunk := wal.Chunk{Begin: r.pos, CRC: f.payloadCRC, Data: data[r.pos-f.lsn : end-f.lsn]}
	if len(chunk.Data) < len(data) {
		chunk.CRC = wal.Checksum(chunk.Data)
	}
	r.pos = end
	r.last, r.again = f, end < f.end()
	return Frame{Term: f.term, Commit: f.commit, Chunk: chunk}, true, nil
}

// why adds what the device said, if it refused to read.
func (r *Reader) why(reason string) string {
	if r.cur.win.cause != nil {
		return reason + ": " + r.cur.win.cause.Error()
	}
	return reason
}

// damaged records d, which quarantines the log, and answers with it; unless the
// reading itself failed: then that is the answer, and the next call tries again.
func (r *Reader) damaged(d Damage) error {
	if err := r.cur.win.failure(); err != nil {
		r.leave()
		return err
	}
	r.note(d)
	r.leave()
	return &DamageError{d}
}

func (r *Reader) note(d Damage) {
	r.log.mu.Lock()
	r.log.addDamage(d)
	r.log.mu.Unlock()
}
