package vfs

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func openForTest(t testing.TB, fsys FS, name string) File {
	t.Helper()
	f, err := fsys.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() }) // some tests close it themselves
	return f
}

// A vector longer than the kernel takes in one call, with empty buffers
// everywhere, arrives whole and in order.
func TestOSWritevBeyondVectorLimit(t *testing.T) {
	for _, buffers := range []int{0, 1, 2, iovecsMax - 1, iovecsMax, iovecsMax + 1, 3*iovecsMax + 7} {
		f := openForTest(t, OS{}, filepath.Join(t.TempDir(), "f"))
		var bufs [][]byte
		var want []byte
		bufs = append(bufs, nil, []byte{})
		for i := range buffers {
			b := bytes.Repeat([]byte{byte(i), byte(i >> 8)}, 1+i%5)
			bufs = append(bufs, b)
			if i%3 == 0 {
				bufs = append(bufs, nil)
			}
			want = append(want, b...)
		}
		if err := f.WritevAt(bufs, 5); err != nil {
			t.Fatalf("%d buffers: %v", buffers, err)
		}
		got := make([]byte, len(want))
		if _, err := f.ReadAt(got, 5); err != nil {
			t.Fatalf("%d buffers: %v", buffers, err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%d buffers: what was read is not what was written", buffers)
		}
	}
}

// The place where a short write stopped is found again, wherever it fell.
func TestOSWritevGatherAfterShortWrite(t *testing.T) {
	bufs := [][]byte{[]byte("ab"), nil, []byte("cde"), []byte("f")}
	want := "abcdef"
	for skip := 0; skip <= len(bufs[0]); skip++ {
		f := &osFile{}
		f.gather(bufs, skip)
		var got []byte
		for _, v := range f.iovecs {
			got = append(got, unsafeBytes(v)...)
		}
		if string(got) != want[skip:] {
			t.Errorf("skip %d: gathered %q, want %q", skip, got, want[skip:])
		}
	}
}

// unsafeBytes is the buffer that v points at.
func unsafeBytes(v unix.Iovec) []byte { return unsafe.Slice(v.Base, v.Len) }

func TestOSWritesDoNotAllocate(t *testing.T) {
	f := openForTest(t, OS{}, filepath.Join(t.TempDir(), "f"))
	bufs := make([][]byte, 100)
	for i := range bufs {
		bufs[i] = make([]byte, 64)
	}
	allocs := testing.AllocsPerRun(50, func() {
		if err := f.WritevAt(bufs, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(bufs[0], 0); err != nil {
			t.Fatal(err)
		}
		if _, err := f.ReadAt(bufs[1], 0); err != nil {
			t.Fatal(err)
		}
	})
	if allocs != 0 {
		t.Errorf("WritevAt, WriteAt and ReadAt made %v allocations, want 0", allocs)
	}
}

// A descriptor that is used after Close may be another file's by then.
func TestOSClosedFileIsDead(t *testing.T) {
	dir := t.TempDir()
	f := openForTest(t, OS{}, filepath.Join(dir, "f"))
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	heir := openForTest(t, OS{}, filepath.Join(dir, "heir")) // takes the number over
	if err := f.WritevAt([][]byte{[]byte("stray")}, 0); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("write after Close: %v, want fs.ErrClosed", err)
	}
	if size, err := heir.Size(); err != nil || size != 0 {
		t.Errorf("the next file has %d bytes (%v), want none", size, err)
	}
	if err := f.Close(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("second Close: %v, want fs.ErrClosed", err)
	}
}

func TestOSModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := (OS{}).MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	openForTest(t, OS{}, filepath.Join(dir, "f"))
	for name, want := range map[string]uint32{dir: 0o700, filepath.Dir(dir): 0o700, filepath.Join(dir, "f"): 0o600} {
		var st unix.Stat_t
		if err := unix.Stat(name, &st); err != nil {
			t.Fatal(err)
		}
		if got := st.Mode & 0o777; got != want {
			t.Errorf("%s: mode %o, want %o", name, got, want)
		}
	}
}

// The second descriptor is of the same file even when its name has moved on.
func TestOSReadAtUncachedAfterRename(t *testing.T) {
	dir := t.TempDir()
	f := openForTest(t, OS{}, filepath.Join(dir, "f"))
	want := bytes.Repeat([]byte("0123456789"), 300_000) // beyond one buffer
	if _, err := f.WriteAt(want, 0); err != nil {
		t.Fatal(err)
	}
	if err := (OS{}).Rename(filepath.Join(dir, "f"), filepath.Join(dir, "g")); err != nil {
		t.Fatal(err)
	}
	openForTest(t, OS{}, filepath.Join(dir, "f"))
	for _, off := range []int{0, 1, 511, 512, 4095, 4096, 4097, directBytesMax - 1, directBytesMax + 1} {
		got := make([]byte, len(want)-off)
		if n, err := f.ReadAtUncached(got, int64(off)); err != nil || n != len(got) || !bytes.Equal(got, want[off:]) {
			t.Errorf("offset %d: %d bytes, %v; want %d equal ones", off, n, err, len(got))
		}
	}
}

// threadIO is one of the kernel's counts of what this thread has read and
// written; the test is skipped where there is none.
func threadIO(t *testing.T, field string) int {
	t.Helper()
	text, err := os.ReadFile("/proc/thread-self/io")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, field+": "); ok {
			n, err := strconv.Atoi(strings.TrimSpace(value))
			must(t, err)
			return n
		}
	}
	t.Skipf("no %s in %q", field, text)
	return 0
}

// As many buffers as the kernel takes go with one system call, one more with two.
func TestOSWritevSystemCalls(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f := openForTest(t, OS{}, filepath.Join(t.TempDir(), "f"))
	for buffers, want := range map[int]int{0: 0, 1: 1, iovecsMax: 1, iovecsMax + 1: 2} {
		bufs := make([][]byte, buffers)
		for i := range bufs {
			bufs[i] = []byte{1}
		}
		before := threadIO(t, "syscw")
		must(t, f.WritevAt(bufs, 0))
		if got := threadIO(t, "syscw") - before; got != want {
			t.Errorf("%d buffers: %d system calls, want %d", buffers, got, want)
		}
	}
}

// An uncached read fetches from the device what is in the cache as well, and
// leaves it to the next cached read to fetch it, too.
func TestOSReadAtUncachedGoesToTheDevice(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	dir := t.TempDir()
	var st unix.Statfs_t
	must(t, unix.Statfs(dir, &st))
	switch st.Type {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC:
	default:
		t.Skipf("file system %#x may have no device", st.Type)
	}
	f := openForTest(t, OS{}, filepath.Join(dir, "f"))
	must(t, f.WritevAt([][]byte{make([]byte, 64<<10)}, 0))
	must(t, f.Datasync())
	fetches := func(read func([]byte, int64) (int, error)) bool {
		before := threadIO(t, "read_bytes")
		if _, err := read(make([]byte, 4), 8192); err != nil {
			t.Fatal(err)
		}
		return threadIO(t, "read_bytes") > before
	}
	if fetches(f.ReadAt) {
		t.Skip("what was just written is not in the cache")
	}
	if !fetches(f.ReadAtUncached) {
		t.Error("ReadAtUncached read nothing from the device")
	}
	if !fetches(f.ReadAt) {
		t.Error("the cache still had the page after it")
	}
}
