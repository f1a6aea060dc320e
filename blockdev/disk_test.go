package blockdev

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/seed7f3f3bb8/holdfast/leftovers"
)

// need skips, or fails where a machine was said to have what it takes.
func need(t *testing.T) *leftovers.Ledger {
	t.Helper()
	if err := Available(); err != nil {
		if os.Getenv("HOLDFAST_REQUIRE_FUSE") == "1" {
			t.Fatalf("HOLDFAST_REQUIRE_FUSE is set, but: %v", err)
		}
		t.Skipf("no block devices of our own here: %v", err)
	}
	l, err := leftovers.Open(leftovers.DefaultDir(), func(err error) { t.Log(err) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// world is a disk with a file system on it.
func world(t *testing.T) (*leftovers.Ledger, *Disk, *Ext4) {
	l := need(t)
	dir := t.TempDir()
	raw, mnt := filepath.Join(dir, "raw"), filepath.Join(dir, "mnt")
	for _, d := range []string{raw, mnt} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	d, err := Start(l, raw, 32<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := MakeExt4(d.Device()); err != nil {
		t.Fatal(err)
	}
	m, err := MountExt4(l, d.Device(), mnt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Unmount(); err != nil {
			t.Error(err)
		}
	})
	return l, d, m
}

func TestFlushedBytesAreInEveryImage(t *testing.T) {
	l, d, m := world(t)
	f, err := os.Create(filepath.Join(m.Dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := errors.Join(f.Sync(), syncDir(m.Dir)); err != nil {
		t.Fatal(err)
	}
	d.Record()
	first, second := bytes.Repeat([]byte("1"), 8192), bytes.Repeat([]byte("2"), 8192)
	_, err = f.WriteAt(first, 0)
	if err = errors.Join(err, f.Sync()); err != nil {
		t.Fatal(err)
	}
	d.Mark("first")
	if _, err := f.WriteAt(second, 8192); err != nil {
		t.Fatal(err)
	}
	if err := syncRange(f); err != nil { // written, not flushed
		t.Fatal(err)
	}
	h := d.Stop()
	if h == nil || len(h.Events) < 3 {
		t.Fatalf("nothing was recorded: %+v", h)
	}
	p := NewPlayer(h)
	p.Seek(len(h.Events))
	if p.Pending() == 0 {
		t.Fatal("the second write is not pending")
	}
	image := make([]byte, len(h.Base))
	dir := t.TempDir()
	for _, fate := range []Fate{Dropped, Kept} {
		p.Image(image, func(int) Fate { return fate }, nil)
		name := filepath.Join(dir, "image")
		if err := os.WriteFile(name, image, 0o600); err != nil {
			t.Fatal(err)
		}
		mnt := filepath.Join(dir, "mnt")
		_ = os.Mkdir(mnt, 0o700)
		back, err := MountImage(l, name, mnt)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(mnt, "file"))
		if err := errors.Join(err, back.Unmount()); err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(got, first) {
			t.Errorf("fate %v: the flushed bytes are gone; %d bytes are there", fate, len(got))
		}
		if fate == Dropped && len(got) > len(first) && bytes.Contains(got, []byte("2")) {
			t.Error("a dropped write is there")
		}
	}
}

func TestAFlushThatFails(t *testing.T) {
	_, d, m := world(t)
	f, err := os.Create(filepath.Join(m.Dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	before, after := bytes.Repeat([]byte("o"), 65536), bytes.Repeat([]byte("n"), 4096)
	_, err = f.WriteAt(before, 0)
	if err = errors.Join(err, f.Sync(), syncDir(m.Dir)); err != nil {
		t.Fatal(err)
	}
	d.SetFault(Fault{FlushError: syscall.EIO, FlushLoses: true})
	if _, err := f.WriteAt(after, 8192); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fdatasync(int(f.Fd())); !errors.Is(err, syscall.EIO) {
		t.Fatalf("fdatasync on a failing disk: %v, expected EIO", err)
	}
	d.SetFault(Fault{})
	// What makes it a trap: the cache shows bytes that the disk does not have.
	got := make([]byte, 4096)
	if _, err := f.ReadAt(got, 8192); err != nil || got[0] != 'n' {
		t.Errorf("through the cache: %q, %v; expected the new bytes", got[:1], err)
	}
	direct, err := os.OpenFile(f.Name(), os.O_RDONLY|unix.O_DIRECT, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Close()
	aligned, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(aligned)
	if _, err := direct.ReadAt(aligned, 8192); err != nil || aligned[0] != 'o' {
		t.Errorf("past the cache: %q, %v; expected the old bytes", aligned[:1], err)
	}
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// syncRange writes a file's pages out without a flush of the device.
func syncRange(f *os.File) error {
	return unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE|unix.SYNC_FILE_RANGE_WAIT_BEFORE|unix.SYNC_FILE_RANGE_WAIT_AFTER)
}
