package storage

import (
	"cmp"
	"fmt"
)

const seqMax = ^uint64(0)

// replay reads the newest segment with a valid head, and what follows it.
//
// The log is the unbroken run of sequence numbers from the head on. Behind the
// run there may be a torn tail: frames of a batch that was never synced. It is
// damage instead if some frame says that a number missing from the run was durable. What
// such a frame says is true wherever it is found, so it is looked for through the page cache;
// what nothing proves is only believed when it is read past it.
//
// False: the head itself is not on the device, so nothing of the segment is.
func (o *opening) replay() bool {
	f := &o.files[o.newest]
	s := &segment{number: f.number, nonce: f.header.nonce, size: f.size, firstSeq: f.first.seq, low: f.first.lsn, surveyed: true}
	if f.bad != nil {
		o.note(Damage{File: f.name(), Reason: f.bad.Error()})
	}
	evidence := o.evidence()

	o.state, o.seq, o.end = f.head, f.first.seq-1, f.first.lsn
	c := &o.cur
	c.start(f.file, f.number, s.nonce, sectorBytes, s.firstSeq, f.size)
	sealed := false
	var broken *found // a frame of the run whose payload is not what was written
	for {
		if c.seq > o.durable && !c.win.uncached {
			c.win.reset(f.file, f.size, true)
		}
		frame, ok := c.next()
		if !ok {
			break
		}
		payload, ok := c.payload(frame)
		if !ok {
			broken = &frame
			break
		}
		if err := o.apply(s, frame, payload); err != nil {
			o.note(Damage{File: f.name(), Offset: frame.off, Reason: err.Error(), Begin: o.commit, End: EndUnknown})
			o.stateLost = true
			break
		}
		sealed = frame.isSeal()
	}
	evidence.unreadable += c.win.unreadable
	if o.seq < s.firstSeq && o.durable < s.firstSeq && evidence.unreadable == 0 {
		return false
	}
	o.table = table{}
	o.table.add(s)
	switch {
	case o.durable > o.seq || evidence.unreadable > 0:
		o.salvage(s, broken, evidence)
	case sealed && o.newest+1 == len(o.files):
		o.note(Damage{File: segmentName(f.number + 1), Reason: "the segment is missing; the one before was sealed when it was ready", Begin: o.end, End: EndUnknown})
		o.stateLost = true
	}
	return true
}

// evidence is what the newest files tell beyond the run.
type evidence struct {
	unreadable int // pages that could not be read
	cause      error
	last       int // index of the newest file that holds any frame
}

// evidence finds the highest sequence number that any frame in the newest
// files says was durable.
func (o *opening) evidence() evidence {
	e := evidence{last: o.newest}
	o.durable = 0
	if o.record != nil {
		o.durable = o.record.Seq
	}
	for i := o.newest; i < len(o.files); i++ {
		f := &o.files[i]
		c := &o.cur
		c.start(f.file, f.number, f.header.nonce, sectorBytes, 0, f.size)
		c.anyLife = f.bad != nil && f.head == nil
		for {
			frame, ok := c.next()
			if !ok {
				if c.anyLife {
					c.seq = 0
				}
				if frame, ok = c.resync(); !ok {
					break
				}
			}
			o.durable = max(o.durable, frame.durable)
			e.last = i
		}
		e.unreadable += c.win.unreadable
		if f.short != nil {
			e.unreadable++
		}
		e.cause = cmp.Or(e.cause, c.win.cause, f.short)
	}
	return e
}

// apply takes one frame of segment s into the log.
func (o *opening) apply(s *segment, f found, payload []byte) error {
	if f.kind == kindData {
		if f.lsn != o.end {
			return fmt.Errorf("a data frame begins at %v where the log ends at %v", f.lsn, o.end)
		}
		s.addMark(mark{f.lsn, f.off, f.seq})
	} else {
		state, err := decodeState(payload, f.lsn)
		if err != nil {
			return err
		}
		if f.lsn > o.end {
			return fmt.Errorf("a state frame puts the log's end at %v, above %v", f.lsn, o.end)
		}
		if f.lsn < o.end {
			s.truncs = addTruncation(s.truncs, truncation{f.off, f.lsn})
			s.low = min(s.low, f.lsn)
			s.cutMarks(f.lsn)
		}
		o.state = state
	}
	o.end, o.seq, o.term = f.end(), f.seq, f.term
	o.commit = max(o.commit, min(f.commit, o.end))
	s.lastSeq = f.seq
	s.used = alignSector(f.off + frameBytes(int(f.length)))
	return nil
}

// salvage goes on behind damage, for what can still be served. It never makes
// the log usable for writing: from here on it is quarantined.
func (o *opening) salvage(s *segment, broken *found, e evidence) {
	c := &o.cur
	stateInDoubt := false
	for i := o.newest; ; {
		f := &o.files[i]
		limit := seqMax
		if i < e.last {
			limit = o.durable // behind what is proved there may be a dead tail
		}
		c.win.reset(f.file, f.size, false)
		for {
			var frame found
			ok := false
			if broken != nil {
				frame, ok, broken = *broken, true, nil
			} else if frame, ok = c.next(); !ok {
				if frame, ok = c.resync(); !ok {
					break
				}
			}
			if frame.seq > limit {
				break
			}
			payload, intact := c.payload(frame)
			if !intact && frame.kind != kindData {
				stateInDoubt = true
				continue // leaves a gap in the numbers
			}
			if frame.seq != o.seq+1 {
				stateInDoubt = true
				o.bridge(s, frame)
			} else if !o.fits(frame) {
				o.note(Damage{File: f.name(), Offset: frame.off, Reason: "a frame does not continue the log", Begin: o.commit, End: EndUnknown})
				o.stateLost = true
				return
			}
			if !intact {
				o.note(Damage{File: f.name(), Offset: frame.off, Reason: "data does not match its checksum", Begin: frame.lsn, End: frame.end()})
				o.end, o.seq, o.term, s.lastSeq = frame.end(), frame.seq, frame.term, frame.seq
				continue
			}
			if err := o.apply(s, frame, payload); err != nil {
				o.note(Damage{File: f.name(), Offset: frame.off, Reason: err.Error(), Begin: o.commit, End: EndUnknown})
				o.stateLost = true
				return
			}
			o.table.lower(s.low)
			if frame.kind == kindState {
				stateInDoubt = false
			}
		}
		if i++; i > e.last {
			break
		}
		next := &o.files[i]
		o.note(Damage{File: next.name(), Offset: sectorBytes, Reason: "the segment's head is damaged"})
		stateInDoubt = true
		s = o.headless(next)
		o.table.add(s)
		c.start(next.file, next.number, s.nonce, sectorBytes, o.seq+1, next.size)
	}
	if o.durable > o.seq {
		o.note(Damage{File: segmentName(s.number), Offset: s.used, Begin: o.commit, End: EndUnknown,
			Reason: fmt.Sprintf("frames up to number %d were durable and are gone from number %d on", o.durable, o.seq+1)})
		stateInDoubt = true
	}
	if e.unreadable > 0 {
		o.note(Damage{File: segmentName(s.number), Offset: s.used, Begin: o.end, End: EndUnknown,
			Reason: fmt.Sprintf("%d pages or more cannot be read: %v", e.unreadable, e.cause)})
		stateInDoubt = true
	}
	o.stateLost = o.stateLost || stateInDoubt
}

// fits reports whether f continues the log without a break.
func (o *opening) fits(f found) bool {
	if f.kind == kindData {
		return f.lsn == o.end
	}
	return f.lsn <= o.end
}

// bridge closes the gap in front of f, whose number is not the next one. What was lost
// may have cut the log, though never below what was committed, unless the same
// term wrote on both sides.
func (o *opening) bridge(s *segment, f found) {
	begin := o.commit
	if f.term == o.term && f.lsn >= o.end {
		begin = o.end
	}
	o.note(Damage{File: segmentName(s.number), Offset: f.off, Begin: min(begin, f.lsn), End: f.lsn,
		Reason: fmt.Sprintf("frames %d to %d in front of this offset are gone", o.seq+1, f.seq-1)})
	if f.lsn < o.end {
		s.truncs = addTruncation(s.truncs, truncation{f.off, f.lsn})
		s.cutMarks(f.lsn)
		o.table.lower(f.lsn)
	}
	o.end, o.seq = f.lsn, f.seq-1
}

// headless makes a segment of a file whose head is gone but which holds frames.
func (o *opening) headless(f *segmentFile) *segment {
	s := &segment{number: f.number, nonce: f.header.nonce, size: f.size, firstSeq: o.seq + 1, low: o.end, surveyed: true}
	if f.bad != nil {
		// Which life the frames are of is told by the last of them.
		c := &o.cur
		c.start(f.file, f.number, 0, sectorBytes, 0, f.size)
		c.anyLife = true
		for {
			c.seq = 0
			frame, ok := c.resync()
			if !ok {
				break
			}
			s.nonce = frame.nonce
		}
	}
	return s
}

// checkNewer takes stock of the files behind the newest segment of the log.
func (o *opening) checkNewer() {
	last := o.table.newest().number
	for _, f := range o.files {
		if f.number <= last {
			continue
		}
		if f.number != last+1 {
			o.note(Damage{File: segmentName(last + 1), Reason: fmt.Sprintf("the segment is missing; %s is there", f.name()), Begin: o.end, End: EndUnknown})
			o.stateLost = true
		}
		last = f.number
		o.leftover = append(o.leftover, f.number)
	}
}
