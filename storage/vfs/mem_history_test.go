package vfs

import (
	"fmt"
	"strings"
	"testing"
)

// FuzzCrashHistory lets random bytes create, move, remove and sync, and looks at
// crashes after every step. Whatever was in between: after a crash no file has
// two names and nothing is left unsynced; and once all directories are synced, a
// crash changes nothing.
func FuzzCrashHistory(f *testing.F) {
	for seed := range uint64(100) {
		rng := rngOf(seed)
		script := make([]byte, 60)
		for i := range script {
			script[i] = byte(rng.Uint32())
		}
		f.Add(seed, script)
	}
	f.Fuzz(func(t *testing.T, seed uint64, script []byte) {
		rng := rngOf(seed)
		m := newMemWith(t, "/a", "/b", "/c")
		name := func(b byte) string { return fmt.Sprintf("/%c/%c", 'a'+b%3, 'x'+b/3%3) }
		dirs := []string{"/", "/a", "/b", "/c"}
		for made := 0; len(script) >= 3 && made < 300; script = script[3:] {
			made++
			// What cannot be done at the moment is not done.
			switch script[0] % 8 {
			case 0, 1, 2:
				file, err := m.Create(name(script[1]))
				if err != nil {
					continue
				}
				must(t, file.WritevAt([][]byte{fmt.Appendf(nil, "file %d.", made)}, 0))
				must(t, file.Datasync())
				must(t, file.Close())
			case 3, 4:
				_ = m.Rename(name(script[1]), name(script[2]))
			case 5:
				_ = m.Remove(name(script[1]))
			case 6:
				_ = m.Rename(dirs[1+script[1]%3], dirs[1+script[2]%3]+"/d")
				_ = m.Rename(dirs[1+script[1]%3]+"/d", dirs[1+script[2]%3])
			case 7:
				_ = m.SyncDir(dirs[script[1]%4])
			}
			for _, clone := range []*Mem{m.Crash(rng), m.CrashWorst(), m.CrashKeepAll()} {
				left := listing(t, clone, "/")
				for i := range made {
					if n := strings.Count(left, fmt.Sprintf("file %d.", i+1)); n > 1 {
						t.Fatalf("after a crash file %d has %d names:\n%s", i+1, n, left)
					}
				}
				if again := listing(t, clone.CrashWorst(), "/"); again != left {
					t.Fatalf("a second crash changes\n%s\nto\n%s", left, again)
				}
			}
		}
		syncAll(t, m, "/")
		want := listing(t, m, "/")
		if got := listing(t, m.CrashWorst(), "/"); got != want {
			t.Fatalf("all is synced, and the worst crash leaves\n%s\nof\n%s", got, want)
		}
		if got := listing(t, m.Crash(rng), "/"); got != want {
			t.Fatalf("all is synced, and a crash leaves\n%s\nof\n%s", got, want)
		}
	})
}

func syncAll(t *testing.T, m *Mem, dir string) {
	t.Helper()
	must(t, m.SyncDir(dir))
	entries, err := m.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		if e.Dir {
			syncAll(t, m, strings.TrimSuffix(dir, "/")+"/"+e.Name)
		}
	}
}
