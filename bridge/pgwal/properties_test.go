package pgwal

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// history4 is the file that a PostgreSQL 15 wrote after three promotions.
const history4 = "1\t0/2D41AAC0\tno recovery target specified\n\n2\t0/2E000028\tno recovery target specified\n\n3\t0/2F000170\tno recovery target specified\n"

func sample() Properties {
	a, _ := ParseHistory(4, []byte(history4))
	return Properties{SystemID: 7714060067332523406, Segment: 16 << 20, VersionMajor: 15, Ancestry: a, History: []byte(history4)}
}

func TestParseHistory(t *testing.T) {
	a, err := ParseHistory(4, []byte(history4))
	want := Ancestry{{1, 0}, {2, 0x2D41AAC0}, {3, 0x2E000028}, {4, 0x2F000170}}
	if err != nil || !reflect.DeepEqual(a, want) {
		t.Fatalf("%v, %v", a, err)
	}
	if i := a.At(0x2E000028); a[i].TLI != 3 {
		t.Error("a log that ends where a timeline begins is on that timeline, not on", a[i].TLI)
	}
	if i := a.At(0x2E000027); a[i].TLI != 2 {
		t.Error("one byte below a begin is the parent's, not", a[i].TLI)
	}
	again, err := ParseHistory(4, FormatHistory(a))
	if err != nil || !reflect.DeepEqual(again, a) {
		t.Error(again, err)
	}
	for _, bad := range []string{"x\t0/1\n", "1\n", "1\tzz\n", "4\t0/1\n", "2\t0/5\n1\t0/6\n", "1\t0/5\n2\t0/4\n", "0\t0/1\n"} {
		if a, err := ParseHistory(4, []byte(bad)); err == nil {
			t.Errorf("%q gave %v", bad, a)
		}
	}
	if a, err := ParseHistory(3, []byte("# a comment\n\n1\t0/10\tx\n2\t0/10\ty\n")); err != nil || a.At(0x10) != 2 {
		t.Error("an empty timeline is legal:", a, err)
	}
}

func TestPropertiesRoundTrip(t *testing.T) {
	fenced, first := sample(), sample()
	fenced.Fenced = true
	first.Ancestry, first.History = Ancestry{{1, 0}}, nil
	for _, p := range []Properties{sample(), fenced, first} {
		b, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeProperties(b)
		if err != nil || !reflect.DeepEqual(got, p) {
			t.Errorf("\n got %+v, %v\nwant %+v", got, err, p)
		}
		b[4]++
		if _, err := DecodeProperties(b); err == nil || !strings.Contains(err.Error(), "newer") {
			t.Error("a newer version:", err)
		}
	}
	if _, err := DecodeProperties(nil); err == nil {
		t.Error("nothing was decoded")
	}
}

// TestHistoryFilesAreThoseThatPostgreSQLWrote relies on how PostgreSQL makes a
// history file: the parent's, an empty line, one line more.
func TestHistoryFilesAreThoseThatPostgreSQLWrote(t *testing.T) {
	p := sample()
	files := map[TLI]string{
		2: "1\t0/2D41AAC0\tno recovery target specified\n",
		3: "1\t0/2D41AAC0\tno recovery target specified\n\n2\t0/2E000028\tno recovery target specified\n",
		4: history4,
	}
	for tli, want := range files {
		if got, ok := p.HistoryFile(tli); !ok || string(got) != want {
			t.Errorf("timeline %d: %q", tli, got)
		}
	}
	for _, none := range []TLI{0, 1, 5} {
		if b, ok := p.HistoryFile(none); ok {
			t.Errorf("timeline %d has a file: %q", none, b)
		}
	}
}

func TestSkippedTimelineDoesNotHideTheNewest(t *testing.T) {
	a, _ := ParseHistory(4, []byte("1\t0/5000\tr\n\n3\t0/6000\tr\n"))
	p := Properties{SystemID: 1, Segment: 1 << 20, VersionMajor: 16, Ancestry: a, History: []byte("1\t0/5000\tr\n\n3\t0/6000\tr\n")}
	two, ok := p.HistoryFile(2)
	three, _ := p.HistoryFile(3)
	if !ok || !bytes.Equal(two, three) || string(three) != "1\t0/5000\tr\n" {
		t.Errorf("2: %q %v, 3: %q", two, ok, three)
	}
}

func TestPropertiesOfManyTimelinesFit(t *testing.T) {
	p := sample()
	var h strings.Builder
	for tli := 1; tli <= 600; tli++ {
		fmt.Fprintf(&h, "%d\t0/%X\t%s\n\n", tli, tli*0x1000, strings.Repeat("why ", 10))
	}
	a, err := ParseHistory(601, []byte(h.String()))
	if err != nil {
		t.Fatal(err)
	}
	p.Ancestry, p.History = a, []byte(h.String())
	b, err := p.Encode()
	if err != nil || len(b) > wal.PropertiesBytesMax {
		t.Fatal(len(b), err)
	}
	got, err := DecodeProperties(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, tli := range []TLI{2, 300, 601} {
		file, ok := got.HistoryFile(tli)
		parsed, err := ParseHistory(tli, file)
		if !ok || err != nil || !reflect.DeepEqual(parsed, a[:tli]) {
			t.Errorf("timeline %d: %v, %d ancestors", tli, err, len(parsed))
		}
	}
	p.Ancestry = nil
	for i := range 2000 {
		p.Ancestry = append(p.Ancestry, Branch{TLI(i + 1), wal.LSN(i)})
	}
	if _, err := p.Encode(); err == nil {
		t.Error("2,000 timelines do not fit")
	}
}

func FuzzDecodeProperties(f *testing.F) {
	b, _ := sample().Encode()
	f.Add(b)
	f.Add(b[:propertiesFixed])
	f.Add([]byte("HFPG"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := DecodeProperties(b)
		if err != nil {
			return
		}
		for _, x := range p.Ancestry {
			p.HistoryFile(x.TLI)
			p.HistoryFile(x.TLI - 1)
		}
		if len(b) > wal.PropertiesBytesMax {
			return
		}
		again, err := p.Encode()
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%+v does not encode to itself: %v", p, err)
		}
	})
}

func FuzzParseHistory(f *testing.F) {
	f.Add(uint32(4), []byte(history4))
	f.Add(uint32(1), []byte(nil))
	f.Fuzz(func(t *testing.T, tli uint32, b []byte) {
		a, err := ParseHistory(TLI(tli), b)
		if err != nil {
			return
		}
		if err := a.Validate(); err != nil {
			t.Fatal(err)
		}
		if again, err := ParseHistory(TLI(tli), FormatHistory(a)); err != nil || !reflect.DeepEqual(again, a) {
			t.Fatalf("%v became %v, %v", a, again, err)
		}
	})
}
