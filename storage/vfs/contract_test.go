package vfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"reflect"
	"syscall"
	"testing"
)

// forEachFS runs a test on the real file system, in memory, and in memory
// behind an injector without rules: what a caller sees must be the same.
func forEachFS(t *testing.T, test func(t *testing.T, fsys FS, dir string)) {
	t.Run("OS", func(t *testing.T) { test(t, OS{}, t.TempDir()) })
	t.Run("Mem", func(t *testing.T) { test(t, newMemWith(t, "/data"), "/data") })
	t.Run("Fault", func(t *testing.T) { test(t, NewFault(newMemWith(t, "/data")), "/data") })
}

func newMemWith(t testing.TB, dirs ...string) *Mem {
	t.Helper()
	m := NewMem()
	for _, d := range dirs {
		if err := m.MkdirAll(d); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.SyncDir("/"); err != nil {
		t.Fatal(err)
	}
	return m
}

func writeFile(t testing.TB, fsys FS, name, content string) {
	t.Helper()
	f, err := fsys.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte(content), 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func readFile(t testing.TB, fsys FS, name string) string {
	t.Helper()
	f, err := fsys.OpenRead(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, size)
	if n, err := f.ReadAt(p, 0); err != nil {
		t.Fatalf("%s: %d of %d bytes: %v", name, n, size, err)
	}
	return string(p)
}

// Which error an operation gives is part of the contract: callers branch on it.
func TestErrors(t *testing.T) {
	// In every case d is a directory with file d/f, e an empty directory, f a file.
	open := func(open func(string) (File, error), name string) error {
		f, err := open(name)
		if err == nil {
			f.Close()
		}
		return err
	}
	tests := []struct {
		name string
		do   func(fsys FS, at func(string) string) error
		want error // nil: it works
	}{
		{"create", func(v FS, at func(string) string) error { return open(v.Create, at("new")) }, nil},
		{"create taken", func(v FS, at func(string) string) error { return open(v.Create, at("f")) }, syscall.EEXIST},
		{"create taken by directory", func(v FS, at func(string) string) error { return open(v.Create, at("d")) }, syscall.EEXIST},
		{"create in nothing", func(v FS, at func(string) string) error { return open(v.Create, at("x/new")) }, syscall.ENOENT},
		{"create in file", func(v FS, at func(string) string) error { return open(v.Create, at("f/new")) }, syscall.ENOTDIR},
		{"open", func(v FS, at func(string) string) error { return open(v.Open, at("d/f")) }, nil},
		{"open missing", func(v FS, at func(string) string) error { return open(v.Open, at("x")) }, syscall.ENOENT},
		{"open directory", func(v FS, at func(string) string) error { return open(v.Open, at("d")) }, syscall.EISDIR},
		{"open through file", func(v FS, at func(string) string) error { return open(v.Open, at("f/x")) }, syscall.ENOTDIR},
		{"open for reading missing", func(v FS, at func(string) string) error { return open(v.OpenRead, at("x")) }, syscall.ENOENT},
		{"open directory for reading", func(v FS, at func(string) string) error { return open(v.OpenRead, at("d")) }, syscall.EISDIR},
		{"write without right", func(v FS, at func(string) string) error {
			f, err := v.OpenRead(at("f"))
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteAt([]byte("x"), 0)
			if errv := f.WritevAt([][]byte{{1}}, 0); !errors.Is(errv, err.(*fs.PathError).Err) {
				return fmt.Errorf("WritevAt gives %w, WriteAt %w", errv, err)
			}
			return err
		}, syscall.EBADF},
		{"write before the beginning", func(v FS, at func(string) string) error {
			f, err := v.Open(at("f"))
			if err != nil {
				return err
			}
			defer f.Close()
			return f.WritevAt([][]byte{{1}}, -1)
		}, syscall.EINVAL},
		{"read before the beginning", func(v FS, at func(string) string) error {
			f, err := v.Open(at("f"))
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.ReadAt(make([]byte, 1), -1)
			return err
		}, syscall.EINVAL},
		{"read uncached before the beginning", func(v FS, at func(string) string) error {
			f, err := v.Open(at("f"))
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.ReadAtUncached(make([]byte, 1), -1)
			return err
		}, syscall.EINVAL},
		{"rename", func(v FS, at func(string) string) error { return v.Rename(at("f"), at("d/g")) }, nil},
		{"rename over", func(v FS, at func(string) string) error { return v.Rename(at("f"), at("d/f")) }, nil},
		{"rename to itself", func(v FS, at func(string) string) error { return v.Rename(at("f"), at("f")) }, nil},
		{"rename directory", func(v FS, at func(string) string) error { return v.Rename(at("d"), at("g")) }, nil},
		{"rename directory over empty one", func(v FS, at func(string) string) error { return v.Rename(at("d"), at("e")) }, nil},
		{"rename directory over full one", func(v FS, at func(string) string) error { return v.Rename(at("e"), at("d")) }, syscall.ENOTEMPTY},
		{"rename missing", func(v FS, at func(string) string) error { return v.Rename(at("x"), at("g")) }, syscall.ENOENT},
		{"rename into nothing", func(v FS, at func(string) string) error { return v.Rename(at("f"), at("x/g")) }, syscall.ENOENT},
		{"rename into file", func(v FS, at func(string) string) error { return v.Rename(at("d"), at("f/g")) }, syscall.ENOTDIR},
		{"rename file over directory", func(v FS, at func(string) string) error { return v.Rename(at("f"), at("e")) }, syscall.EISDIR},
		{"rename directory over file", func(v FS, at func(string) string) error { return v.Rename(at("e"), at("f")) }, syscall.ENOTDIR},
		{"rename directory into itself", func(v FS, at func(string) string) error { return v.Rename(at("d"), at("d/g")) }, syscall.EINVAL},
		{"rename over own directory", func(v FS, at func(string) string) error { return v.Rename(at("d/f"), at("d")) }, syscall.ENOTEMPTY},
		{"remove", func(v FS, at func(string) string) error { return v.Remove(at("f")) }, nil},
		{"remove empty directory", func(v FS, at func(string) string) error { return v.Remove(at("e")) }, nil},
		{"remove full directory", func(v FS, at func(string) string) error { return v.Remove(at("d")) }, syscall.ENOTEMPTY},
		{"remove missing", func(v FS, at func(string) string) error { return v.Remove(at("x")) }, syscall.ENOENT},
		{"remove through file", func(v FS, at func(string) string) error { return v.Remove(at("f/x")) }, syscall.ENOTDIR},
		{"mkdir", func(v FS, at func(string) string) error { return v.MkdirAll(at("p/q/r")) }, nil},
		{"mkdir existing", func(v FS, at func(string) string) error { return v.MkdirAll(at("d")) }, nil},
		{"mkdir over file", func(v FS, at func(string) string) error { return v.MkdirAll(at("f")) }, syscall.ENOTDIR},
		{"mkdir through file", func(v FS, at func(string) string) error { return v.MkdirAll(at("f/q")) }, syscall.ENOTDIR},
		{"list missing", func(v FS, at func(string) string) error { _, err := v.ReadDir(at("x")); return err }, syscall.ENOENT},
		{"list file", func(v FS, at func(string) string) error { _, err := v.ReadDir(at("f")); return err }, syscall.ENOTDIR},
		{"sync directory", func(v FS, at func(string) string) error { return v.SyncDir(at("d")) }, nil},
		{"sync missing directory", func(v FS, at func(string) string) error { return v.SyncDir(at("x")) }, syscall.ENOENT},
		{"sync file as directory", func(v FS, at func(string) string) error { return v.SyncDir(at("f")) }, syscall.ENOTDIR},
		{"lock directory", func(v FS, at func(string) string) error { _, err := v.Lock(at("d")); return err }, syscall.EISDIR},
		{"lock in nothing", func(v FS, at func(string) string) error { _, err := v.Lock(at("x/l")); return err }, syscall.ENOENT},
		{"space of nothing", func(v FS, at func(string) string) error { _, err := v.FreeBytes(at("x")); return err }, syscall.ENOENT},
		{"space", func(v FS, at func(string) string) error { _, err := v.FreeBytes(at("d")); return err }, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			forEachFS(t, func(t *testing.T, fsys FS, dir string) {
				at := func(name string) string { return path.Join(dir, name) }
				for _, d := range []string{"d", "e"} {
					if err := fsys.MkdirAll(at(d)); err != nil {
						t.Fatal(err)
					}
				}
				writeFile(t, fsys, at("f"), "f")
				writeFile(t, fsys, at("d/f"), "df")
				err := tt.do(fsys, at)
				if !errors.Is(err, tt.want) {
					t.Fatalf("got %v, want %v", err, tt.want)
				}
				var pathErr *fs.PathError
				if err != nil && !errors.As(err, &pathErr) {
					t.Errorf("%v is no *fs.PathError", err)
				}
			})
		})
	}
}

func TestReadDir(t *testing.T) {
	forEachFS(t, func(t *testing.T, fsys FS, dir string) {
		at := func(name string) string { return path.Join(dir, name) }
		for _, name := range []string{"b", "a", "B", "10", "9", "ä"} {
			writeFile(t, fsys, at(name), name)
		}
		if err := fsys.MkdirAll(at("aa/x")); err != nil {
			t.Fatal(err)
		}
		got, err := fsys.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		want := []Entry{{"10", false, 2}, {"9", false, 1}, {"B", false, 1}, {"a", false, 1}, {"aa", true, 0}, {"b", false, 1}, {"ä", false, 2}}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// Reads at and over the end, in holes, and of nothing.
func TestReadAt(t *testing.T) {
	forEachFS(t, func(t *testing.T, fsys FS, dir string) {
		f := openForTest(t, fsys, path.Join(dir, "f"))
		if _, err := f.WriteAt([]byte("hole before"), 10_000); err != nil {
			t.Fatal(err)
		}
		if err := f.Datasync(); err != nil {
			t.Fatal(err)
		}
		tests := []struct {
			off  int64
			n    int
			want string
			err  error
		}{
			{0, 4, "\x00\x00\x00\x00", nil},
			{9_998, 6, "\x00\x00hole", nil},
			{10_000, 11, "hole before", nil},
			{10_005, 100, "before", io.EOF},
			{10_011, 1, "", io.EOF},
			{10_011, 0, "", nil},
			{50_000, 1, "", io.EOF},
		}
		for _, tt := range tests {
			for how, read := range map[string]func([]byte, int64) (int, error){"cached": f.ReadAt, "uncached": f.ReadAtUncached} {
				p := bytes.Repeat([]byte{0xee}, tt.n)
				n, err := read(p, tt.off)
				if string(p[:n]) != tt.want || err != tt.err {
					t.Errorf("%s, %d bytes at %d: %q, %v; want %q, %v", how, tt.n, tt.off, p[:n], err, tt.want, tt.err)
				}
			}
		}
	})
}

// An open file is the file, whatever becomes of its name.
func TestHandleOutlivesName(t *testing.T) {
	forEachFS(t, func(t *testing.T, fsys FS, dir string) {
		at := func(name string) string { return path.Join(dir, name) }
		moved := openForTest(t, fsys, at("moved"))
		removed := openForTest(t, fsys, at("removed"))
		replaced := openForTest(t, fsys, at("replaced"))
		if err := fsys.Remove(at("removed")); err != nil {
			t.Fatal(err)
		}
		if err := fsys.Rename(at("moved"), at("replaced")); err != nil {
			t.Fatal(err)
		}
		for name, f := range map[string]File{"moved": moved, "removed": removed, "replaced": replaced} {
			if _, err := f.WriteAt([]byte(name), 0); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, len(name))
			if _, err := f.ReadAt(got, 0); err != nil || string(got) != name {
				t.Errorf("%s: read %q, %v", name, got, err)
			}
		}
		if got := readFile(t, fsys, at("replaced")); got != "moved" {
			t.Errorf("the name has %q, want what was moved there", got)
		}
	})
}

func TestLock(t *testing.T) {
	forEachFS(t, func(t *testing.T, fsys FS, dir string) {
		name := path.Join(dir, "LOCK")
		held, err := fsys.Lock(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fsys.Lock(name); !errors.Is(err, ErrLocked) {
			t.Fatalf("second Lock: %v, want ErrLocked", err)
		}
		if err := held.Close(); err != nil {
			t.Fatal(err)
		}
		again, err := fsys.Lock(name)
		if err != nil {
			t.Fatalf("after Close: %v", err)
		}
		if err := held.Close(); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("second Close: %v, want fs.ErrClosed", err)
		}
		if _, err := fsys.Lock(name); !errors.Is(err, ErrLocked) {
			t.Errorf("the second Close of the first lock freed the second: %v", err)
		}
		again.Close()
	})
}
