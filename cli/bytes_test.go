package cli

import "testing"

func TestParseBytes(t *testing.T) {
	for _, c := range []struct {
		in    string
		want  Bytes
		print string
	}{
		{"0", 0, "0B"},
		{"1", 1, "1B"},
		{"8KiB", 8192, "8KiB"},
		{"8kib", 8192, "8KiB"},
		{" 64 MiB ", 64 << 20, "64MiB"},
		{"1.5GiB", 3 << 29, "1536MiB"},
		{"1MB", 1000000, "1000000B"},
		{"2TiB", 2 << 40, "2TiB"},
		{"10B", 10, "10B"},
	} {
		got, err := ParseBytes(c.in)
		if err != nil || got != c.want {
			t.Errorf("ParseBytes(%q) = %d, %v; want %d", c.in, got, err, c.want)
		}
		if got.String() != c.print {
			t.Errorf("%d prints as %q, want %q", got, got.String(), c.print)
		}
		if again, err := ParseBytes(got.String()); err != nil || again != got {
			t.Errorf("%q parses back as %d, %v", got.String(), again, err)
		}
	}
	for _, bad := range []string{"", "KiB", "x", "-1", "-1KiB", "9999999999GiB", "1e400", "NaN", "inf", "8 K B"} {
		if got, err := ParseBytes(bad); err == nil {
			t.Errorf("ParseBytes(%q) = %d, want an error", bad, got)
		}
	}
}
