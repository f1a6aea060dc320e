package pgclient

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/seed7f3f3bb8/holdfast/bridge/pgwire"
)

// TestEndOfTimelineToleratesLateKeepalives plays a walsender that answers a
// status report between its own CopyDone and the client's.
func TestEndOfTimelineToleratesLateKeepalives(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	go func() {
		defer theirs.Close()
		b := pgproto3.NewBackend(theirs, theirs)
		b.Send(&pgproto3.CopyDone{})
		b.Flush()
		if _, err := b.Receive(); err != nil { // the client's CopyDone
			return
		}
		k := pgwire.Keepalive{ServerEnd: 7}
		theirs.Write(k.AppendFrame(nil))
		b.Send(&pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{Name: []byte("next_tli")}, {Name: []byte("next_tli_startpos")}}})
		b.Send(&pgproto3.DataRow{Values: [][]byte{[]byte("4"), []byte("0/2F000170")}})
		b.Send(&pgproto3.CommandComplete{CommandTag: []byte("START_STREAMING")})
		b.Send(&pgproto3.CommandComplete{CommandTag: []byte("START_REPLICATION")})
		b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		b.Flush()
	}()
	c := &Conn{conn: ours, reader: pgwire.NewReader(ours), streaming: true}
	m, err := c.Receive(time.Minute)
	if err != nil || m.Next != (Next{4, 0x2F000170}) {
		t.Fatalf("%+v, %v", m, err)
	}
}

func TestQueryEndsWithItsContext(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	go func() {
		b := make([]byte, 100)
		for {
			if _, err := theirs.Read(b); err != nil {
				return
			}
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	c := &Conn{conn: ours, reader: pgwire.NewReader(ours)}
	if _, err := c.Identify(ctx); err == nil {
		t.Fatal("an answer came from nobody")
	}
}

func TestVersionsAndDurations(t *testing.T) {
	for text, want := range map[string]int{"15.18 (Debian 15.18-0+deb12u1)": 15, "17beta1": 17, "13.4": 13} {
		if v, err := MajorVersion(text); v != want || err != nil {
			t.Errorf("%q: %d %v", text, v, err)
		}
	}
	for text, want := range map[string]time.Duration{"1min": time.Minute, "4s": 4 * time.Second, "500ms": 500 * time.Millisecond, "0": 0, "1h": time.Hour} {
		if d, err := parseDuration(text); d != want || err != nil {
			t.Errorf("%q: %v %v", text, d, err)
		}
	}
	for _, bad := range []string{"", "x", "9.6", "-1s"} {
		if _, err := MajorVersion(bad); err == nil {
			t.Error(bad)
		}
		if _, err := parseDuration(bad); err == nil {
			t.Error(bad)
		}
	}
}
