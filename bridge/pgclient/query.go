package pgclient

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// row is one row of a simple query's answer; nil is NULL.
type row []*string

func (r row) text(i int) string {
	if i >= len(r) || r[i] == nil {
		return ""
	}
	return *r[i]
}

// rowsMax bounds an answer; replication commands answer with one row.
const rowsMax = 1000

// query runs one replication command and collects its rows.
func (c *Conn) query(ctx context.Context, text string) ([]row, error) {
	if c.streaming {
		return nil, errors.New("the connection is streaming WAL")
	}
	defer c.guard(ctx)()
	if err := c.send(&pgproto3.Query{String: text}); err != nil {
		return nil, explain(err)
	}
	return c.rows(ctx, text)
}

// rows reads until the server is ready for the next command, or copying in both directions.
func (c *Conn) rows(ctx context.Context, during string) (rows []row, err error) {
	for {
		kind, body, readErr := c.reader.Next()
		if readErr != nil {
			if ctx.Err() != nil {
				readErr = ctx.Err()
			}
			return nil, explain(readErr)
		}
		switch kind {
		case 'D':
			var m pgproto3.DataRow
			if err := m.Decode(body); err != nil {
				return nil, err
			}
			if len(rows) == rowsMax {
				return nil, errors.New("PostgreSQL's answer has too many rows")
			}
			r := make(row, len(m.Values))
			for i, v := range m.Values {
				if v != nil {
					s := string(v)
					r[i] = &s
				}
			}
			rows = append(rows, r)
		case 'E':
			err = serverError(body)
			if isFatal(err) {
				return nil, explain(err)
			}
		case 'W':
			c.streaming = true
			return rows, nil
		case 'Z':
			if err != nil {
				return nil, explain(err)
			}
			return rows, nil
		case 'C', 'T', 'S', 'N':
		case 'd', 'c':
			// A walsender that has ended a stream still answers status reports
			// until it has seen that the client has ended it too.
		default:
			return nil, explain(unexpected(kind, during))
		}
	}
}

func serverError(body []byte) error {
	var m pgproto3.ErrorResponse
	if err := m.Decode(body); err != nil {
		return err
	}
	return pgconn.ErrorResponseToPgError(&m)
}

// isFatal reports whether the server ends the session after the error.
func isFatal(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && (e.Severity == "FATAL" || e.Severity == "PANIC" ||
		e.SeverityUnlocalized == "FATAL" || e.SeverityUnlocalized == "PANIC")
}
