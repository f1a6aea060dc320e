package logsink

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func collected(t *testing.T, r io.Reader) []string {
	t.Helper()
	var out []string
	var piece strings.Builder
	if err := Collect(r, func(line []byte, more bool) {
		if len(line) > LineBytesMax {
			t.Errorf("a piece of %d bytes", len(line))
		}
		piece.Write(line)
		if !more {
			out = append(out, piece.String())
			piece.Reset()
		}
	}); err != nil {
		t.Fatal(err)
	}
	if piece.Len() > 0 {
		out = append(out, piece.String())
	}
	return out
}

func TestCollect(t *testing.T) {
	long := strings.Repeat("long ", LineBytesMax/5*3)
	var all []string
	for i := range 3000 {
		all = append(all, fmt.Sprintf("line %d %s", i, strings.Repeat("x", i)))
	}
	for _, want := range [][]string{
		nil, {""}, {"a"}, {"a", "", "b"}, {long}, {"a", long, "b", long + "1", ""}, {strings.Repeat("y", LineBytesMax)}, all,
	} {
		text := ""
		if len(want) > 0 {
			text = strings.Join(want, "\n") + "\n"
		}
		readers := map[string]io.Reader{"at once": strings.NewReader(text), "halves": iotest.HalfReader(strings.NewReader(text)),
			"with the end": iotest.DataErrReader(strings.NewReader(text))}
		if len(text) < 10000 {
			readers["byte by byte"] = iotest.OneByteReader(strings.NewReader(text))
		}
		for how, r := range readers {
			got := collected(t, r)
			if len(got) != len(want) || strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("%s: %d lines, expected %d", how, len(got), len(want))
			}
		}
	}
	if got := collected(t, strings.NewReader("a\nunfinished")); len(got) != 2 || got[1] != "unfinished" {
		t.Errorf("got %q", got)
	}
	failed := errors.New("failed")
	if err := Collect(iotest.ErrReader(failed), func([]byte, bool) {}); err != failed {
		t.Errorf("got %v, expected the reader's error", err)
	}
}

func TestCollectFromAPipe(t *testing.T) {
	r, w, err := Pipe()
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan int, 1)
	go func() {
		n := 0
		_ = Collect(r, func([]byte, bool) { n++ })
		lines <- n
	}()
	line := append(bytes.Repeat([]byte("x"), 999), '\n')
	for range 10000 {
		if _, err := w.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	_ = w.Close()
	if n := <-lines; n != 10000 {
		t.Errorf("%d lines, expected 10000", n)
	}
	_ = r.Close()
}

func FuzzCollect(f *testing.F) {
	f.Add([]byte("a\nb\n\nc"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got := strings.Join(collected(t, iotest.HalfReader(bytes.NewReader(b))), "\n")
		if want := strings.TrimSuffix(string(b), "\n"); got != want {
			t.Fatalf("got %q, expected %q", got, want)
		}
	})
}
