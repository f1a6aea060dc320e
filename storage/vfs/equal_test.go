package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"syscall"
	"testing"
)

// FuzzMemEqualsOS lets random bytes choose operations and performs each on the
// real file system and on Mem: a caller must not be able to tell them apart as
// long as the power stays on.
func FuzzMemEqualsOS(f *testing.F) {
	for seed := range uint64(60) {
		rng := rngOf(seed)
		script := make([]byte, 40+rng.IntN(400))
		for i := range script {
			script[i] = byte(rng.Uint32())
		}
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 2000 {
			script = script[:2000]
		}
		real := &player{fsys: OS{}, root: t.TempDir()}
		mem := &player{fsys: newMemWith(t, "/data"), root: "/data"}
		defer real.close()
		for at := 0; len(script) >= 4; at++ {
			var args [4]byte
			copy(args[:], script)
			script = script[4:]
			want, got := real.play(args), mem.play(args)
			if got != want {
				t.Fatalf("step %d: Mem: %s\nOS: %s", at, got, want)
			}
		}
		if got, want := listing(t, mem.fsys, mem.root), listing(t, real.fsys, real.root); strings.ReplaceAll(got, mem.root, "") != strings.ReplaceAll(want, real.root, "") {
			t.Fatalf("in the end Mem has\n%s\nOS\n%s", got, want)
		}
	})
}

// player performs what four bytes say and tells what came of it.
type player struct {
	fsys  FS
	root  string
	files [4]File
	locks [2]io.Closer
}

func (p *player) close() {
	for _, f := range p.files {
		if f != nil {
			f.Close()
		}
	}
	for _, l := range p.locks {
		if l != nil {
			l.Close()
		}
	}
}

func (p *player) play(args [4]byte) string {
	names := [...]string{"a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "f", "f/a", "."}
	name := func(b byte) string { return path.Join(p.root, names[int(b)%len(names)]) }
	told := func(what string, err error) string {
		return fmt.Sprintf("%s %q: %s", what, names[int(args[1])%len(names)], outcome(err))
	}
	slot := &p.files[args[2]%4]
	opened := func(what string, f File, err error) string {
		if err == nil {
			if *slot != nil {
				(*slot).Close()
			}
			*slot = f
		}
		return told(what, err)
	}
	off, n := int64(args[1])*37+int64(args[3]&1)*3000, int(args[3])*23
	data := make([]byte, n)
	for i := range data {
		data[i] = args[1] + byte(i/100)
	}
	file := *slot
	if op := args[0] % 20; op >= 12 && file == nil {
		return "no file"
	}
	switch op := args[0] % 20; op {
	case 0:
		f, err := p.fsys.Create(name(args[1]))
		return opened("create", f, err)
	case 1:
		f, err := p.fsys.Open(name(args[1]))
		return opened("open", f, err)
	case 2:
		f, err := p.fsys.OpenRead(name(args[1]))
		return opened("open for reading", f, err)
	case 3, 4:
		return told("rename", p.fsys.Rename(name(args[1]), name(args[3]))) + " to " + names[int(args[3])%len(names)]
	case 5:
		if name(args[1]) == p.root {
			return "not the root of the test"
		}
		return told("remove", p.fsys.Remove(name(args[1])))
	case 6:
		return told("mkdir", p.fsys.MkdirAll(name(args[1])))
	case 7:
		entries, err := p.fsys.ReadDir(name(args[1]))
		return told("list", err) + fmt.Sprint(entries)
	case 8:
		return told("sync directory", p.fsys.SyncDir(name(args[1])))
	case 9:
		lock := &p.locks[args[2]%2]
		if *lock != nil {
			return "have lock"
		}
		l, err := p.fsys.Lock(name(args[1]))
		if err == nil {
			*lock = l
		}
		return told("lock", err)
	case 10:
		lock := &p.locks[args[2]%2]
		if *lock == nil {
			return "no lock"
		}
		err := (*lock).Close()
		*lock = nil
		return "unlock: " + outcome(err)
	case 11:
		_, err := p.fsys.FreeBytes(name(args[1]))
		return told("free bytes", err)
	case 12, 13:
		n, err := file.WriteAt(data, off)
		return fmt.Sprintf("write %d at %d: %d, %s", len(data), off, n, outcome(err))
	case 14, 15:
		cut := int(args[2]) % (len(data) + 1)
		err := file.WritevAt([][]byte{data[:cut], nil, data[cut:]}, off)
		return fmt.Sprintf("writev %d at %d: %s", len(data), off, outcome(err))
	case 16:
		n, err := file.ReadAt(data, off)
		return fmt.Sprintf("read %d at %d: %q, %s", len(data), off, data[:n], outcome(err))
	case 17:
		n, err := file.ReadAtUncached(data, off)
		return fmt.Sprintf("read uncached %d at %d: %q, %s", len(data), off, data[:n], outcome(err))
	case 18:
		size, err := file.Size()
		return fmt.Sprintf("size %d, %s", size, outcome(err))
	default:
		if args[3]%4 == 0 {
			return "close: " + outcome(file.Close()) // and use it again
		}
		return "sync: " + outcome(file.Datasync())
	}
}

// outcome is what of an error a caller may branch on.
func outcome(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return "fine"
	case err == io.EOF:
		return "EOF"
	case errors.Is(err, ErrLocked):
		return "locked"
	case errors.Is(err, fs.ErrClosed):
		return "closed"
	case errors.As(err, &errno):
		return errno.Error()
	}
	return err.Error()
}
