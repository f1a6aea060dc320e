package pgclient

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seed7f3f3bb8/holdfast/bridge/pgwal"
	"github.com/seed7f3f3bb8/holdfast/bridge/pgwire"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// System is the answer to IDENTIFY_SYSTEM.
type System struct {
	ID    uint64
	TLI   pgwal.TLI
	Flush wal.LSN // end of the server's durable WAL
}

// Identify asks the server who it is and how far its WAL reaches.
func (c *Conn) Identify(ctx context.Context) (System, error) {
	rows, err := c.query(ctx, "IDENTIFY_SYSTEM")
	if err != nil {
		return System{}, err
	}
	if len(rows) != 1 {
		return System{}, fmt.Errorf("IDENTIFY_SYSTEM: %d rows, expected one", len(rows))
	}
	id, err1 := strconv.ParseUint(rows[0].text(0), 10, 64)
	tli, err2 := strconv.ParseUint(rows[0].text(1), 10, 32)
	flush, err3 := wal.ParseLSN(rows[0].text(2))
	if err := errors.Join(err1, err2, err3); err != nil {
		return System{}, fmt.Errorf("IDENTIFY_SYSTEM: %w", err)
	}
	return System{id, pgwal.TLI(tli), flush}, nil
}

// Show returns a setting. A setting that the server does not have is an error.
func (c *Conn) Show(ctx context.Context, setting string) (string, error) {
	rows, err := c.query(ctx, "SHOW "+setting)
	if err != nil {
		return "", err
	}
	if len(rows) != 1 {
		return "", fmt.Errorf("SHOW %s: %d rows, expected one", setting, len(rows))
	}
	return rows[0].text(0), nil
}

// History returns tli's history file, nil for TLI 1, which has none.
func (c *Conn) History(ctx context.Context, tli pgwal.TLI) ([]byte, error) {
	if tli <= 1 {
		return nil, nil
	}
	rows, err := c.query(ctx, fmt.Sprintf("TIMELINE_HISTORY %d", tli))
	if err != nil {
		return nil, fmt.Errorf("history of timeline %d: %w", tli, err)
	}
	if len(rows) != 1 {
		return nil, fmt.Errorf("TIMELINE_HISTORY %d: %d rows, expected one", tli, len(rows))
	}
	return []byte(rows[0].text(1)), nil
}

// Server collects what pgwal.Judge must know of the server, and the newest
// TLI's history file. Its Flush is the server's at the time of the call.
func (c *Conn) Server(ctx context.Context) (s pgwal.Server, history []byte, err error) {
	if c.Parameter("in_hot_standby") == "" {
		// Before PostgreSQL 14 a server does not report whether it is a standby.
		if v, err := c.Show(ctx, "transaction_read_only"); err == nil && v == "on" {
			return s, nil, explain(errStandby)
		}
	}
	system, err := c.Identify(ctx)
	if err != nil {
		return s, nil, err
	}
	size, err := c.Show(ctx, "wal_segment_size")
	if err != nil {
		return s, nil, err
	}
	s = pgwal.Server{SystemID: system.ID, Flush: system.Flush}
	if s.Segment, err = pgwal.ParseSegmentBytes(size); err != nil {
		return s, nil, err
	}
	if s.VersionMajor, err = MajorVersion(c.Parameter("server_version")); err != nil {
		return s, nil, err
	}
	if history, err = c.History(ctx, system.TLI); err != nil {
		return s, nil, err
	}
	s.Ancestry, err = pgwal.ParseHistory(system.TLI, history)
	return s, history, err
}

// MajorVersion reads the major version from server_version: "15.18 (Debian ...)", "17beta1".
func MajorVersion(v string) (int, error) {
	n := 0
	for n < len(v) && '0' <= v[n] && v[n] <= '9' {
		n++
	}
	major, err := strconv.Atoi(v[:n])
	if err != nil || major < 10 {
		return 0, fmt.Errorf("server_version %q: PostgreSQL 13 or later is needed", v)
	}
	return major, nil
}

// SenderTimeout is wal_sender_timeout, 0 if it is switched off.
func (c *Conn) SenderTimeout(ctx context.Context) (time.Duration, error) {
	text, err := c.Show(ctx, "wal_sender_timeout")
	if err != nil {
		return 0, err
	}
	return parseDuration(text)
}

// parseDuration reads a time setting as SHOW prints it: "1min", "4s", "500ms", "0".
func parseDuration(text string) (time.Duration, error) {
	number := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyz")
	unit := map[string]time.Duration{"": time.Millisecond, "us": time.Microsecond, "ms": time.Millisecond, "s": time.Second,
		"min": time.Minute, "h": time.Hour, "d": 24 * time.Hour}[text[len(number):]]
	n, err := strconv.ParseInt(number, 10, 32)
	if err != nil || unit == 0 || n < 0 {
		return 0, fmt.Errorf("duration %q: expected a number and us, ms, s, min, h or d", text)
	}
	return time.Duration(n) * unit, nil
}

// Slot is a physical replication slot.
type Slot struct {
	Exists  bool
	Restart wal.LSN // the oldest WAL that it keeps, 0 if it keeps none
	TLI     pgwal.TLI
}

// ErrNoReadSlot is returned by ReadSlot where the server has no such command (before PostgreSQL 15).
var ErrNoReadSlot = errors.New("this version of PostgreSQL cannot read a slot over a replication connection")

// ReadSlot asks for a slot; one that does not exist is no error.
func (c *Conn) ReadSlot(ctx context.Context, name string) (Slot, error) {
	if major, err := MajorVersion(c.Parameter("server_version")); err == nil && major < 15 {
		return Slot{}, ErrNoReadSlot
	}
	rows, err := c.query(ctx, "READ_REPLICATION_SLOT "+pgwire.QuoteIdentifier(name))
	if err != nil {
		return Slot{}, err
	}
	if len(rows) != 1 || rows[0].text(0) == "" {
		return Slot{}, nil
	}
	s := Slot{Exists: true}
	if text := rows[0].text(1); text != "" {
		if s.Restart, err = wal.ParseLSN(text); err != nil {
			return Slot{}, err
		}
	}
	tli, _ := strconv.ParseUint(rows[0].text(2), 10, 32)
	s.TLI = pgwal.TLI(tli)
	return s, nil
}

// CreateSlot makes a physical slot that keeps WAL from the last checkpoint's
// start on. It reports whether it was made; one that exists already is left alone.
func (c *Conn) CreateSlot(ctx context.Context, name string) (created bool, err error) {
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" || name == "" || len(name) > 63 {
		return false, &Problem{Kind: BadDSN, Final: true, Err: fmt.Errorf("replication slot %q", name), Remedy: "use 1 to 63 lower-case letters, digits and underscores"}
	}
	// The form without parentheses is understood by every version.
	_, err = c.query(ctx, "CREATE_REPLICATION_SLOT "+pgwire.QuoteIdentifier(name)+" PHYSICAL RESERVE_WAL")
	if sqlState(err) == "42710" {
		return false, nil
	}
	return err == nil, err
}

// DropSlot removes a slot. A slot that does not exist is no error.
func (c *Conn) DropSlot(ctx context.Context, name string) error {
	_, err := c.query(ctx, "DROP_REPLICATION_SLOT "+pgwire.QuoteIdentifier(name))
	if KindOf(err) == NoSlot {
		return nil
	}
	return err
}
