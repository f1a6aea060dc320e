package storage

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"reflect"
	"strings"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	must(t, err)
	return b
}

// The bytes of format version 1. If one of these has to change, so has the version.
func TestGoldenSegmentHeader(t *testing.T) {
	h := segmentHeader{number: 7, nonce: 0x1122334455667788, size: 64 << 20}
	want := unhex(t, `
		484f4c4446415354 431c7f09 01000000
		0700000000000000 8877665544332211 0000000400000000`)
	got := h.encode()
	if len(got) != 512 || !bytes.Equal(got[:40], want) || !bytes.Equal(got[40:], make([]byte, 472)) {
		t.Errorf("header is\n%x, want\n%x", got[:40], want)
	}
	if back, err := decodeSegmentHeader(got); err != nil || back != h {
		t.Errorf("decoded %+v, %v", back, err)
	}
}

func TestGoldenDataFrame(t *testing.T) {
	data := []byte("holdfast!")
	h := frameHeader{
		payloadCRC: wal.Checksum(data), nonce: 0x1122334455667788, segment: 7, seq: 42, durable: 40,
		term: 3, lsn: 0x16B3748, commit: 0x16B3700, length: 9, kind: kindData,
	}
	want := unhex(t, `
		0cb71993 51ccf580 8877665544332211 0700000000000000 2a00000000000000 2800000000000000
		0300000000000000 48376b0100000000 00376b0100000000 09000000 01 00 0000`)
	got := make([]byte, frameHeaderBytes)
	h.put(got)
	if !bytes.Equal(got, want) {
		t.Errorf("frame is\n%x, want\n%x", got, want)
	}
	if back, ok := decodeFrameHeader(got); !ok || back != h || back.end() != 0x16B3751 {
		t.Errorf("decoded %+v, %v", back, ok)
	}
}

func goldenState() *logState {
	st := testState()
	st.SystemID, st.Term, st.VotedFor = 0xABCD, 9, wal.ProposerID{0xEE}
	st.History = wal.History{{Term: 2, LSN: 0x1000}, {Term: 9, LSN: 0x2000}}
	st.Properties = []byte("props")
	st.Membership.Members = st.Membership.Members[:1]
	st.Membership.NewMembers = []wal.Member{{ID: 4, Addr: "d:22"}}
	st.Commit, st.Horizon = 0x1F00, 0x1E00
	return &logState{State: st, trim: 0x1D00, oldest: 5, prevLow: 0x1C00, prevTruncs: 2}
}

func TestGoldenState(t *testing.T) {
	s := goldenState()
	want := unhex(t, `
		001d000000000000 0500000000000000 001c000000000000 02000000 00000000
		01020300000000000000000000000000 cdab000000000000 0010000000000000
		0900000000000000 ee000000000000000000000000000000 001f000000000000 001e000000000000
		0100000000000000 0100 0100 02000000 05000000 00000000
		0100000000000000 0300 613a31
		0400000000000000 0400 643a3232
		0200000000000000 0010000000000000 0900000000000000 0020000000000000
		70726f7073`)
	got := s.appendTo(nil)
	if !bytes.Equal(got, want) || len(got) != s.size() {
		t.Errorf("state is\n%x, want\n%x", got, want)
	}
	back, err := decodeState(got, 0x2000)
	if err != nil || !reflect.DeepEqual(back, s) {
		t.Errorf("decoded %+v, %v", back, err)
	}
	for n := range got {
		if _, err := decodeState(got[:n], 0x2000); err == nil {
			t.Errorf("%d of %d bytes were decoded", n, len(got))
		}
	}
	if _, err := decodeState(got, 0x1EFF); err == nil {
		t.Error("a commit above the log's end was decoded")
	}
}

func TestStateBytesMaxHoldsTheLargestState(t *testing.T) {
	var s logState
	for i := range wal.HistoryMax {
		s.History = append(s.History, wal.Position{Term: wal.Term(i + 1), LSN: wal.LSN(i)})
	}
	for i := range wal.MembersMax {
		s.Membership.Members = append(s.Membership.Members, wal.Member{ID: wal.NodeID(i + 1), Addr: strings.Repeat("a", addrBytesMax)})
	}
	s.Membership.NewMembers = s.Membership.Members
	s.Properties = make([]byte, wal.PropertiesBytesMax)
	if err := s.validate(1 << 20); err != nil || s.size() != stateBytesMax {
		t.Errorf("the largest state takes %d bytes, expected %d (%v)", s.size(), stateBytesMax, err)
	}
}

func FuzzDecodeState(f *testing.F) {
	f.Add(goldenState().appendTo(nil), uint64(0x2000))
	f.Add((&logState{}).appendTo(nil), uint64(0))
	f.Fuzz(func(t *testing.T, b []byte, end uint64) {
		s, err := decodeState(b, wal.LSN(end))
		if err != nil {
			return
		}
		again := s.appendTo(nil)
		if len(again) != len(b) || s.size() != len(b) {
			t.Fatalf("%d bytes became %d", len(b), len(again))
		}
		if back, err := decodeState(again, wal.LSN(end)); err != nil || !reflect.DeepEqual(back, s) {
			t.Fatalf("%+v became %+v, %v", s, back, err)
		}
	})
}

// FuzzFrameScan: no bytes make the cursor panic, go round in circles, show a
// frame twice, or hold more than its window and the file.
func FuzzFrameScan(f *testing.F) {
	frame := make([]byte, 256)
	h := frameHeader{payloadCRC: wal.Checksum(frame[:9]), nonce: 5, segment: 7, seq: 42, durable: 40, lsn: 1, length: 9, kind: kindData}
	h.put(frame)
	f.Add(frame, uint64(5), uint64(0), false)
	f.Add(append(frame[:88:88], frame...), uint64(5), uint64(42), true)
	f.Fuzz(func(t *testing.T, b []byte, nonce, seq uint64, anyLife bool) {
		mem := vfs.NewMem()
		file, err := mem.Create("f")
		must(t, err)
		_, err = file.WriteAt(b, 0)
		must(t, err)
		var c cursor
		c.start(file, 7, nonce, 0, seq, int64(len(b)))
		c.anyLife = anyLife
		last := int64(-1)
		for {
			fr, ok := c.next()
			if !ok {
				if fr, ok = c.resync(); !ok {
					break
				}
			}
			if fr.off <= last || fr.off+frameHeaderBytes > int64(len(b)) {
				t.Fatalf("a frame at %d after one at %d in %d bytes", fr.off, last, len(b))
			}
			last = fr.off
			if p, intact := c.payload(fr); intact && wal.Checksum(p) != fr.payloadCRC {
				t.Fatal("a damaged payload is called intact")
			}
		}
		if cap(c.win.buf) > len(b)+aheadBytesMax {
			t.Fatalf("%d bytes of buffer for %d bytes", cap(c.win.buf), len(b))
		}
	})
}

// fuzzLog is the two segments of a small log with a truncation.
func fuzzLog(f *testing.F) [2][]byte {
	mem := vfs.NewMem()
	cfg := testConfig(mem)
	must(f, mem.MkdirAll("data"))
	must(f, Create(cfg, testState()))
	l, err := Open(cfg)
	must(f, err)
	must(f, l.Prepare())
	write(f, l, 1, 100, 200)
	write(f, l, 1, 300)
	st := l.State()
	st.Term = 5
	must(f, l.SaveState(&st, 0x1000+350))
	must(f, l.Sync())
	write(f, l, 5, 30)
	var image [2][]byte
	for i := range image {
		file, err := mem.OpenRead(l.file(segmentName(uint64(i + 1))))
		must(f, err)
		n, _ := file.Size()
		image[i] = make([]byte, min(n, 4096))
		_, err = file.ReadAt(image[i], 0)
		must(f, err)
	}
	return image
}

// FuzzRecovery: opening whatever is there never panics, and what it serves has
// its checksums and ends where it says.
func FuzzRecovery(f *testing.F) {
	seeds := fuzzLog(f)
	f.Add(seeds[0], seeds[1])
	f.Add(seeds[0], []byte{})
	f.Add([]byte{}, seeds[1])
	f.Add(seeds[1], seeds[0])
	f.Fuzz(recoverAnything)
}

func recoverAnything(t *testing.T, first, second []byte) {
	mem := vfs.NewMem()
	cfg := testConfig(mem)
	must(t, mem.MkdirAll(testDir))
	for i, b := range [][]byte{first, second} {
		file, err := mem.Create(testDir + "/" + segmentName(uint64(i+1)))
		must(t, err)
		_, err = file.WriteAt(b, 0)
		must(t, err)
	}
	l, _ := Open(cfg)
	must(t, Inspect(mem, testDir, func(FileInfo) error { return nil }, func(FrameInfo) error { return nil }))
	if l == nil {
		return
	}
	defer l.Close(nil)
	r := l.NewReader(l.OldestLSN())
	defer r.Close()
	for range 1000 {
		fr, err := r.Next(EndUnknown)
		if err != nil {
			break
		}
		if !fr.Chunk.Intact() || len(fr.Chunk.Data) == 0 || fr.Chunk.End() > l.FlushLSN() {
			t.Fatalf("served %d bytes at %v of a log that ends at %v", len(fr.Chunk.Data), fr.Chunk.Begin, l.FlushLSN())
		}
	}
	s := l.NewScrubber()
	defer s.Close()
	for range 1000 {
		if _, _, done, err := s.Step(4096); done || err != nil {
			break
		}
	}
	if l.Err() == nil && l.Prepare() == nil && makeRoom(l, 1, 10) == nil {
		_ = l.Append(9, 0, []wal.Chunk{chunk(9, l.WriteLSN(), 10)}, false)
	}
}

// FuzzRecoveryOfForgeries: like FuzzRecovery, with headers and states that have
// been changed and carry right checksums all the same. Each edit is five bytes: file
// and frame, offset in header and payload, and a value to put there.
func FuzzRecoveryOfForgeries(f *testing.F) {
	image := fuzzLog(f)
	var frames [2][]int64
	for i := range image {
		for off := int64(sectorBytes); off+frameHeaderBytes <= int64(len(image[i])); off += 8 {
			if _, ok := decodeFrameHeader(image[i][off:]); ok {
				frames[i] = append(frames[i], off)
			}
		}
	}
	f.Add([]byte{3, 24, 9, 3, 56})
	f.Add([]byte{1, 72, 255, 2, 200, 0, 64, 17})
	f.Fuzz(func(t *testing.T, edits []byte) {
		files := [2][]byte{bytes.Clone(image[0]), bytes.Clone(image[1])}
		for ; len(edits) >= 5; edits = edits[5:] {
			i := edits[0] & 1
			off := frames[i][int(edits[0]>>1)%len(frames[i])]
			b := files[i][off:]
			n := frameHeaderBytes + int64(binary.LittleEndian.Uint32(b[64:]))
			copy(b[int64(edits[1])|int64(edits[2]&1)<<8:], edits[3:5])
			if n = min(n, int64(len(b))); n > frameHeaderBytes {
				binary.LittleEndian.PutUint32(b[4:], checksum(b[frameHeaderBytes:n]))
			}
			binary.LittleEndian.PutUint32(b, checksum(b[4:frameHeaderBytes]))
		}
		recoverAnything(t, files[0], files[1])
	})
}
