package vfs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
)

func rngOf(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// listing is everything on a disk, a name and its content per line.
func listing(t testing.TB, fsys FS, dir string) string {
	t.Helper()
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		if e.Dir {
			fmt.Fprintf(&b, "%s/\n%s", name, listing(t, fsys, name))
			continue
		}
		fmt.Fprintf(&b, "%s %q\n", name, readFile(t, fsys, name))
	}
	return b.String()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// What the worst power cut leaves after each step of a script, and what the
// luckiest leaves.
func TestCrashEntries(t *testing.T) {
	type step struct {
		do    func(m *Mem) error
		worst string
	}
	create := func(name string) func(*Mem) error {
		return func(m *Mem) error {
			f, err := m.Create(name)
			if err != nil {
				return err
			}
			defer f.Close()
			if _, err := f.WriteAt([]byte("x"), 0); err != nil {
				return err
			}
			return f.Datasync()
		}
	}
	rename := func(from, to string) func(*Mem) error {
		return func(m *Mem) error { return m.Rename(from, to) }
	}
	remove := func(name string) func(*Mem) error { return func(m *Mem) error { return m.Remove(name) } }
	sync := func(name string) func(*Mem) error { return func(m *Mem) error { return m.SyncDir(name) } }
	mkdir := func(name string) func(*Mem) error { return func(m *Mem) error { return m.MkdirAll(name) } }
	const dirs = "/a/\n/b/\n"
	tests := []struct {
		name  string
		steps []step
	}{
		{"a synced file without its name is lost", []step{
			{create("/a/f"), dirs},
			{sync("/b"), dirs},
			{sync("/a"), "/a/\n/a/f \"x\"\n/b/\n"},
		}},
		{"a rename in one directory", []step{
			{create("/a/f"), dirs}, {sync("/a"), "/a/\n/a/f \"x\"\n/b/\n"},
			{rename("/a/f", "/a/g"), "/a/\n/a/f \"x\"\n/b/\n"},
			{sync("/a"), "/a/\n/a/g \"x\"\n/b/\n"},
		}},
		{"a rename between directories needs both", []step{
			{create("/a/f"), dirs}, {sync("/a"), "/a/\n/a/f \"x\"\n/b/\n"},
			{rename("/a/f", "/b/f"), "/a/\n/a/f \"x\"\n/b/\n"},
			{sync("/b"), "/a/\n/a/f \"x\"\n/b/\n"},
			{sync("/a"), "/a/\n/b/\n/b/f \"x\"\n"},
		}},
		{"in the other order, too", []step{
			{create("/a/f"), dirs}, {sync("/a"), "/a/\n/a/f \"x\"\n/b/\n"},
			{rename("/a/f", "/b/f"), "/a/\n/a/f \"x\"\n/b/\n"},
			{sync("/a"), "/a/\n/a/f \"x\"\n/b/\n"},
			{sync("/b"), "/a/\n/b/\n/b/f \"x\"\n"},
		}},
		{"a rename of a name not yet durable", []step{
			{create("/a/f"), dirs},
			{rename("/a/f", "/b/g"), dirs},
			{sync("/b"), dirs},
			{sync("/a"), "/a/\n/b/\n/b/g \"x\"\n"},
		}},
		{"a synced change takes along what it builds on", []step{
			{create("/a/f"), dirs}, {sync("/a"), "/a/\n/a/f \"x\"\n/b/\n"},
			{rename("/a/f", "/b/f"), "/a/\n/a/f \"x\"\n/b/\n"},
			{rename("/b/f", "/b/g"), "/a/\n/a/f \"x\"\n/b/\n"},
			{sync("/b"), "/a/\n/b/\n/b/g \"x\"\n"},
		}},
		{"a removed file comes back", []step{
			{create("/a/f"), dirs}, {sync("/a"), "/a/\n/a/f \"x\"\n/b/\n"},
			{remove("/a/f"), "/a/\n/a/f \"x\"\n/b/\n"},
			{sync("/a"), dirs},
		}},
		{"directories are entries, too", []step{
			{mkdir("/a/c/d"), dirs},
			{create("/a/c/d/f"), dirs},
			{sync("/a/c/d"), dirs},
			{sync("/a/c"), dirs},
			{sync("/a"), "/a/\n/a/c/\n/a/c/d/\n/a/c/d/f \"x\"\n/b/\n"},
		}},
		{"a directory takes its content along", []step{
			{mkdir("/a/c"), dirs}, {create("/a/c/f"), dirs}, {sync("/a"), "/a/\n/a/c/\n/b/\n"},
			{sync("/a/c"), "/a/\n/a/c/\n/a/c/f \"x\"\n/b/\n"},
			{rename("/a/c", "/b/c"), "/a/\n/a/c/\n/a/c/f \"x\"\n/b/\n"},
			{sync("/a"), "/a/\n/a/c/\n/a/c/f \"x\"\n/b/\n"},
			{sync("/b"), "/a/\n/b/\n/b/c/\n/b/c/f \"x\"\n"},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := newMemWith(t, "/a", "/b")
			for i, s := range tt.steps {
				must(t, s.do(m))
				now := listing(t, m, "/")
				if got := listing(t, m.CrashWorst(), "/"); got != s.worst {
					t.Fatalf("step %d: the worst crash leaves\n%s\nwant\n%s", i, got, s.worst)
				}
				if got := listing(t, m.CrashKeepAll(), "/"); got != now {
					t.Fatalf("step %d: a crash that keeps all leaves\n%s\nwant\n%s", i, got, now)
				}
				for seed := range uint64(20) {
					m.Crash(rngOf(seed)) // looks, touches nothing
				}
				if got := listing(t, m, "/"); got != now {
					t.Fatalf("step %d: crash clones changed the disk from\n%s\nto\n%s", i, now, got)
				}
			}
		})
	}
}

// Two unsynced changes that have nothing to do with each other are kept or lost
// in all four ways; of two that build on one another the second never comes alone.
func TestCrashEntriesIndependently(t *testing.T) {
	m := newMemWith(t, "/a", "/b", "/c")
	writeFile(t, m, "/a/f", "")
	writeFile(t, m, "/b/g", "")
	must(t, m.Rename("/b/g", "/c/g"))
	seen := map[string]int{}
	for seed := range uint64(200) {
		seen[listing(t, m.Crash(rngOf(seed)), "/")]++
	}
	want := []string{}
	for _, a := range []string{"/a/\n", "/a/\n/a/f \"\"\n"} {
		for _, b := range []string{"/b/\n/c/\n", "/b/\n/b/g \"\"\n/c/\n", "/b/\n/c/\n/c/g \"\"\n"} {
			want = append(want, a+b)
		}
	}
	for _, w := range want {
		if seen[w] == 0 {
			t.Errorf("never seen:\n%s", w)
		}
		delete(seen, w)
	}
	for s := range seen {
		t.Errorf("not to be seen:\n%s", s)
	}
}

// A sector is old, new, any state in between, or seldom garbage; each by
// itself; and the neighbours written with the same bytes stay what they are.
func TestCrashSectors(t *testing.T) {
	fill := func(b byte) []byte { return bytes.Repeat([]byte{b}, sectorBytes) }
	m := newMemWith(t, "/a")
	f := openForTest(t, m, "/a/f")
	must(t, m.SyncDir("/a"))
	const sectors = 3 * pageSectors
	must(t, f.WritevAt([][]byte{bytes.Repeat([]byte{'o'}, sectors*sectorBytes)}, 0))
	must(t, f.Datasync())
	must(t, f.WritevAt([][]byte{fill('o'), fill('n')}, 0))       // 0: the same again; 1: new
	must(t, f.WritevAt([][]byte{fill('1')}, 9*sectorBytes))      // 9: three states
	must(t, f.WritevAt([][]byte{fill('2')}, 9*sectorBytes))      //
	must(t, f.WritevAt([][]byte{fill('n')[:7]}, 20*sectorBytes)) // 20: only its beginning

	classes := make([]map[string]int, sectors)
	for i := range classes {
		classes[i] = map[string]int{}
	}
	both := map[string]int{}
	for seed := range uint64(2000) {
		got := readFile(t, m.Crash(rngOf(seed)), "/a/f")
		if len(got) != sectors*sectorBytes {
			t.Fatalf("seed %d: %d bytes, though the size was synced", seed, len(got))
		}
		pair := ""
		for i := range sectors {
			s := got[i*sectorBytes : (i+1)*sectorBytes]
			class := "garbage"
			for _, b := range []byte("on12") {
				if s == string(fill(b)) {
					class = string(b)
				}
			}
			if s == string(fill('n')[:7])+string(fill('o')[7:]) {
				class = "part"
			}
			classes[i][class]++
			if i == 1 || i == 9 {
				pair += class
			}
		}
		both[pair]++
	}
	want := map[int][]string{1: {"o", "n", "garbage"}, 9: {"o", "1", "2", "garbage"}, 20: {"o", "part", "garbage"}}
	for i, seen := range classes {
		expected := want[i]
		if expected == nil {
			expected = []string{"o"}
		}
		for _, class := range expected {
			if seen[class] == 0 {
				t.Errorf("sector %d was never %q: %v", i, class, seen)
			}
		}
		if len(seen) != len(expected) {
			t.Errorf("sector %d: %v, want only %q", i, seen, expected)
		}
		if seen["garbage"] > 2000/20 {
			t.Errorf("sector %d: garbage %d times of 2000, want it rare", i, seen["garbage"])
		}
	}
	for _, pair := range []string{"oo", "no", "o1", "n1", "o2", "n2"} {
		if both[pair] == 0 {
			t.Errorf("sectors 1 and 9 were never %q: they are not independent", pair)
		}
	}
}

// The size is kept or lost apart from the sectors: what it does not cover is
// gone, what it covers and did not arrive is zeros.
func TestCrashSize(t *testing.T) {
	m := newMemWith(t, "/a")
	f := openForTest(t, m, "/a/f")
	must(t, m.SyncDir("/a"))
	must(t, f.WritevAt([][]byte{bytes.Repeat([]byte{'o'}, 700)}, 0))
	must(t, f.Datasync())
	must(t, f.WritevAt([][]byte{bytes.Repeat([]byte{'n'}, 300)}, 700))
	must(t, f.WritevAt([][]byte{bytes.Repeat([]byte{'n'}, 5000)}, 1000))
	if got := readFile(t, m.CrashWorst(), "/a/f"); got != strings.Repeat("o", 700) {
		t.Errorf("the worst crash leaves %d bytes, want the 700 synced ones", len(got))
	}
	sizes := map[int]bool{}
	zeros, torn := false, false
	for seed := range uint64(500) {
		got := readFile(t, m.Crash(rngOf(seed)), "/a/f")
		sizes[len(got)] = true
		if len(got) == 6000 {
			zeros = zeros || strings.Contains(got[1024:], strings.Repeat("\x00", sectorBytes))
			torn = torn || strings.Contains(got, "n\x00") && strings.Contains(got, "\x00n")
		}
	}
	// A write grows a file page by page, as the kernel does it.
	for _, size := range []int{700, 1000, pageBytes, 6000} {
		if !sizes[size] {
			t.Errorf("the size was never %d", size)
		}
	}
	if len(sizes) != 4 {
		t.Errorf("sizes %v, want only those the file has had", sizes)
	}
	if !zeros || !torn {
		t.Errorf("sectors that did not arrive: zeros %v, between others that did %v; want both", zeros, torn)
	}
}

func TestDatasyncIsOfOneFile(t *testing.T) {
	m := newMemWith(t, "/a")
	f, g := openForTest(t, m, "/a/f"), openForTest(t, m, "/a/g")
	must(t, m.SyncDir("/a"))
	for _, h := range []File{f, g} {
		must(t, h.WritevAt([][]byte{[]byte("new")}, 0))
	}
	must(t, f.Datasync())
	if got, want := listing(t, m.CrashWorst(), "/a"), "/a/f \"new\"\n/a/g \"\"\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The measured behaviour of Linux after a failed fdatasync, step by step.
func TestFailedDatasyncLies(t *testing.T) {
	m := newMemWith(t, "/a")
	f := openForTest(t, m, "/a/f")
	must(t, m.SyncDir("/a"))
	must(t, f.WritevAt([][]byte{bytes.Repeat([]byte{'o'}, 2*pageBytes)}, 0))
	must(t, f.Datasync())
	must(t, f.WritevAt([][]byte{bytes.Repeat([]byte{'n'}, 2*sectorBytes)}, sectorBytes))

	if err := f.(*memFile).failDatasync(nil); err == nil {
		t.Fatal("the failing sync succeeded")
	}
	if err := f.Datasync(); err != nil {
		t.Fatalf("the sync after the failed one: %v, want nil as from the kernel", err)
	}
	first := func(read func([]byte, int64) (int, error)) string {
		p := make([]byte, 1)
		if _, err := read(p, sectorBytes); err != nil {
			t.Fatal(err)
		}
		return string(p)
	}
	if got := first(f.ReadAt); got != "n" {
		t.Errorf("cached: %q, want the new byte", got)
	}
	if got := first(f.ReadAtUncached); got != "o" {
		t.Errorf("uncached: %q, want the old byte", got)
	}
	for name, clone := range map[string]*Mem{"worst": m.CrashWorst(), "keep all": m.CrashKeepAll(), "seed 1": m.Crash(rngOf(1))} {
		if got := readFile(t, clone, "/a/f")[sectorBytes]; got != 'o' {
			t.Errorf("%s: a crash brings back %q, which the disk never had", name, got)
		}
	}

	// The process starts again: the cache goes on lying.
	m.Restart()
	g, err := m.Open("/a/f")
	must(t, err)
	if cached, uncached := first(g.ReadAt), first(g.ReadAtUncached); cached != "n" || uncached != "o" {
		t.Errorf("after a restart: cached %q, uncached %q; want n, o", cached, uncached)
	}
	// A neighbour in the same page is written and synced: it alone arrives.
	must(t, g.WritevAt([][]byte{[]byte("x")}, 0))
	must(t, g.Datasync())
	after := readFile(t, m.CrashWorst(), "/a/f")
	if after[0] != 'x' || after[sectorBytes] != 'o' {
		t.Errorf("after the neighbour's sync the disk has %q and %q, want x and o", after[0], after[sectorBytes])
	}
	// Written anew and synced, it is there.
	must(t, g.WritevAt([][]byte{bytes.Repeat([]byte{'n'}, 2*sectorBytes)}, sectorBytes))
	must(t, g.Datasync())
	if got := readFile(t, m.CrashWorst(), "/a/f")[sectorBytes]; got != 'n' || first(g.ReadAtUncached) != "n" {
		t.Errorf("written again and synced, the disk has %q", got)
	}
}

// With chance, a part of what a failed sync was to write is on the disk.
func TestFailedDatasyncInPart(t *testing.T) {
	seen := map[byte]bool{}
	for seed := range uint64(20) {
		m := newMemWith(t, "/a")
		f := openForTest(t, m, "/a/f")
		must(t, m.SyncDir("/a"))
		must(t, f.WritevAt([][]byte{bytes.Repeat([]byte{'o'}, pageBytes)}, 0))
		must(t, f.Datasync())
		must(t, f.WritevAt([][]byte{bytes.Repeat([]byte{'n'}, pageBytes)}, 0))
		if err := f.(*memFile).failDatasync(rngOf(seed)); err == nil {
			t.Fatal("the failing sync succeeded")
		}
		disk := readFile(t, m.CrashWorst(), "/a/f")
		uncached := make([]byte, pageBytes)
		if _, err := f.ReadAtUncached(uncached, 0); err != nil {
			t.Fatal(err)
		}
		if disk != string(uncached) {
			t.Fatalf("seed %d: ReadAtUncached does not show the disk", seed)
		}
		seen[disk[0]] = true
	}
	if !seen['o'] || !seen['n'] {
		t.Errorf("the first sector was only ever %v", seen)
	}
}

// Neither disk sees what is done to the other after the crash.
func TestCrashCloneIsApart(t *testing.T) {
	m := newMemWith(t, "/a")
	f := openForTest(t, m, "/a/f")
	must(t, m.SyncDir("/a"))
	lock, err := m.Lock("/a/LOCK")
	must(t, err)
	defer lock.Close()
	must(t, m.SyncDir("/a"))
	must(t, f.WritevAt([][]byte{[]byte("before")}, 0))
	must(t, f.Datasync())

	clone := m.CrashWorst()
	must(t, f.WritevAt([][]byte{[]byte("mine")}, 0))
	must(t, f.Datasync())
	if got := readFile(t, clone, "/a/f"); got != "before" {
		t.Errorf("the clone has %q, written through a handle from before the crash", got)
	}
	g, err := clone.Open("/a/f")
	must(t, err)
	must(t, g.WritevAt([][]byte{[]byte("theirs")}, 0))
	must(t, g.Datasync())
	must(t, clone.Remove("/a/LOCK"))
	if got := readFile(t, m, "/a/f"); got != "minere" {
		t.Errorf("the disk has %q after a write to its clone", got)
	}
	if l, err := clone.CrashKeepAll().Lock("/a/LOCK"); err != nil {
		t.Errorf("a lock outlived the crash: %v", err)
	} else {
		l.Close()
	}
	if _, err := m.Lock("/a/LOCK"); !errors.Is(err, ErrLocked) {
		t.Errorf("crashing a clone freed the lock: %v", err)
	}
}

func TestCrashIsReproducible(t *testing.T) {
	build := func() *Mem {
		m := newMemWith(t, "/a", "/b")
		rng := rngOf(7)
		for i := range 20 {
			f := openForTest(t, m, fmt.Sprintf("/a/%d", i))
			for range 5 {
				p := make([]byte, rng.IntN(3000))
				for j := range p {
					p[j] = byte(rng.Uint32())
				}
				must(t, f.WritevAt([][]byte{p}, rng.Int64N(10_000)))
			}
			if i%3 == 0 {
				must(t, m.Rename(fmt.Sprintf("/a/%d", i), fmt.Sprintf("/b/%d", i)))
			}
		}
		return m
	}
	x, y := build(), build()
	var all []string
	for seed := range uint64(20) {
		got := listing(t, x.Crash(rngOf(seed)), "/")
		if again := listing(t, y.Crash(rngOf(seed)), "/"); got != again {
			t.Fatalf("seed %d gives two different disks", seed)
		}
		all = append(all, got)
	}
	slices.Sort(all)
	if n := len(slices.Compact(all)); n < 10 {
		t.Errorf("20 seeds give only %d different disks", n)
	}
}

func TestRestartEndsHandles(t *testing.T) {
	m := newMemWith(t, "/a")
	f := openForTest(t, m, "/a/f")
	must(t, f.WritevAt([][]byte{[]byte("cached")}, 0))
	_, err := m.Lock("/a/LOCK")
	must(t, err)
	m.Restart()
	for name, err := range map[string]error{
		"write": f.WritevAt([][]byte{[]byte("x")}, 0), "sync": f.Datasync(), "close": f.Close(),
	} {
		if !errors.Is(err, fs.ErrClosed) {
			t.Errorf("%s through a handle of the dead process: %v, want fs.ErrClosed", name, err)
		}
	}
	if got := readFile(t, m, "/a/f"); got != "cached" {
		t.Errorf("the cache has %q after the end of the process, want what was written", got)
	}
	if _, err := m.Lock("/a/LOCK"); err != nil {
		t.Errorf("the dead process's lock: %v", err)
	}
}
