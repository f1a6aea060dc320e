package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/cli"
	"github.com/seed7f3f3bb8/holdfast/storage"
	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// writtenLog makes a closed log with one append and returns its directory.
func writtenLog(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "prod", "main")
	cfg := storage.Config{FS: vfs.OS{}, Dir: dir}
	st := wal.State{
		Creation: wal.CreationID{1}, Term: 2, VotedFor: wal.ProposerID{7},
		Membership: wal.Membership{Generation: 1, Members: []wal.Member{{ID: 1, Addr: "a:1"}}},
		History:    wal.History{{Term: 2, LSN: 0}},
	}
	if err := storage.Create(cfg, st); err != nil {
		t.Fatal(err)
	}
	l, err := storage.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Prepare(); err != nil {
		t.Fatal(err)
	}
	data := []byte("one append that is easy to find")
	if err := l.Append(2, 0, []wal.Chunk{{CRC: wal.Checksum(data), Data: data}}, false); err != nil {
		t.Fatal(err)
	}
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(&st); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestDumpShowsDamageAndChangesNothing(t *testing.T) {
	dir := writtenLog(t)
	code, out, talk := invoke(t, nil, "dump", "--frames", filepath.Dir(filepath.Dir(dir)))
	if code != cli.OK || !strings.Contains(out, "data   seq") || !strings.Contains(out, "term 2 from 0/0") {
		t.Fatalf("code %d\n%s\n%s", code, out, talk)
	}

	names, _ := filepath.Glob(filepath.Join(dir, "*"+segmentSuffix))
	damaged := false
	before := map[string]string{}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if at := strings.Index(string(b), "easy to find"); at >= 0 {
			b[at] ^= 1
			damaged = true
			if err := os.WriteFile(name, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		before[name] = string(b)
	}
	if !damaged {
		t.Fatal("the append is in no file")
	}
	code, out, talk = invoke(t, nil, "dump", dir)
	if code != cli.Corruption || !strings.Contains(out, "DAMAGED PAYLOAD") {
		t.Errorf("code %d\n%s\n%s", code, out, talk)
	}
	for name, want := range before {
		if b, _ := os.ReadFile(name); string(b) != want {
			t.Errorf("dump changed %s", name)
		}
	}
	if code, _, _ := invoke(t, nil, "dump", t.TempDir()); code != cli.NotFound {
		t.Errorf("an empty directory: code %d", code)
	}
}
