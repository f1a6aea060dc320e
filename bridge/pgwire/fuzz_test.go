package pgwire

import (
	"bytes"
	"testing"
)

func FuzzDecode(f *testing.F) {
	k, s, h := Keepalive{ServerEnd: 1}, StatusUpdate{Write: 1}, HotStandbyFeedback{Xmin: 1}
	x := XLogData{Start: 1, Data: []byte("abc")}
	for _, b := range [][]byte{k.AppendFrame(nil), s.AppendFrame(nil), h.AppendFrame(nil), append(x.AppendHeader(nil), x.Data...), {'d', 0, 0, 0, 3}, nil} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		rd := NewReader(bytes.NewReader(b))
		for read := 0; ; {
			_, body, err := rd.Next()
			if err != nil {
				return
			}
			if read += 5 + len(body); read > len(b) {
				t.Fatal("more was handed out than came in")
			}
			var (
				k Keepalive
				s StatusUpdate
				h HotStandbyFeedback
				x XLogData
			)
			frame := append([]byte{'d', 0, 0, 0, byte(4 + len(body))}, body...)
			if s.Decode(body) == nil && body[33] < 2 && !bytes.Equal(s.AppendFrame(nil), frame) {
				t.Fatal("status update does not encode to itself")
			}
			if k.Decode(body) == nil && body[17] < 2 && !bytes.Equal(k.AppendFrame(nil), frame) {
				t.Fatal("keepalive does not encode to itself")
			}
			if h.Decode(body) == nil && !bytes.Equal(h.AppendFrame(nil), frame) {
				t.Fatal("feedback does not encode to itself")
			}
			if x.Decode(body) == nil && !bytes.Equal(append(x.AppendHeader(nil), x.Data...)[5:], body) {
				t.Fatal("XLogData does not encode to itself")
			}
		}
	})
}

func FuzzParseCommand(f *testing.F) {
	for _, s := range []string{"IDENTIFY_SYSTEM", "START_REPLICATION SLOT \"a\" PHYSICAL 0/1 TIMELINE 2", "CREATE_REPLICATION_SLOT a PHYSICAL (RESERVE_WAL)", "SHOW a.b", "'", "\"\"\""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := ParseCommand(s)
		if err == nil && c.Verb == StartReplication && c.Name != "" {
			again, err := ParseCommand("START_REPLICATION SLOT " + QuoteIdentifier(c.Name) + " " + c.Start.String())
			if err != nil || again.Name != c.Name || again.Start != c.Start {
				t.Fatalf("%+v came back as %+v, %v", c, again, err)
			}
		}
	})
}
