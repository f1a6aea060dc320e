package pgwal

import (
	"testing"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

func TestSegmentNames(t *testing.T) {
	for _, c := range []struct {
		size  string
		tli   TLI
		lsn   wal.LSN
		name  string
		begin wal.LSN
	}{
		{"16MB", 1, 0x704E0C8, "000000010000000000000007", 0x7000000},
		{"1MB", 3, 0x1_FFF00001, "0000000300000001" + "00000FFF", 0x1_FFF00000},
		{"64MB", 0xABCDEF, 0xFF_FFFFFFFF, "00ABCDEF000000FF0000003F", 0xFF_FC000000},
		{"1GB", 1, 0x2_40000000, "000000010000000200000001", 0x2_40000000},
	} {
		s, err := ParseSegmentBytes(c.size)
		if err != nil || s.String() != c.size {
			t.Fatalf("%s: %v, %v", c.size, s, err)
		}
		if name := s.FileName(c.tli, c.lsn); name != c.name || s.Begin(c.lsn) != c.begin {
			t.Errorf("%s %v: %s beginning at %v", c.size, c.lsn, name, s.Begin(c.lsn))
		}
		if tli, lsn, err := s.ParseFileName(c.name); err != nil || tli != c.tli || lsn != c.begin {
			t.Errorf("%s: %d %v %v", c.name, tli, lsn, err)
		}
	}
	for _, bad := range []string{"", "MB", "3MB", "512kB", "2GB", "16 MB", "16XB", "-16MB", "99999999999GB"} {
		if s, err := ParseSegmentBytes(bad); err == nil {
			t.Errorf("%q was taken for %v", bad, s)
		}
	}
	for _, bad := range []string{"", "00000001000000000000000", "0000000100000000000000gg", "000000010000000000000100", "00000000" + "0000000000000001", "00000001000000000000000a"} {
		if _, _, err := SegmentBytes(16 << 20).ParseFileName(bad); err == nil {
			t.Errorf("%q was taken for a WAL file name", bad)
		}
	}
	if tli, ok := ParseHistoryFileName("0000000A.history"); !ok || tli != 10 || HistoryFileName(10) != "0000000A.history" {
		t.Error(tli, ok)
	}
	if _, ok := ParseHistoryFileName("00000000.history"); ok {
		t.Error("timeline 0")
	}
}
