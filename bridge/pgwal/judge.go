package pgwal

import (
	"fmt"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Refusal says why a PostgreSQL server may not write a log.
type Refusal string

const (
	// Stale: the log went on, on a TLI that this server does not descend from.
	Stale Refusal = "stale primary"
	// Behind: the server has less than the log on the same TLI; it would write
	// other bytes at positions that may have been acknowledged.
	Behind Refusal = "primary behind the log"
	// BelowCommit: the server was promoted below what may have been committed.
	BelowCommit Refusal = "promoted below the commit position"
	// Unreachable: the server's WAL begins after the log's end.
	Unreachable Refusal = "gap between log and primary"
	// Unproven: no byte that both have is left to compare.
	Unproven Refusal = "identity not provable"
	// Shut: the log was fenced, and the server does not come from a recovery of it.
	Shut Refusal = "fenced log"
	// Foreign: another cluster, another version, another segment size, or other bytes.
	Foreign Refusal = "not the same cluster"
)

// RefusedError is a refusal. Final means that waiting cannot change it.
type RefusedError struct {
	Refusal Refusal
	Final   bool
	Reason  string // what was found and what was expected
	Remedy  string // what to do
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s: %s; %s", e.Refusal, e.Reason, e.Remedy)
}

// Log is a Holdfast log as an election found it.
type Log struct {
	Properties     Properties // zero if nobody has ever written
	Written        bool       // someone has
	Unfence        bool       // a fence does not count: a person said so
	End            wal.LSN    // of the donor's log
	MayBeCommitted wal.LSN    // nothing below may be given up; <= End
	Commit         wal.LSN    // known to be committed; <= MayBeCommitted, which falls as more members answer
}

// Server is a PostgreSQL server as it described itself.
type Server struct {
	SystemID     uint64
	Segment      SegmentBytes
	VersionMajor int
	Ancestry     Ancestry
	Flush        wal.LSN // end of its WAL
}

// Verdict is a permission to write.
type Verdict struct {
	// Start is where the server's bytes begin to go into the log: the log's end,
	// or lower when the server was promoted there.
	Start wal.LSN
	// TLI is the server's TLI on which a stream that ends at Start is requested.
	TLI TLI
}

// Judge decides whether s may go on writing l (rules R1, R2, R4, R5 and R6).
// It compares identity and ancestry; the bytes themselves are compared by the
// caller. A refusal is a *RefusedError; with a BelowCommit that is not final the
// verdict is what would hold if enough members answered.
func Judge(l Log, s Server) (Verdict, error) {
	if !l.Written {
		if s.Flush < l.End {
			return Verdict{}, &RefusedError{Behind, true,
				fmt.Sprintf("the log begins at %v, PostgreSQL has written up to %v only", l.End, s.Flush),
				"create the timeline with the position that \"holdfast pg init\" finds on this server"}
		}
		return Verdict{l.End, s.Ancestry[s.Ancestry.At(l.End)].TLI}, nil
	}
	if err := sameCluster(l.Properties, s); err != nil {
		return Verdict{}, err
	}
	stored := l.Properties.Ancestry[:l.Properties.Ancestry.At(l.End)+1]
	common := 0
	for common < len(stored) && common < len(s.Ancestry) && stored[common] == s.Ancestry[common] {
		common++
	}
	if common == 0 || common < len(stored) {
		return Verdict{}, staleError(stored, s.Ancestry)
	}
	tli := stored[common-1].TLI
	fork, promoted := s.Ancestry.End(common - 1)
	switch {
	case l.Properties.Fenced && !l.Unfence && s.Ancestry.Last() <= l.Properties.Ancestry.Last():
		return Verdict{}, &RefusedError{Shut, true,
			fmt.Sprintf("the log was fenced, and PostgreSQL is still on timeline %d, as it was before", s.Ancestry.Last()),
			"recover a server from the acceptors and attach that one; or, if this one shall go on, attach once with --unfence"}
	case !promoted && s.Flush < l.End:
		return Verdict{}, &RefusedError{Behind, true,
			fmt.Sprintf("PostgreSQL has WAL up to %v on timeline %d, the log up to %v: it is an older copy, or it lost what it had flushed", s.Flush, tli, l.End),
			"recover it with recovery.signal and restore_command = 'holdfast wal-fetch ...', then attach again"}
	case !promoted || fork >= l.End:
		return Verdict{l.End, tli}, nil
	case fork < l.MayBeCommitted:
		remedy := "recover the new primary from the acceptors (holdfast fence, then restore_command), or begin a new timeline and keep this one as evidence"
		final := fork < l.Commit
		if !final {
			remedy = "bring a missing acceptor back, which can prove that less was committed; or " + remedy
		}
		return Verdict{fork, tli}, &RefusedError{BelowCommit, final,
			fmt.Sprintf("PostgreSQL left timeline %d at %v to become timeline %d, but positions up to %v may have been acknowledged", tli, fork, s.Ancestry[common].TLI, l.MayBeCommitted),
			remedy}
	}
	return Verdict{fork, tli}, nil
}

func sameCluster(p Properties, s Server) error {
	foreign := func(format string, args ...any) error {
		return &RefusedError{Foreign, true, fmt.Sprintf(format, args...), "connect the bridge to the cluster that writes this timeline, or use another --timeline"}
	}
	switch {
	case p.SystemID != s.SystemID:
		return foreign("PostgreSQL has system identifier %d, the log belongs to %d", s.SystemID, p.SystemID)
	case p.VersionMajor != s.VersionMajor:
		return foreign("PostgreSQL has major version %d, the log was written by version %d, and WAL of two major versions cannot be mixed", s.VersionMajor, p.VersionMajor)
	case p.Segment != s.Segment:
		return foreign("PostgreSQL has WAL segments of %v, the log was written with %v", s.Segment, p.Segment)
	}
	return nil
}

func staleError(stored, server Ancestry) error {
	last := stored[len(stored)-1]
	reason := fmt.Sprintf("the log is on timeline %d, which began at %v; PostgreSQL is on timeline %d", last.TLI, last.Begin, server.Last())
	if i := server.Find(last.TLI); i >= 0 {
		reason += fmt.Sprintf(", whose timeline %d began at %v: two servers were promoted to the same number", last.TLI, server[i].Begin)
	} else if server.Last() > last.TLI {
		reason += " and does not descend from it"
	}
	return &RefusedError{Stale, true, reason, "rejoin this server with pg_rewind -c, or make it anew from a base backup"}
}
