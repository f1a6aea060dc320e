package wal

import (
	"fmt"
	"strconv"
	"strings"
)

// LSN is a byte position in one timeline's log. Ranges of positions are
// half-open, [begin, end). It prints and parses in PostgreSQL's form: the high
// and the low 32 bits in upper-case hexadecimal with a slash between, "0/704E0C8".
type LSN uint64

// LSNMax is the highest position at which a log may end. The 4 GiB above it are
// never used, so that a position plus the length of one thing cannot wrap around
// and look like a position that is committed.
const LSNMax LSN = 0xFFFFFFFF_00000000

// String returns the position as X/Y, without leading zeroes.
func (l LSN) String() string {
	b := make([]byte, 0, 17)
	b = strconv.AppendUint(b, uint64(l>>32), 16)
	b = append(b, '/')
	b = strconv.AppendUint(b, uint64(uint32(l)), 16)
	for i, c := range b {
		if 'a' <= c && c <= 'f' {
			b[i] = c - 'a' + 'A'
		}
	}
	return string(b)
}

// ParseLSN parses X/Y, each part one to eight hexadecimal digits of either case.
func ParseLSN(s string) (LSN, error) {
	high, low, ok := strings.Cut(s, "/")
	if !ok {
		return 0, fmt.Errorf("LSN %q: expected two hexadecimal numbers with a slash between, such as 0/16B3748", s)
	}
	h, err := parseHalf(high)
	if err != nil {
		return 0, fmt.Errorf("LSN %q: the part before the slash is not one to eight hexadecimal digits", s)
	}
	l, err := parseHalf(low)
	if err != nil {
		return 0, fmt.Errorf("LSN %q: the part after the slash is not one to eight hexadecimal digits", s)
	}
	return LSN(h)<<32 | LSN(l), nil
}

func parseHalf(s string) (uint64, error) {
	if len(s) == 0 || len(s) > 8 || s[0] == '+' || s[0] == '-' || s[0] == '_' {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseUint(s, 16, 32)
}

// MarshalText makes LSNs print as X/Y in JSON and in flags.
func (l LSN) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText parses what MarshalText wrote.
func (l *LSN) UnmarshalText(b []byte) error {
	v, err := ParseLSN(string(b))
	if err != nil {
		return err
	}
	*l = v
	return nil
}
