package workload

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/bridge/pgwal"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// segmentDir writes n segment files of 1 MiB from position 0/300000 on.
func segmentDir(t *testing.T, n int) string {
	t.Helper()
	dir := t.TempDir()
	p := NewPayloads(5)
	for i := range n {
		b := make([]byte, 1<<20)
		p.Fill(uint64(i), b)
		name := pgwal.SegmentBytes(1<<20).FileName(1, wal.LSN(3+i)<<20)
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	os.WriteFile(filepath.Join(dir, "README"), []byte("not WAL"), 0o600)
	return dir
}

func TestFeedResumesAndExportIsIdentical(t *testing.T) {
	dir := segmentDir(t, 3)
	files, err := OpenSegmentFiles(dir)
	if err != nil || files.Begin != 3<<20 || files.End != 6<<20 || files.Size != 1<<20 {
		t.Fatalf("%v, %+v", err, files)
	}
	log := &memoryLog{first: files.Begin, failAt: 7, failWith: errors.New("proposer gone")}
	feed := Feed{Files: files, Chunk: 200_000}
	var m FeedMeter
	if err := feed.Run(t.Context(), log, files.Begin, &m); err == nil || err.Error() != "proposer gone" {
		t.Fatalf("an interrupted feed ended with %v", err)
	}
	if err := feed.Run(t.Context(), log, log.first+wal.LSN(len(log.data)), &m); err != nil {
		t.Fatal(err)
	}
	if m.Acked.Load() != uint64(files.End) || len(log.data) != 3<<20 {
		t.Fatalf("acked %v, %d bytes", wal.LSN(m.Acked.Load()), len(log.data))
	}

	out := filepath.Join(t.TempDir(), "out")
	x, err := NewExport(out, 1, files.Size, files.Begin)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(log.data); at += 300_001 {
		if err := x.Chunk(wal.Chunk{Begin: log.first + wal.LSN(at), Data: log.data[at:min(at+300_001, len(log.data))]}); err != nil {
			t.Fatal(err)
		}
	}
	made, err := x.Close()
	if err != nil || len(made) != 3 {
		t.Fatalf("%v, %v", err, made)
	}
	for _, f := range made {
		got, _ := os.ReadFile(f)
		want, _ := os.ReadFile(filepath.Join(dir, filepath.Base(f)))
		if sha256.Sum256(got) != sha256.Sum256(want) {
			t.Errorf("%s is not the original", f)
		}
	}
}

func TestExportPadsWithZeroes(t *testing.T) {
	out := t.TempDir()
	x, err := NewExport(out, 2, 1<<20, 1<<20+100)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Chunk(wal.Chunk{Begin: 1<<20 + 100, Data: []byte("hello")}); err != nil {
		t.Fatal(err)
	}
	if err := x.Chunk(wal.Chunk{Begin: 1<<20 + 106, Data: []byte("gap")}); err == nil {
		t.Error("a gap was exported")
	}
	made, err := x.Close()
	if err != nil || len(made) != 1 || filepath.Base(made[0]) != "000000020000000000000001" {
		t.Fatalf("%v, %v", err, made)
	}
	got, _ := os.ReadFile(made[0])
	want := make([]byte, 1<<20)
	copy(want[100:], "hello")
	if !bytes.Equal(got, want) {
		t.Error("the padding is not zeroes")
	}
}

func TestOpenSegmentFilesRefuses(t *testing.T) {
	gap := segmentDir(t, 3)
	os.Remove(filepath.Join(gap, "000000010000000000000004"))
	if _, err := OpenSegmentFiles(gap); err == nil {
		t.Error("a missing file was not noticed")
	}
	short := segmentDir(t, 1)
	os.Truncate(filepath.Join(short, "000000010000000000000003"), 1<<19)
	if _, err := OpenSegmentFiles(short); err == nil {
		t.Error("a short file was not noticed")
	}
	if _, err := OpenSegmentFiles(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an empty directory: %v", err)
	}
}
