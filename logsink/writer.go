package logsink

import "sort"

// write is the sink's goroutine.
func (s *Sink) write() {
	defer close(s.ended)
	for {
		batch, told, ok := s.take()
		if !ok {
			return
		}
		n, err := s.to.Write(batch.bytes)
		s.written(batch, told, n, err)
	}
}

// take waits for lines and returns all of them. If lines have been dropped
// since the last notice, another one follows: told is what it says. Not ok: the sink is closed and empty.
func (s *Sink) take() (batch lines, told drops, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.pending.ends) == 0 && !s.noticeDue() {
		if s.closing {
			return lines{}, drops{}, false
		}
		s.changed.Wait()
	}
	batch = s.pending
	s.pending = s.spare
	s.spare = lines{}
	if s.unreported.lines > 0 && s.notice != nil {
		told = s.unreported
		s.unreported = drops{}
		batch.add(s.notice(told.lines, told.bytes))
	}
	s.writing = batch.cost()
	return batch, told, true
}

// noticeDue reports whether a notice should go out by itself. After a failed
// write it waits for a line to go with, or a broken writer would be tried without end.
func (s *Sink) noticeDue() bool {
	return s.unreported.lines > 0 && s.notice != nil && !s.failing
}

// written accounts for a batch of which n bytes have been written.
func (s *Sink) written(batch lines, told drops, n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing = err != nil
	if err != nil {
		if told.lines > 0 && n < len(batch.bytes) { // the notice, the last line, is lost as well
			s.unreported.add(told)
			last := len(batch.ends) - 1
			batch.ends = batch.ends[:last]
			batch.bytes = batch.bytes[:lineStart(batch.ends, last)]
		}
		s.unreported.add(s.drop(batch, n))
	}
	s.writing = 0
	if cap(batch.bytes) <= keepBytes {
		s.spare = lines{batch.bytes[:0], batch.ends[:0]}
	}
	s.changed.Broadcast()
}

// drop counts the lines of batch that do not lie wholly in its first n bytes.
func (s *Sink) drop(batch lines, n int) drops {
	first := sort.SearchInts(batch.ends, n+1)
	if first == len(batch.ends) {
		return drops{}
	}
	d := drops{uint64(len(batch.ends) - first), uint64(len(batch.bytes) - lineStart(batch.ends, first))}
	s.dropped.add(d)
	return d
}

// lineStart is where line i begins.
func lineStart(ends []int, i int) int {
	if i == 0 {
		return 0
	}
	return ends[i-1]
}
