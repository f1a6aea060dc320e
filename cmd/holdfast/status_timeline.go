package main

import (
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/cli"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// addTimeline adds what the acceptors say of one timeline.
func (r *statusReport) addTimeline(id wal.TimelineID, answers []admin.Answer[*admin.Timeline]) {
	t := &timelineStatus{Timeline: id}
	r.Timeline = t
	best, err := admin.Best(answers)
	switch {
	case errors.Is(err, admin.ErrNotFound):
		r.worsen(verdictNotFound, fmt.Sprintf("no acceptor has %v", id))
	case err != nil:
		r.worsen(verdictNoQuorum, fmt.Sprintf("no majority of the members of %v answers", id))
	}
	furthest := wal.LSN(0)
	driven := false // by a proposer, which brings what a member lacks
	for _, x := range answers {
		if x.Err != nil {
			continue
		}
		driven = driven || x.Value.Proposer != nil
		furthest = max(furthest, x.Value.Flush)
		if t.Commit == nil || *t.Commit < x.Value.Commit {
			t.Commit = &x.Value.Commit
		}
	}
	if best.Value != nil {
		t.Creation = best.Value.Creation.String()
	}
	for _, x := range answers {
		m := memberStatus{Addr: x.Addr, Health: "unknown"}
		if x.Err != nil {
			m.Error = x.Err.Error()
			if lostAt(x, best.Value) {
				m.Health, m.Reason = wal.Lost.String(), "it is a member and has no copy"
				r.worsen(verdictDegraded, fmt.Sprintf("acceptor %s is a member of %v and has lost its copy; fill it for reading with holdfast timeline fill", x.Addr, id))
			}
			if !errors.Is(err, admin.ErrNotFound) && !errors.Is(x.Err, admin.ErrUnreachable) {
				r.worsen(verdictDegraded, fmt.Sprintf("acceptor %s: %v", x.Addr, x.Err))
			}
			t.Members = append(t.Members, m)
			continue
		}
		m.fill(x.Value, furthest)
		if x.Value.Health != wal.Healthy {
			r.worsen(verdictDegraded, fmt.Sprintf("acceptor %s: %v is %v: %s", x.Addr, id, x.Value.Health, x.Value.HealthReason))
		}
		switch {
		case best.Value == nil || x.Value.Health == wal.Lost:
		case x.Value.Creation != best.Value.Creation:
			r.worsen(verdictDegraded, fmt.Sprintf("acceptor %s has another creation of %v", x.Addr, id))
		case x.Value.Flush < *t.Commit && !driven:
			r.worsen(verdictDegraded, fmt.Sprintf("acceptor %s lacks %s that is committed, and no proposer is connected: the next one brings it the rest", x.Addr, cli.Bytes(*t.Commit-x.Value.Flush).Human()))
		}
		t.Members = append(t.Members, m)
	}
}

// lostAt reports whether an acceptor that knows nothing of a timeline should:
// known says that it is a member, and someone has written.
func lostAt(x admin.Answer[*admin.Timeline], known *admin.Timeline) bool {
	return errors.Is(x.Err, admin.ErrNotFound) && known != nil && known.Term != 0 &&
		slices.ContainsFunc(known.Membership.Members, func(m wal.Member) bool { return m.Addr == x.Addr })
}

func (m *memberStatus) fill(v *admin.Timeline, furthest wal.LSN) {
	lag := uint64(furthest - v.Flush)
	for _, d := range v.Damage {
		m.Damage = append(m.Damage, damageOf(d.Begin, d.End, fmt.Sprintf("%016x%s", d.Segment, segmentSuffix), d.Offset, d.Reason))
	}
	m.Node, m.Health, m.Reason = &v.Node, v.Health.String(), v.HealthReason
	m.Term, m.LastLogTerm = &v.Term, &v.LastLogTerm
	m.Write, m.Flush, m.Commit, m.Horizon, m.Oldest = &v.Write, &v.Flush, &v.Commit, &v.Horizon, &v.Oldest
	m.LagBytes, m.DiskBytes = &lag, &v.DiskBytes
	if v.Proposer != nil {
		m.Proposer = v.Proposer.Addr
	}
	if v.Contacted {
		seconds := v.LastContact.Seconds()
		m.ContactAge = &seconds
	}
}

func (t *timelineStatus) print(a *app) {
	commit := "unknown"
	if t.Commit != nil {
		commit = t.Commit.String()
	}
	fmt.Fprintf(a.Out, "\n%v  commit %s  creation %s\n", t.Timeline, commit, or(t.Creation, "unknown"))
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ACCEPTOR\tNODE\tHEALTH\tTERM\tFLUSH\tLAG\tCOMMIT\tHORIZON\tOLDEST\tDISK\tPROPOSER\tLAST CONTACT")
	for _, m := range t.Members {
		if m.Node == nil {
			fmt.Fprintf(w, "%s\tunknown\t%s\tunknown\tunknown\tunknown\tunknown\tunknown\tunknown\tunknown\tunknown\tunknown\n", m.Addr, m.Health)
			continue
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%d\t%v\t%s\t%v\t%v\t%v\t%s\t%s\t%s\n", m.Addr, *m.Node, m.Health, *m.Term, *m.Flush, cli.Bytes(*m.LagBytes).Human(),
			*m.Commit, *m.Horizon, *m.Oldest, cli.Bytes(*m.DiskBytes).Human(), or(m.Proposer, "none"), age(m.ContactAge))
	}
	_ = w.Flush() // a.Out's next write says what is wrong with it
}
