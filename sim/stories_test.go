package sim

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/flush"
	"github.com/seed7f3f3bb8/holdfast/storage"
	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Stories from the trade, each a test of its own, on one acceptor with a
// simulated disk. Those that need no disk are transcripts of package consensus.

// lone is one acceptor that a test speaks to by hand.
type lone struct {
	t *testing.T
	*node
	lane   *flush.Lane
	number uint64
	got    []consensus.Message
	ended  *consensus.Error
	term   wal.Term
}

func newLone(t *testing.T) *lone {
	t.Helper()
	s := shape{nodes: 1, slots: 1, first: 0x1000, segmentBytes: 16 << 10, sync: 1, quietEvery: 1 << 50}
	w := newWorld(1, s, nil)
	l := &lone{t: t, node: w.nodes[0]}
	l.hello()
	return l
}

func (l *lone) Send(m consensus.Message) error {
	if a, ok := m.(*consensus.AppendResponse); ok {
		own := *a
		m = &own
	}
	l.got = append(l.got, m)
	return nil
}
func (l *lone) End(err *consensus.Error) { l.ended = err; l.lane = nil }
func (l *lone) Cancel()                  {}

// hello opens a stream.
func (l *lone) hello() {
	l.number++
	l.lane = l.loop.Open(l)
	l.say(&consensus.Greeting{Version: consensus.Version, Timeline: timeline, Creation: creation(), Proposer: wal.ProposerID{9}, Connection: l.number, Membership: l.w.membership()})
}

// say sends messages and lets the acceptor work until it has nothing left to do.
func (l *lone) say(messages ...consensus.Message) []consensus.Message {
	l.t.Helper()
	l.got, l.ended = nil, nil
	for _, m := range messages {
		if err := l.lane.Put(m); err != nil {
			l.t.Fatal(err)
		}
	}
	l.work()
	return l.got
}

func (l *lone) work() {
	for range 1000 {
		if l.log.NeedsPrepare() {
			_ = l.log.Prepare() // it is tried again
		}
		if l.loop.Turn() == flush.Idle {
			return
		}
	}
	l.t.Fatal("the acceptor is not done after 1,000 turns")
}

// elect makes the test the winner of the next term, with a log cut to end.
func (l *lone) elect(end wal.LSN) {
	l.t.Helper()
	l.term = max(l.term, l.acc.Status().Term) + 1
	h := l.acc.State().History.Visible(l.acc.Status().Flush).Extend(l.term, end)
	l.say(&consensus.VoteRequest{Generation: 1, Term: l.term}, &consensus.Elected{Generation: 1, Term: l.term, Resume: end, History: h})
	if l.ended != nil || l.acc.Status().Health == wal.Healthy && l.acc.Status().Flush != end {
		l.t.Fatalf("elected in term %d: %v, flush %v, want %v", l.term, l.ended, l.acc.Status().Flush, end)
	}
}

// write appends data and returns the flush LSN that was acknowledged, 0 if none was.
func (l *lone) write(data []byte) wal.LSN {
	l.t.Helper()
	var messages []consensus.Message
	at := l.acc.Status().Write
	for len(data) > 0 {
		n := min(len(data), requestBytesMax)
		messages = append(messages, &consensus.AppendRequest{Generation: 1, Term: l.term, Begin: at, Data: data[:n], CRC: wal.Checksum(data[:n])})
		at, data = at+wal.LSN(n), data[n:]
	}
	acked := wal.LSN(0)
	for _, m := range l.say(messages...) {
		if a, ok := m.(*consensus.AppendResponse); ok {
			acked = max(acked, a.Flush)
		}
	}
	return acked
}

// again ends the process, lets cut change the disk, and opens the log anew.
func (l *lone) again(cut func(*vfs.Mem) *vfs.Mem) error {
	l.stop()
	l.disk = cut(l.disk)
	log, err := storage.Open(l.config(l.disk))
	if err != nil {
		return err
	}
	_ = log.Close(nil) // only to see whether it opens
	l.rec = recorder{n: l.node}
	l.shadow = shadow{first: l.w.first, data: l.shadow.data, state: l.shadow.state}
	l.damaged = true // what the books say no longer matters: the test looks for itself
	l.start()
	l.hello()
	return nil
}

func (l *lone) holds(want []byte) {
	l.t.Helper()
	got, err := l.read(l.w.first, l.log.FlushLSN())
	if err != nil || !bytes.Equal(got, want) {
		l.t.Fatalf("the log holds %d bytes (%v), want %d: %.40q, want %.40q", len(got), err, len(want), got, want)
	}
}

func restart(m *vfs.Mem) *vfs.Mem  { m.Restart(); return m }
func powerCut(m *vfs.Mem) *vfs.Mem { return m.CrashWorst() }

func fill(c byte, n int) []byte { return bytes.Repeat([]byte{c}, n) }

// TestStoryPostgreSQLFsyncgate: an fdatasync fails, the page cache calls the
// pages clean, and the next fdatasync succeeds. Nothing may be acknowledged,
// and a restart must read past the cache, which still shows the bytes.
func TestStoryPostgreSQLFsyncgate(t *testing.T) {
	l := newLone(t)
	l.elect(0x1000)
	safe := fill('a', 600)
	if l.write(safe) != 0x1000+600 {
		t.Fatal("not acknowledged")
	}
	l.fault.Inject(vfs.Rule{Ops: vfs.OpDatasync, Times: 1, Effect: vfs.LoseSync{}})
	before := l.fault.Count(vfs.OpDatasync)
	if acked := l.write(fill('b', 600)); acked != 0 || l.acc.Status().Health != wal.Poisoned {
		t.Fatalf("acknowledged %v in health %v after a failed fdatasync", acked, l.acc.Status().Health)
	}
	if n := l.fault.Count(vfs.OpDatasync) - before; n != 1 {
		t.Fatalf("fdatasync was called %d times: a failed one must not be retried", n)
	}
	l.hello()
	l.say(&consensus.VoteRequest{Generation: 1, Term: 9})
	if l.ended == nil || l.ended.Reason != consensus.ReasonPoisoned {
		t.Fatalf("a poisoned acceptor answers a vote with %v", l.ended)
	}
	if err := l.again(restart); err != nil {
		t.Fatal(err)
	}
	l.holds(safe)
}

// TestStoryEtcdIndexSavedApartFromData: state and bytes are one log, so that at
// every point of a run a kill or a power cut leaves a term, a history and bytes that belong together.
func TestStoryEtcdIndexSavedApartFromData(t *testing.T) {
	for point := 1; ; point++ {
		l := newLone(t)
		l.elect(0x1000)
		l.write(fill('a', 500))
		l.fault.CrashAfter(point)
		l.elect2(0x1000 + 300)
		l.write2(fill('b', 500))
		crashed := l.fault.Crashed()
		if err := l.again(powerCut); err != nil {
			t.Fatalf("after %d changes: %v", point, err)
		}
		st, end := l.log.State(), l.log.FlushLSN()
		data, err := l.read(0x1000, end)
		want := fill('a', 500)
		if st.History.LastTerm() == 2 {
			want = append(fill('a', 300), fill('b', 500)...)
		}
		if err != nil || len(data) < 300 || !bytes.Equal(data, want[:len(data)]) || st.History.LastTerm() == 1 && len(data) != 500 {
			t.Fatalf("after %d changes: history %v with %d bytes %.20q (%v)", point, st.History, len(data), data[min(len(data), 290):], err)
		}
		if !crashed {
			return
		}
	}
}

// elect2 and write2 do not mind that the disk goes away in the middle.
func (l *lone) elect2(end wal.LSN) {
	l.term++
	h := l.acc.State().History.Extend(l.term, end)
	l.say(&consensus.VoteRequest{Generation: 1, Term: l.term})
	if l.lane != nil {
		l.say(&consensus.Elected{Generation: 1, Term: l.term, Resume: end, History: h})
	}
}

func (l *lone) write2(data []byte) {
	if l.lane != nil {
		l.write(data)
	}
}

// TestStoryEtcdSingleNodeAckedBeforeDurable: with one member there is nobody
// else who could have the bytes. Every acknowledgement survives a power cut at that moment.
func TestStoryEtcdSingleNodeAckedBeforeDurable(t *testing.T) {
	l := newLone(t)
	l.elect(0x1000)
	for i := range 60 {
		acked := l.write(fill(byte('a'+i%26), 100+i*37))
		log, err := storage.Open(l.config(l.disk.CrashWorst()))
		if err != nil || log.FlushLSN() < acked || acked == 0 {
			t.Fatalf("append %d: %v was acknowledged, after a power cut the log ends at %v (%v)", i, acked, log.FlushLSN(), err)
		}
		_ = log.Close(nil) // it was only looked at
	}
}

// TestStoryNATSBitFlipsOnAMinority: a flipped bit is never served, never taken
// for the end of the log, and never lets the copy vote.
func TestStoryNATSBitFlipsOnAMinority(t *testing.T) {
	l := newLone(t)
	l.elect(0x1000)
	want := []byte{}
	for i := range 40 {
		chunk := fill(byte('a'+i%26), 900)
		l.write(chunk)
		want = append(want, chunk...)
	}
	files := l.provedFiles()
	if len(files) == 0 {
		t.Fatal("no sealed segment")
	}
	for off := int64(0); off < 16<<10; off += 97 {
		disk := l.disk.CrashKeepAll()
		if disk.FlipBit(files[0], off, uint(off%8)) != nil {
			continue
		}
		log, err := storage.Open(l.config(disk))
		var corrupt *storage.CorruptionError
		if err != nil && !errors.As(err, &corrupt) {
			t.Fatalf("bit at %d: %v", off, err)
		}
		if log == nil {
			continue
		}
		if err == nil && log.FlushLSN() != 0x1000+wal.LSN(len(want)) {
			t.Fatalf("bit at %d: the log ends at %v without a word", off, log.FlushLSN())
		}
		r := log.NewReader(0x1000)
		var got []byte
		for {
			f, err := r.Next(log.FlushLSN())
			if err != nil {
				break
			}
			got = append(got, f.Chunk.Data...)
		}
		if !bytes.HasPrefix(want, got) {
			t.Fatalf("bit at %d: changed bytes were served", off)
		}
		if len(got) < len(want) && log.Health() == wal.Healthy {
			t.Fatalf("bit at %d: only %d of %d bytes can be read and the copy calls itself healthy", off, len(got), len(want))
		}
		_ = errors.Join(r.Close(), log.Close(nil)) // both were only looked at
	}
}

// TestStoryNATSOnePowerCutWithTwoPaused: two acceptors sleep, the third loses
// power. What was acknowledged by two of three is there when they wake.
func TestStoryNATSOnePowerCutWithTwoPaused(t *testing.T) {
	s := shape{nodes: 3, slots: 1, first: 0, segmentBytes: 16 << 10, windowBytes: 8 << 10, latency: millisecond, sync: millisecond, quietEvery: second, length: 20 * second}
	script := []step{{At: 0, Do: doStart}}
	for i := range 60 {
		script = append(script, step{At: second + int64(i)*10*millisecond, Do: doAppend, C: 600})
	}
	for n := range 3 {
		do := doStall
		if n == 2 {
			do = doPowerCut
		}
		script = append(script, step{At: second + 300*millisecond, Do: do, B: n, C: 1 << 19})
	}
	r := play(1, s, script, nil)
	if r.Failure != nil || r.Committed < 60*100 {
		t.Fatalf("%v, %d bytes committed", r.Failure, r.Committed)
	}
}

// TestStoryRaftWALTruncatingTheLastRecord: cutting the log at, in and just
// before its last record, at a batch's and a segment's boundary, leaves one that opens.
func TestStoryRaftWALTruncatingTheLastRecord(t *testing.T) {
	for _, back := range []wal.LSN{0, 1, 499, 500, 501, 1000, 7000} {
		for _, cut := range []func(*vfs.Mem) *vfs.Mem{restart, powerCut} {
			l := newLone(t)
			l.elect(0x1000)
			var want []byte
			for i := range 20 {
				l.write(fill(byte('a'+i), 500))
				want = append(want, fill(byte('a'+i), 500)...)
			}
			end := 0x1000 + wal.LSN(len(want)) - back
			l.elect(end)
			want = want[:end-0x1000]
			if err := l.again(cut); err != nil {
				t.Fatalf("cut by %v: %v", back, err)
			}
			l.holds(want)
			l.elect(end)
			l.write([]byte("goes on"))
			if err := l.again(cut); err != nil {
				t.Fatalf("cut by %v, written again: %v", back, err)
			}
			l.holds(append(want, "goes on"...))
		}
	}
}

// TestStoryRollingChecksumNotResetOnTruncate: what is appended after a
// truncation is there after loading, however often one follows the other.
func TestStoryRollingChecksumNotResetOnTruncate(t *testing.T) {
	l := newLone(t)
	l.elect(0x1000)
	var want []byte
	for i := range 25 {
		l.write(fill(byte('a'+i), 700))
		want = append(want, fill(byte('a'+i), 700)...)
		want = want[:len(want)-i*20]
		l.elect(0x1000 + wal.LSN(len(want)))
		l.write([]byte(fmt.Sprintf("after cut %d", i)))
		want = append(want, fmt.Sprintf("after cut %d", i)...)
		if i%5 == 4 {
			if err := l.again(powerCut); err != nil {
				t.Fatal(err)
			}
			l.holds(want)
			l.elect(0x1000 + wal.LSN(len(want)))
		}
		l.holds(want)
	}
}

// TestStoryCacheOfTheTailAfterTruncate: a reader that stands in the tail when
// it is cut and written anew gets the new bytes or an error, never the old ones.
func TestStoryCacheOfTheTailAfterTruncate(t *testing.T) {
	l := newLone(t)
	l.elect(0x1000)
	l.write(fill('a', 1500))
	r := l.log.NewReader(0x1000 + 200)
	if f, err := r.Next(0x1000 + 300); err != nil || !bytes.Equal(f.Chunk.Data, fill('a', 100)) {
		t.Fatal(f, err)
	}
	l.elect(0x1000 + 100)
	l.write(fill('b', 1400))
	var cut *storage.TruncatedError
	if f, err := r.Next(0x1000 + 1500); !errors.As(err, &cut) || cut.End != 0x1000+100 {
		t.Fatalf("a reader beneath which the log was cut gets %d bytes, %v", len(f.Chunk.Data), err)
	}
	r.Skip(0x1000 + 50)
	f, err := r.Next(0x1000 + 1500)
	if err != nil || !bytes.Equal(f.Chunk.Data, fill('a', 50)) {
		t.Fatalf("%q, %v", f.Chunk.Data, err)
	}
	if f, err = r.Next(0x1000 + 1500); err != nil || f.Chunk.Data[0] != 'b' {
		t.Fatalf("%q, %v", f.Chunk.Data, err)
	}
}

// TestStoryNeonCrashAtEveryStep: a truncation, and appends that begin new
// segments, crash at every change to the disk, with every kind of luck.
func TestStoryNeonCrashAtEveryStep(t *testing.T) {
	kinds := []func(*vfs.Mem) *vfs.Mem{powerCut, (*vfs.Mem).CrashKeepAll}
	for seed := range 6 {
		kinds = append(kinds, func(m *vfs.Mem) *vfs.Mem { return m.Crash(chance(uint64(seed), chanceCrash, 0, 0, 0)) })
	}
	for _, cut := range kinds {
		for point := 1; ; point++ {
			l := newLone(t)
			l.elect(0x1000)
			first := fill('a', 9000)
			acked := l.write(first)
			l.fault.CrashAfter(point)
			l.elect2(0x1000 + 8000)
			got := l.acc.Status()
			if l.lane != nil {
				l.write2(fill('b', 12000))
			}
			crashed, final := l.fault.Crashed(), l.acc.Status()
			if err := l.again(cut); err != nil {
				t.Fatalf("after %d changes: %v", point, err)
			}
			st, end := l.log.State(), l.log.FlushLSN()
			want := first
			if st.History.LastTerm() == 2 {
				want = append(fill('a', 8000), fill('b', 12000)...)
			} else if end != acked {
				t.Fatalf("after %d changes: %v was acknowledged, the log ends at %v", point, acked, end)
			}
			data, err := l.read(0x1000, end)
			if err != nil || !bytes.Equal(data, want[:len(data)]) || st.Term < got.Term || final.LastLogTerm == 2 && end < final.Flush {
				t.Fatalf("after %d changes: term %d of at least %d, %d bytes up to %v of at least %v: %v", point, st.Term, got.Term, len(data), end, final.Flush, err)
			}
			if !crashed {
				break
			}
		}
	}
}

// TestStoryNeonMemoryKeptAChangeWhoseWriteFailed: a vote whose write fails is
// in nobody's memory: not in the answer, not in the status, not after a restart.
func TestStoryNeonMemoryKeptAChangeWhoseWriteFailed(t *testing.T) {
	for _, op := range []vfs.Op{vfs.OpWrites, vfs.OpDatasync} {
		l := newLone(t)
		l.elect(0x1000)
		l.write(fill('a', 100))
		l.fault.Inject(vfs.Rule{Ops: op, Times: 1, Effect: vfs.Fail{Err: errors.New("input/output error")}})
		if got := l.say(&consensus.VoteRequest{Generation: 1, Term: 7}); len(got) != 0 {
			t.Fatalf("%v fails and %v is answered", op, got)
		}
		if s := l.acc.Status(); s.Term != 1 || s.Health != wal.Poisoned {
			t.Fatalf("%v fails: term %d, %v", op, s.Term, s.Health)
		}
		if l.loop.State().Term != 1 {
			t.Fatalf("%v fails: the status speaks of term %d", op, l.loop.State().Term)
		}
		if err := l.again(powerCut); err != nil {
			t.Fatal(err)
		}
		if st := l.log.State(); st.Term != 1 {
			t.Fatalf("%v fails: term %d after a restart", op, st.Term)
		}
	}
}

// TestStoryNeonAcksStalledAtASegmentBoundary: every append is acknowledged by
// the time the acceptor has nothing left to do, across many segments and at every size.
func TestStoryNeonAcksStalledAtASegmentBoundary(t *testing.T) {
	for _, size := range []int{1, 511, 512, 513, 1024, 2047, 2048} {
		l := newLone(t)
		l.elect(0x1000)
		end := wal.LSN(0x1000)
		for range 2 + 60<<10/max(size, 400) {
			end += wal.LSN(size)
			if acked := l.write(fill('x', size)); acked != end {
				t.Fatalf("appends of %d bytes: %v is acknowledged, %v was sent", size, acked, end)
			}
		}
		if size > 400 && len(l.log.Segments()) < 3 {
			t.Fatalf("appends of %d bytes filled %d segments", size, len(l.log.Segments()))
		}
	}
}
