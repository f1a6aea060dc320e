package main

import (
	"encoding/json"
	"net"
	"strings"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/cli"
)

// TestStatusWithOneThatHangs: an acceptor that accepts connections and answers
// nothing, as a stopped process does, must not make the others unknown.
func TestStatusWithOneThatHangs(t *testing.T) {
	env, addrs := acceptors(t, 0)
	if code, _, talk := invoke(t, env, "load", "--create", "--duration", "10ms"); code != cli.OK {
		t.Fatal(talk)
	}
	hung, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hung.Close()
	names := strings.Join([]string{addrs[0], addrs[1], hung.Addr().String()}, ",")
	code, out, talk := invoke(t, env, "status", "--acceptors", names, "--timeout", "500ms", "--json")
	var r statusReport
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if code != cli.Degraded || r.Verdict != verdictDegraded {
		t.Errorf("code %d, verdict %s\n%s", code, r.Verdict, talk)
	}
	for i, m := range r.Timeline.Members {
		if known := m.Flush != nil; known != (i < 2) {
			t.Errorf("acceptor %d is known: %v", i+1, known)
		}
	}
}
