package pgclient

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/seed7f3f3bb8/holdfast/bridge/pgwal"
	"github.com/seed7f3f3bb8/holdfast/bridge/pgwire"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// Next says where a stream continues after its TLI has ended.
type Next struct {
	TLI   pgwal.TLI // 0: the TLI has not ended
	Begin wal.LSN   // where that TLI began
}

// Message is what Receive returns: exactly one of its fields is set.
type Message struct {
	Data      pgwire.XLogData // Data.Data is not nil: WAL, valid until the next Receive
	Keepalive pgwire.Keepalive
	IsAlive   bool // Keepalive is set
	Next      Next // Next.TLI is not 0: the stream is over
}

// ErrShutdown is returned by Receive when the server ended the stream because it shuts down.
var ErrShutdown = &Problem{Kind: ShuttingDown, Err: errors.New("the server ended the stream: it is shutting down")}

// Start begins to stream tli from start; slot may be "". If nothing is left to
// stream on tli the connection stays as it is and the answer says where to go on.
// The server reports some faults, such as removed WAL, only through Receive.
func (c *Conn) Start(ctx context.Context, slot string, start wal.LSN, tli pgwal.TLI) (Next, error) {
	text := "START_REPLICATION "
	if slot != "" {
		text += "SLOT " + pgwire.QuoteIdentifier(slot) + " "
	}
	rows, err := c.query(ctx, text+fmt.Sprintf("PHYSICAL %v TIMELINE %d", start, tli))
	if err != nil {
		return Next{}, err
	}
	if c.streaming {
		return Next{}, nil
	}
	return parseNext(rows)
}

func parseNext(rows []row) (Next, error) {
	if len(rows) == 0 {
		return Next{}, ErrShutdown
	}
	tli, err := strconv.ParseUint(rows[0].text(0), 10, 32)
	if err != nil || tli == 0 {
		return Next{}, fmt.Errorf("end of a timeline: the next one is %q", rows[0].text(0))
	}
	begin, err := wal.ParseLSN(rows[0].text(1))
	return Next{pgwal.TLI(tli), begin}, err
}

// Receive returns the next message of a stream. It fails with a timeout if
// nothing comes for idle; 0 waits for ever.
func (c *Conn) Receive(idle time.Duration) (m Message, err error) {
	for {
		if idle > 0 && !c.reader.Buffered() {
			c.conn.SetReadDeadline(time.Now().Add(idle))
		}
		kind, body, err := c.reader.Next()
		if err != nil {
			return m, explain(err)
		}
		switch kind {
		case 'd':
			if len(body) == 0 {
				return m, explain(&pgwire.MessageError{Message: "CopyData", Reason: "it is empty"})
			}
			switch body[0] {
			case 'w':
				if err := m.Data.Decode(body); err != nil {
					return m, explain(err)
				}
				return m, nil
			case 'k':
				if err := m.Keepalive.Decode(body); err != nil {
					return m, explain(err)
				}
				m.IsAlive = true
				return m, nil
			}
			return m, explain(unexpected(body[0], "streaming"))
		case 'c':
			m.Next, err = c.endOfTLI()
			return m, err
		case 'C':
			return m, ErrShutdown
		case 'E':
			return m, explain(serverError(body))
		case 'S', 'N':
		default:
			return m, explain(unexpected(kind, "streaming"))
		}
	}
}

// endOfTLI answers the server's CopyDone and reads where the next TLI begins.
func (c *Conn) endOfTLI() (Next, error) {
	c.conn.SetReadDeadline(time.Now().Add(connectTimeout))
	defer c.conn.SetReadDeadline(time.Time{})
	if err := c.send(&pgproto3.CopyDone{}); err != nil {
		return Next{}, explain(err)
	}
	c.streaming = false
	rows, err := c.rows(context.Background(), "the end of a timeline")
	if err != nil {
		return Next{}, err
	}
	return parseNext(rows)
}

// SendStatus reports positions to the walsender. A position of 0 says that it
// is unknown; it acknowledges nothing.
func (c *Conn) SendStatus(s pgwire.StatusUpdate) error {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	s.Time = pgwire.Micros(time.Now())
	c.writeBuf = s.AppendFrame(c.writeBuf[:0])
	_, err := c.conn.Write(c.writeBuf)
	if err != nil {
		return explain(err)
	}
	return nil
}

// SetWriteDeadline bounds how long SendStatus may block.
func (c *Conn) SetWriteDeadline(t time.Time) { c.conn.SetWriteDeadline(t) }

func sqlState(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
