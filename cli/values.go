package cli

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// LSN is a flag that holds a position written as X/Y.
type LSN struct {
	wal.LSN
	Given bool // whether it was set at all; 0/0 is a valid position
}

// String is empty while no position was given.
func (l *LSN) String() string {
	if !l.Given {
		return ""
	}
	return l.LSN.String()
}

// Set implements pflag.Value.
func (l *LSN) Set(s string) (err error) {
	l.LSN, err = wal.ParseLSN(s)
	l.Given = err == nil
	return err
}

// Type implements pflag.Value.
func (l *LSN) Type() string { return "lsn" }

// Timeline is a flag that holds tenant/timeline.
type Timeline struct{ wal.TimelineID }

// String is empty while no timeline was given.
func (t *Timeline) String() string {
	if t.TimelineID == (wal.TimelineID{}) {
		return ""
	}
	return t.TimelineID.String()
}

// Set implements pflag.Value.
func (t *Timeline) Set(s string) (err error) {
	t.TimelineID, err = wal.ParseTimelineID(s)
	return err
}

// Type implements pflag.Value.
func (t *Timeline) Type() string { return "tenant/name" }

// Addresses is a flag that holds a comma-separated list of HOST:PORT.
type Addresses []string

// String joins the addresses as Set reads them.
func (a *Addresses) String() string { return strings.Join(*a, ",") }

// Set replaces the list.
func (a *Addresses) Set(s string) error {
	var list []string
	for _, part := range strings.Split(s, ",") {
		part = strings.TrimSpace(part)
		if err := CheckAddress(part); err != nil {
			return err
		}
		list = append(list, part)
	}
	*a = list
	return nil
}

// Type implements pflag.Value.
func (a *Addresses) Type() string { return "host:port,..." }

// CheckAddress reports an address that is not HOST:PORT.
func CheckAddress(s string) error {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return fmt.Errorf("address %q: expected HOST:PORT, such as 127.0.0.1:7001", s)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("address %q: the port must be a number from 0 to 65535", s)
	}
	return nil
}
