package storage

import "github.com/seed7f3f3bb8/holdfast/wal"

// Space says whether a batch of frames data frames with bytes of payload, or
// with frames 0 one state frame, can be written now. It only looks at memory.
// A poisoned, closed or quarantined log has no space.
func (l *Log) Space(frames, bytes int) wal.Space {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return wal.SpaceNone
	}
	w := &l.w
	// What came from the spares takes data only once a successor from elsewhere is ready.
	next := l.prepared != nil && !(frames > 0 && l.prepared.reserve)
	switch {
	case w.seg != nil && (next || frames == 0 || !w.seg.reserve) && l.room(w.seg, w.off, frames, bytes):
		return wal.SpaceOpen
	case w.seg != nil && next:
		return wal.SpaceNext
	case w.seg == nil && next && l.room(l.prepared, l.firstBatch(), frames, bytes):
		return wal.SpaceOpen
	case l.full:
		return wal.SpaceNone
	}
	return wal.SpaceWait
}

// firstBatch is how far a segment is filled by its header and the largest head.
func (l *Log) firstBatch() int64 { return sectorBytes + l.cfg.stateFrameBytesMax() }

// room reports whether a batch fits into s from off on. A state may use the
// reserve; both leave room for the largest seal.
func (l *Log) room(s *segment, off int64, frames, bytes int) bool {
	seal := l.cfg.stateFrameBytesMax()
	if frames == 0 {
		return off+l.cfg.stateFrameBytesMax()+seal <= s.size
	}
	data := alignSector(int64(bytes) + int64(frames)*(frameHeaderBytes+7))
	return off+data+max(seal, l.cfg.StateReserveBytes) <= s.size
}
