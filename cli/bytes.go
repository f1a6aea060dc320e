package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bytes is a size. As a flag it parses "8KiB", "1.5 GiB", "64MB" or a plain
// number of bytes, and prints exactly what it holds.
type Bytes int64

// byteUnits, largest first. Binary units come before the decimal ones so that
// printing prefers them.
var byteUnits = []struct {
	name string
	size int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1},
}

// ParseBytes parses a size that is not negative. Units are case-insensitive.
func ParseBytes(s string) (Bytes, error) {
	number, unit := strings.TrimSpace(s), int64(1)
	for _, u := range byteUnits {
		if n := len(number) - len(u.name); n > 0 && strings.EqualFold(number[n:], u.name) {
			number, unit = strings.TrimSpace(number[:n]), u.size
			break
		}
	}
	if whole, err := strconv.ParseInt(number, 10, 64); err == nil {
		if whole < 0 || whole > math.MaxInt64/unit {
			return 0, fmt.Errorf("size %q is out of range", s)
		}
		return Bytes(whole * unit), nil
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(f) {
		return 0, fmt.Errorf("size %q: expected a number with an optional unit, such as 8KiB, 64MiB or 1GB", s)
	}
	if f *= float64(unit); f < 0 || f >= math.MaxInt64 {
		return 0, fmt.Errorf("size %q is out of range", s)
	}
	return Bytes(f), nil
}

// String prints the size in the largest binary unit that divides it.
func (b Bytes) String() string {
	for _, u := range byteUnits[:4] {
		if b != 0 && int64(b)%u.size == 0 {
			return strconv.FormatInt(int64(b)/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}

// Human prints the size with one decimal in a fitting binary unit, for people to read.
func (b Bytes) Human() string {
	for _, u := range byteUnits[:4] {
		if int64(b) >= u.size {
			return fmt.Sprintf("%.1f %s", float64(b)/float64(u.size), u.name)
		}
	}
	return strconv.FormatInt(int64(b), 10) + " B"
}

// Set implements pflag.Value.
func (b *Bytes) Set(s string) (err error) {
	*b, err = ParseBytes(s)
	return err
}

// Type implements pflag.Value.
func (b *Bytes) Type() string { return "size" }
