package logsink

import (
	"errors"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestGrow(t *testing.T) {
	refused := errors.New("refused")
	for _, c := range []struct {
		name       string
		size, most int
		want       int
		asked      []int
	}{
		{"all of it", 64 << 10, 1 << 20, 1 << 20, []int{1 << 20}},
		{"less", 64 << 10, 300 << 10, 256 << 10, []int{1 << 20, 512 << 10, 256 << 10}},
		{"nothing", 64 << 10, 64 << 10, 64 << 10, []int{1 << 20, 512 << 10, 256 << 10, 128 << 10}},
		{"never smaller", 4 << 20, 4 << 20, 4 << 20, nil},
		{"never smaller when refused", 512 << 10, 256 << 10, 512 << 10, []int{1 << 20}},
	} {
		var asked []int
		got := grow(c.size, func(want int) (int, error) {
			asked = append(asked, want)
			if want > c.most {
				return 0, refused
			}
			return want, nil
		})
		if got != c.want || !slices.Equal(asked, c.asked) {
			t.Errorf("%s: got %d after asking for %v, expected %d after %v", c.name, got, asked, c.want, c.asked)
		}
	}
}

func TestGrowPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = r.Close(), w.Close() }()
	fd := int(w.Fd())
	before, err := unix.FcntlInt(uintptr(fd), unix.F_GETPIPE_SZ, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := GrowPipe(fd)
	now, err := unix.FcntlInt(uintptr(fd), unix.F_GETPIPE_SZ, 0)
	if err != nil || got != now || now < before {
		t.Errorf("GrowPipe says %d, the kernel %d (%v), before it was %d", got, now, err, before)
	}
	if again := GrowPipe(fd); again != now {
		t.Errorf("a second time: %d, expected %d", again, now)
	}
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if got := GrowPipe(int(f.Fd())); got != 0 {
		t.Errorf("%s has a pipe's size, %d", os.DevNull, got)
	}
}
