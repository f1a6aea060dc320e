package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/cli"
	holdfastv1 "github.com/seed7f3f3bb8/holdfast/proto/holdfast/v1"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

var statusMembers = wal.Membership{Generation: 1, Members: []wal.Member{{ID: 1, Addr: "a:1"}, {ID: 2, Addr: "b:1"}, {ID: 3, Addr: "c:1"}}}

// answersOf makes three acceptors' answers, of which those named are away.
func answersOf(away ...string) (nodes []admin.Answer[admin.Node], copies []admin.Answer[*admin.Timeline]) {
	for i, m := range statusMembers.Members {
		n := admin.Answer[admin.Node]{Addr: m.Addr, Value: admin.Node{ID: m.ID, Info: &holdfastv1.GetNodeResponse{NodeId: uint64(m.ID), Ready: true}}}
		c := admin.Answer[*admin.Timeline]{Addr: m.Addr, Value: &admin.Timeline{
			ID: wal.TimelineID{Tenant: "prod", Timeline: "main"}, Node: m.ID, Membership: statusMembers,
			LastLogTerm: 1, Write: 1000, Flush: wal.LSN(1000 - 100*i), Commit: 900, Proposer: &admin.Proposer{Addr: "p:1"},
		}}
		for _, x := range away {
			if x == m.Addr {
				n.Err, c.Err, c.Value = admin.ErrUnreachable, admin.ErrUnreachable, nil
			}
		}
		nodes, copies = append(nodes, n), append(copies, c)
	}
	return nodes, copies
}

func statusOf(away ...string) *statusReport {
	nodes, copies := answersOf(away...)
	r := &statusReport{Verdict: verdictOK}
	r.addNodes(nodes)
	r.addTimeline(wal.TimelineID{Tenant: "prod", Timeline: "main"}, copies)
	return r
}

func TestStatusVerdicts(t *testing.T) {
	for _, c := range []struct {
		away []string
		want cli.Code
	}{
		{nil, cli.OK},
		{[]string{"b:1"}, cli.Degraded},
		{[]string{"a:1", "b:1"}, cli.NoQuorum},
		{[]string{"a:1", "b:1", "c:1"}, cli.NoQuorum},
	} {
		if got := codeOfNil(statusOf(c.away...).err()); got != c.want {
			t.Errorf("away %v: exit code %d, want %d", c.away, got, c.want)
		}
	}
	nodes, copies := answersOf()
	for i := range copies {
		copies[i].Err, copies[i].Value = admin.ErrNotFound, nil
	}
	r := &statusReport{Verdict: verdictOK}
	r.addNodes(nodes)
	r.addTimeline(wal.TimelineID{Tenant: "prod", Timeline: "none"}, copies)
	if got := codeOfNil(r.err()); got != cli.NotFound {
		t.Errorf("nobody has it: exit code %d", got)
	}
	_, alone := answersOf()
	for _, x := range alone {
		x.Value.Proposer = nil
	}
	r = &statusReport{Verdict: verdictOK}
	r.addTimeline(alone[0].Value.ID, alone)
	if r.Verdict != verdictDegraded || !strings.Contains(strings.Join(r.Why, " "), "c:1 lacks 100 B") || len(r.Why) != 1 {
		t.Errorf("a member that lacks what is committed, and nobody to bring it: %+v", r)
	}
	_, sick := answersOf()
	sick[0].Value.Health, sick[0].Value.HealthReason = wal.Quarantined, "bits have rotted"
	r = &statusReport{Verdict: verdictOK}
	r.addTimeline(sick[0].Value.ID, sick)
	if r.Verdict != verdictDegraded || !strings.Contains(strings.Join(r.Why, " "), "bits have rotted") {
		t.Errorf("a damaged copy: %+v", r)
	}
}

func codeOfNil(err error) cli.Code {
	if err == nil {
		return cli.OK
	}
	return codeOf(err)
}

// TestStatusUnknownIsAValue: what an acceptor did not say must not look like
// something that it said.
func TestStatusUnknownIsAValue(t *testing.T) {
	r := statusOf("b:1")
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back struct {
		Timeline struct {
			Members []map[string]any `json:"members"`
		} `json:"timeline"`
	}
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"node", "term", "flush_lsn", "commit_lsn", "lag_bytes", "last_contact_seconds"} {
		if v, there := back.Timeline.Members[1][field]; !there || v != nil {
			t.Errorf("%s of an acceptor that is away is %v, want null", field, v)
		}
	}
	if lag := back.Timeline.Members[2]["lag_bytes"]; lag != 200.0 {
		t.Errorf("lag %v, want 200", lag)
	}
	// Nobody has been heard from since the start: that is unknown too, not an age of 0.
	if v := back.Timeline.Members[0]["last_contact_seconds"]; v != nil {
		t.Errorf("age of a contact that never was: %v", v)
	}
	var out bytes.Buffer
	if err := r.print(&app{Streams: &cli.Streams{Out: &out, Err: &out}}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "b:1       unknown") {
		t.Errorf("printed\n%s", out.String())
	}
	if errors.Is(r.err(), admin.ErrNoQuorum) {
		t.Error("two of three are a quorum")
	}
}
