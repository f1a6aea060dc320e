package wal

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// NodeID names an acceptor; 0 is no node.
type NodeID uint64

// CreationID is stamped on every member when a timeline is created. A name
// that is deleted and created again gets another one: it is another log.
type CreationID [16]byte

// ProposerID is drawn at random by each proposer instance.
type ProposerID [16]byte

func (c CreationID) String() string { return hex.EncodeToString(c[:]) }
func (p ProposerID) String() string { return hex.EncodeToString(p[:]) }

// IsZero reports whether no id was set.
func (c CreationID) IsZero() bool { return c == CreationID{} }

// IsZero reports whether no id was set.
func (p ProposerID) IsZero() bool { return p == ProposerID{} }

// TimelineID names one independent log as tenant/timeline. Both parts are
// lower-case DNS labels (RFC 1123: letters, digits and inner hyphens, at most
// 63 bytes), so they are safe as directory names.
type TimelineID struct{ Tenant, Timeline string }

func (t TimelineID) String() string { return t.Tenant + "/" + t.Timeline }

// ParseTimelineID parses and checks tenant/timeline.
func ParseTimelineID(s string) (TimelineID, error) {
	tenant, timeline, ok := strings.Cut(s, "/")
	t := TimelineID{tenant, timeline}
	if !ok {
		return TimelineID{}, fmt.Errorf("timeline %q: expected tenant/timeline, such as prod/main", s)
	}
	return t, t.Validate()
}

// MarshalText makes names print as tenant/timeline in JSON and in flags.
func (t TimelineID) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText parses what MarshalText wrote.
func (t *TimelineID) UnmarshalText(b []byte) error {
	v, err := ParseTimelineID(string(b))
	if err != nil {
		return err
	}
	*t = v
	return nil
}

// Validate reports a part that is not a lower-case DNS label.
func (t TimelineID) Validate() error {
	for _, p := range [2]struct{ what, label string }{{"tenant", t.Tenant}, {"timeline", t.Timeline}} {
		if !isLabel(p.label) {
			return fmt.Errorf("%s %q: expected 1 to 63 lower-case letters, digits and hyphens, with no hyphen at either end", p.what, p.label)
		}
	}
	return nil
}

func isLabel(s string) bool {
	if len(s) == 0 || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}
