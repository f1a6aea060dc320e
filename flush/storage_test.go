package flush

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/consensus"
	"github.com/seed7f3f3bb8/holdfast/storage"
	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// disk is the loop over the real storage on a disk in memory.
type disk struct {
	t      *testing.T
	mem    *vfs.Mem
	random *rand.Rand
	log    *storage.Log
	loop   *Loop
	lane   *Lane
	acks   *ackStream
	term   wal.Term
	bytes  []byte // from firstLSN, as the proposer has sent them
	proven int    // of these, acknowledged: never to be lost
}

// ackStream notes the highest acknowledged position.
type ackStream struct {
	fakeStream
	acked   wal.LSN
	granted wal.Term
}

func (s *ackStream) Send(m consensus.Message) error {
	switch m := m.(type) {
	case *consensus.AppendResponse:
		s.acked = max(s.acked, m.Flush)
	case *consensus.VoteResponse:
		if m.Granted {
			s.granted = m.Term
		}
	}
	return nil
}

func smallStorage(mem *vfs.Mem, random *rand.Rand) storage.Config {
	return storage.Config{
		FS: mem, Dir: "node/t/l", Rand: randomReader{random},
		FirstSegmentBytes: 16 << 10, SegmentBytes: 16 << 10, RequestBytesMax: 2 << 10, StateBytesMax: 1 << 10, StateReserveBytes: 6 << 10,
	}
}

type randomReader struct{ *rand.Rand }

func (r randomReader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r.Uint32())
	}
	return len(p), nil
}

// open makes a loop from what is on the disk.
func (d *disk) open() {
	log, err := storage.Open(smallStorage(d.mem, d.random))
	if err != nil {
		d.t.Fatal(err)
	}
	d.log = log
	acc := consensus.NewAcceptor(consensus.AcceptorConfig{Node: 1, Timeline: timeline, RequestBytesMax: 2 << 10}, log.State(), log.FlushLSN(), log.Health())
	d.loop = NewLoop(Config{Acceptor: acc, Log: log, Pool: NewPool(64 << 20), InboxBytes: 1 << 20, Clock: func() int64 { return 0 }, BatchBytesMax: 5 << 10})
}

// lead wins the next term, which cuts the log at cut.
func (d *disk) lead(cut int) {
	d.term++
	d.acks = &ackStream{}
	d.lane = d.loop.Open(d.acks)
	put(d.t, d.lane, &consensus.Greeting{Version: consensus.Version, Timeline: timeline, Creation: creation, Proposer: wal.ProposerID{byte(d.term), byte(d.term >> 8)}, Connection: 1, Membership: members})
	put(d.t, d.lane, &consensus.VoteRequest{Generation: 1, Term: d.term})
	d.turn()
	start := firstLSN + wal.LSN(cut)
	history := d.loop.State().History.Extend(d.term, start)
	put(d.t, d.lane, &consensus.Elected{Generation: 1, Term: d.term, Resume: start, History: history})
	d.bytes, d.proven = d.bytes[:cut], min(d.proven, cut)
	d.turn()
}

// turn turns the loop until it has nothing to do, making segments as they are
// asked for, and checks after every turn that what was acknowledged would
// survive a power cut now.
func (d *disk) turn() {
	for {
		switch d.loop.Turn() {
		case Idle:
			return
		case Blocked:
			if err := d.log.Prepare(); err != nil {
				d.t.Fatal(err)
			}
			continue
		}
		if d.acks.err != nil {
			d.t.Fatal(d.acks.err)
		}
		d.proven = max(d.proven, int(d.acks.acked)-int(firstLSN))
		d.survives(d.mem.CrashWorst())
		if d.random.IntN(10) == 0 {
			d.survives(d.mem.Crash(d.random))
		}
	}
}

// survives opens what a power cut left and compares.
func (d *disk) survives(left *vfs.Mem) {
	d.t.Helper()
	log, err := storage.Open(smallStorage(left, d.random))
	if err != nil {
		d.t.Fatal(err)
	}
	defer log.Close(nil)
	if got := log.State().Term; got < d.acks.granted {
		d.t.Fatalf("term %d after a crash, a vote was given in term %d", got, d.acks.granted)
	}
	if n := int(log.FlushLSN() - firstLSN); n < d.proven {
		d.t.Fatalf("%d bytes after a crash, %d were acknowledged", n, d.proven)
	}
	r := log.NewReader(firstLSN)
	defer r.Close()
	at := 0
	for at < d.proven {
		f, err := r.Next(firstLSN + wal.LSN(d.proven))
		if err == io.EOF {
			break
		}
		if err != nil {
			d.t.Fatal(err)
		}
		if !bytes.Equal(f.Chunk.Data, d.bytes[at:at+len(f.Chunk.Data)]) {
			d.t.Fatalf("other bytes at %d", at)
		}
		at += len(f.Chunk.Data)
	}
	if at != d.proven {
		d.t.Fatalf("%d of %d acknowledged bytes are read after a crash", at, d.proven)
	}
}

// TestAcknowledgedBytesSurvive drives random work over the real storage:
// batches of random shapes, elections that cut the log, quiet times, restarts with and
// without a power cut. At every step, what was acknowledged is on the disk.
func TestAcknowledgedBytesSurvive(t *testing.T) {
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 1))
		d := &disk{t: t, mem: vfs.NewMem(), random: random, acks: &ackStream{}}
		st := wal.State{Creation: creation, FirstLSN: firstLSN, Membership: members, Commit: firstLSN, Horizon: firstLSN}
		if err := storage.Create(smallStorage(d.mem, random), st); err != nil {
			t.Fatal(err)
		}
		d.open()
		d.lead(0)
		for range 150 {
			switch random.IntN(20) {
			case 0:
				d.lane.Close()
				d.turn()
				commit := int(d.loop.Positions().Commit - firstLSN)
				d.lead(commit + random.IntN(len(d.bytes)-commit+1))
			case 1:
				d.loop.Post(Quiet(nil))
			case 2:
				d.lane.Close()
				d.turn()
				_ = d.log.Close(nil)
				d.mem = d.mem.Crash(random)
				d.open()
				kept := int(d.log.FlushLSN() - firstLSN)
				d.lead(kept)
			case 3, 4:
				if err := d.log.Prepare(); err != nil {
					t.Fatal(err)
				}
			default:
				for range 1 + random.IntN(8) {
					data := make([]byte, 1+random.IntN(2<<10))
					randomReader{random}.Read(data)
					r := request(d.term, firstLSN+wal.LSN(len(d.bytes)), string(data))
					r.Commit -= min(r.Commit-firstLSN, wal.LSN(random.IntN(20<<10)))
					d.bytes = append(d.bytes, data...)
					put(t, d.lane, r)
				}
			}
			d.turn()
		}
		if d.loop.Positions().Flush != firstLSN+wal.LSN(len(d.bytes)) {
			t.Errorf("seed %d: flush %v after %d bytes", seed, d.loop.Positions().Flush, len(d.bytes))
		}
		_ = d.log.Close(nil)
	}
}
