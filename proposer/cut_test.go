package proposer

import (
	"testing"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// TestRequestsEndAtPages: a request that does not take all that waits ends at a page's end.
func TestRequestsEndAtPages(t *testing.T) {
	for _, c := range []struct{ begin, n, tail, want int }{
		{100, 8092, 8192, 8092},        // everything
		{100, 8000, 8100, 8000},        // everything, inside a page
		{100, 9000, 20000, 8092},       // up to the page's end
		{8192, 262144, 900000, 262144}, // a multiple already
		{8192, 100, 900000, 100},       // no page ends within
	} {
		p := &Proposer{window: newWindow(1 << 20)}
		p.window.reset(0)
		p.window.tail = wal.LSN(c.tail)
		if got := p.cutAt(wal.LSN(c.begin), c.n); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

func TestChunksBeginAtMultiplesOfTheirSize(t *testing.T) {
	w := newWindow(4 << 10)
	w.reset(5000)
	room := w.room()
	w.place(make([]byte, 3000))
	if w.room() != room-3000 || w.chunks[0].begin != 4096 || w.chunks[1].begin != 5120 || w.tail != 8000 {
		t.Errorf("room %d of %d, chunks at %v and %v", w.room(), room, w.chunks[0].begin, w.chunks[1].begin)
	}
	if _, data := w.at(5000); len(data) != 120 {
		t.Errorf("%d bytes from the beginning on", len(data))
	}
}
