package pgclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/seed7f3f3bb8/holdfast/bridge/pgwire"
)

// Conn is a replication connection. Receive is for one goroutine; SendStatus
// and Close may be called by others meanwhile. Every other method needs the
// connection for itself.
type Conn struct {
	conn   net.Conn
	reader *pgwire.Reader
	params map[string]string // ParameterStatus: as reported at connect

	writeMu  sync.Mutex // one frame at a time
	writeBuf []byte     // guarded by writeMu

	streaming bool
	closed    sync.Once
}

// Config says how to reach PostgreSQL.
type Config struct {
	// DSN is a connection string or URL as libpq takes it. Several hosts may be
	// given; the first that is not a standby is taken.
	DSN string
	// ApplicationName is what synchronous_standby_names must name. The
	// connection string's own application_name wins.
	ApplicationName string
	// AllowStandby accepts a server in recovery.
	AllowStandby bool
}

const connectTimeout = 10 * time.Second

// errStandby refuses one of several hosts during connect.
var errStandby = errors.New("the server is a standby")

// parse makes the pgconn configuration of c.
func (c Config) parse() (*pgconn.Config, error) {
	cfg, err := pgconn.ParseConfig(c.DSN)
	if err != nil {
		return nil, &Problem{Kind: BadDSN, Final: true, Err: err, Remedy: `give a connection string such as "host=10.0.0.5 user=holdfast"; passwords belong into ~/.pgpass`}
	}
	cfg.RuntimeParams["replication"] = "true"
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = c.ApplicationName
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = connectTimeout
	}
	cfg.ValidateConnect = func(_ context.Context, conn *pgconn.PgConn) error {
		if !c.AllowStandby && conn.ParameterStatus("in_hot_standby") == "on" {
			return errStandby
		}
		return nil
	}
	return cfg, nil
}

// ApplicationNameOf is the application_name that a connection with c has.
func (c Config) ApplicationNameOf() (string, error) {
	cfg, err := c.parse()
	if err != nil {
		return "", err
	}
	return cfg.RuntimeParams["application_name"], nil
}

// Dial opens a replication connection. Errors are *Problem.
func Dial(ctx context.Context, c Config) (*Conn, error) {
	cfg, err := c.parse()
	if err != nil {
		return nil, err
	}
	out := &Conn{}
	cfg.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		out.reader = pgwire.NewReader(r)
		return pgproto3.NewFrontend(out.reader.HandshakeReader(), w)
	}
	pg, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, explain(err)
	}
	hijacked, err := pg.Hijack()
	if err != nil {
		return nil, explain(err)
	}
	out.conn, out.params = hijacked.Conn, hijacked.ParameterStatuses
	return out, nil
}

// Parameter is a ParameterStatus value that the server reported at connect, "" if it did not.
func (c *Conn) Parameter(name string) string { return c.params[name] }

// RemoteAddr is the server's address.
func (c *Conn) RemoteAddr() net.Addr { return c.conn.RemoteAddr() }

// Close ends the connection at once, without a farewell that PostgreSQL might
// wait for. It may be called at any time and more than once.
func (c *Conn) Close() error {
	var err error
	c.closed.Do(func() { err = c.conn.Close() })
	return err
}

// guard makes the blocking calls of one operation end when ctx does.
func (c *Conn) guard(ctx context.Context) (release func()) {
	stop := context.AfterFunc(ctx, func() { c.conn.SetDeadline(time.Unix(1, 0)) })
	return func() {
		if stop() {
			return
		}
		c.conn.SetDeadline(time.Time{})
	}
}

func (c *Conn) send(m pgproto3.FrontendMessage) error {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	b, err := m.Encode(c.writeBuf[:0])
	if err != nil {
		return err
	}
	c.writeBuf = b[:0]
	_, err = c.conn.Write(b)
	return err
}

// unexpected reports a message that the protocol does not allow here.
func unexpected(kind byte, during string) error {
	return fmt.Errorf("PostgreSQL sent a message of type %q during %s", kind, during)
}
