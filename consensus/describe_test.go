package consensus

import (
	"fmt"
	"strings"

	"github.com/seed7f3f3bb8/holdfast/wal"
)

// short prints an LSN below 4 GiB without its upper half.
func short(l wal.LSN) string { return strings.TrimPrefix(l.String(), "0/") }

func terms(h wal.History) string {
	var s []string
	for _, p := range h {
		s = append(s, fmt.Sprintf("%d@%s", p.Term, short(p.LSN)))
	}
	return "[" + strings.Join(s, " ") + "]"
}

// describe prints a message for a person.
func describe(m Message) string {
	switch m := m.(type) {
	case *Greeting:
		return fmt.Sprintf("Greeting %s connection %d generation %d", name(m.Proposer[0]), m.Connection, m.Membership.Generation)
	case *VoteRequest:
		return fmt.Sprintf("VoteRequest term %d", m.Term)
	case *Elected:
		return fmt.Sprintf("Elected term %d resume %s history %s", m.Term, short(m.Resume), terms(m.History))
	case *AppendRequest:
		if len(m.Data) == 0 {
			return fmt.Sprintf("heartbeat term %d commit %s horizon %s", m.Term, short(m.Commit), short(m.Horizon))
		}
		return fmt.Sprintf("AppendRequest term %d begin %s %s commit %s horizon %s", m.Term, short(m.Begin), readable(m.Data), short(m.Commit), short(m.Horizon))
	case *AcceptorGreeting:
		return fmt.Sprintf("AcceptorGreeting term %d flush %s commit %s %v", m.Term, short(m.Flush), short(m.Commit), m.Health)
	case *VoteResponse:
		granted := "refused"
		if m.Granted {
			granted = "granted"
		}
		return fmt.Sprintf("VoteResponse term %d %s flush %s commit %s horizon %s history %s", m.Term, granted, short(m.Flush), short(m.Commit), short(m.Horizon), terms(m.History))
	case *AppendResponse:
		if m.Flush == 0 {
			return fmt.Sprintf("AppendResponse term %d", m.Term)
		}
		return fmt.Sprintf("AppendResponse term %d flush %s commit %s", m.Term, short(m.Flush), short(m.Commit))
	case *PeerCommit:
		return fmt.Sprintf("PeerCommit last log term %d commit %s", m.LastLogTerm, short(m.Commit))
	}
	return fmt.Sprintf("%T", m)
}

// readable prints bytes that are writers' ids as their names.
func readable(data []byte) string {
	for _, c := range data {
		if c > 26 {
			return fmt.Sprintf("%q", data)
		}
	}
	return letters(string(data))
}
