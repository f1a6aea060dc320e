package wal

import (
	"encoding/json"
	"math"
	"testing"
)

func TestLSNPrintsAsPostgreSQLDoes(t *testing.T) {
	for _, c := range []struct {
		lsn  LSN
		text string
	}{
		{0, "0/0"},
		{1, "0/1"},
		{0x704E0C8, "0/704E0C8"},
		{0xFFFFFFFF, "0/FFFFFFFF"},
		{0x100000000, "1/0"},
		{0x16_B374_8000_0ABC, "16B374/80000ABC"},
		{math.MaxUint64, "FFFFFFFF/FFFFFFFF"},
	} {
		if got := c.lsn.String(); got != c.text {
			t.Errorf("LSN %d prints as %q, want %q", uint64(c.lsn), got, c.text)
		}
		if got, err := ParseLSN(c.text); err != nil || got != c.lsn {
			t.Errorf("%q parses as %v, %v; want %d", c.text, got, err, uint64(c.lsn))
		}
	}
}

func TestLSNParsesEitherCaseAndLeadingZeroes(t *testing.T) {
	for _, s := range []string{"0/704e0c8", "00000000/0704E0C8", "0/0704e0C8"} {
		if got, err := ParseLSN(s); err != nil || got != 0x704E0C8 {
			t.Errorf("ParseLSN(%q) = %v, %v; want 0/704E0C8", s, got, err)
		}
	}
}

func TestLSNRefusesWhatIsNotTwoHexadecimalHalves(t *testing.T) {
	for _, s := range []string{
		"", "/", "0", "0/", "/0", "0/0/0", "0x1/0", "0/G", "-1/0", "+1/0", "0/-1", "0/+1", "_1/0", "1_0/0",
		" 0/0", "0/0 ", "000000000/0", "0/100000000", "0/0\n", "٣/0",
	} {
		if got, err := ParseLSN(s); err == nil {
			t.Errorf("ParseLSN(%q) = %v, want an error", s, got)
		}
	}
}

func TestLSNInJSON(t *testing.T) {
	var v struct{ At LSN }
	if err := json.Unmarshal([]byte(`{"At":"1/A"}`), &v); err != nil || v.At != 1<<32+10 {
		t.Fatalf("got %v, %v", v.At, err)
	}
	if out, err := json.Marshal(v); err != nil || string(out) != `{"At":"1/A"}` {
		t.Fatalf("got %s, %v", out, err)
	}
	if err := json.Unmarshal([]byte(`{"At":"nonsense"}`), &v); err == nil {
		t.Fatal("nonsense was taken for an LSN")
	}
}

func FuzzParseLSN(f *testing.F) {
	for _, s := range []string{"0/0", "0/704E0C8", "FFFFFFFF/FFFFFFFF", "0/G", "000000000/0", "+1/0", "1"} {
		f.Add(s, uint64(0))
	}
	f.Add("", uint64(math.MaxUint64))
	f.Fuzz(func(t *testing.T, s string, n uint64) {
		if l, err := ParseLSN(s); err == nil {
			if again, err := ParseLSN(l.String()); err != nil || again != l {
				t.Errorf("%q parsed as %v, which parses as %v, %v", s, l, again, err)
			}
		}
		if l, err := ParseLSN(LSN(n).String()); err != nil || l != LSN(n) {
			t.Errorf("%d prints as %v, which parses as %v, %v", n, LSN(n), l, err)
		}
	})
}
