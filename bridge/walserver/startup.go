package walserver

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"go.uber.org/zap"

	"github.com/seed7f3f3bb8/holdfast/bridge/quorum"
)

// conn is one client.
type conn struct {
	server  *Server
	id      uint32
	raw     net.Conn // as accepted
	net     net.Conn // raw, or TLS over it
	backend *pgproto3.Backend
	log     *zap.Logger
	full    bool // there is no place for it
	user    string
	name    string // application_name
	view    quorum.View
}

// bodyBytesMax bounds what a client may send in one message.
const bodyBytesMax = 64 << 10

func (c *conn) serve(ctx context.Context) error {
	c.raw.SetDeadline(time.Now().Add(startupTimeout))
	startup, err := c.negotiate()
	if err != nil || startup == nil {
		return ignoreEOF(err)
	}
	c.user, c.name = startup.Parameters["user"], startup.Parameters["application_name"]
	if err := c.admit(startup); err != nil {
		return err
	}
	if err := c.authenticate(); err != nil {
		return err
	}
	if c.view, err = c.look(ctx); err != nil {
		return c.fatal("57P03", "the log cannot be served now: "+err.Error())
	}
	c.backend.Send(&pgproto3.AuthenticationOk{})
	major := c.view.Properties.VersionMajor
	for _, p := range [][2]string{
		{"server_version", fmt.Sprintf("%d.0 (Holdfast)", major)}, {"server_encoding", "UTF8"}, {"client_encoding", "UTF8"},
		{"integer_datetimes", "on"}, {"DateStyle", "ISO, MDY"}, {"IntervalStyle", "postgres"}, {"TimeZone", "UTC"},
		{"standard_conforming_strings", "on"}, {"application_name", c.name}, {"is_superuser", "off"}, {"session_authorization", c.user},
	} {
		c.backend.Send(&pgproto3.ParameterStatus{Name: p[0], Value: p[1]})
	}
	c.backend.Send(&pgproto3.BackendKeyData{ProcessID: c.id, SecretKey: binary.BigEndian.AppendUint32(nil, c.id)})
	if err := c.ready(); err != nil {
		return err
	}
	c.raw.SetDeadline(time.Time{})
	return ignoreEOF(c.commands(ctx))
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// negotiate answers requests for encryption until the startup message comes;
// nil for a connection that wants something else.
func (c *conn) negotiate() (*pgproto3.StartupMessage, error) {
	c.use(c.raw)
	for range 3 {
		m, err := c.backend.ReceiveStartupMessage()
		if err != nil {
			return nil, err
		}
		switch m := m.(type) {
		case *pgproto3.StartupMessage:
			return m, nil
		case *pgproto3.SSLRequest:
			if c.server.config.TLS == nil || c.net != c.raw {
				_, err = c.net.Write([]byte{'N'})
				break
			}
			if _, err = c.net.Write([]byte{'S'}); err != nil {
				break
			}
			// Bytes sent ahead of the handshake stay behind with the old backend.
			t := tls.Server(c.raw, c.server.config.TLS)
			if err = t.Handshake(); err != nil {
				return nil, fmt.Errorf("TLS: %w", err)
			}
			c.use(t)
		case *pgproto3.GSSEncRequest:
			_, err = c.net.Write([]byte{'N'})
		default: // a request to cancel something: there is nothing to cancel
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, errors.New("no startup message came")
}

// use speaks the protocol over n.
func (c *conn) use(n net.Conn) {
	c.net = n
	c.backend = pgproto3.NewBackend(n, n)
	c.backend.SetMaxBodyLen(bodyBytesMax)
}

// admit refuses what cannot be served before asking for a password.
func (c *conn) admit(m *pgproto3.StartupMessage) error {
	switch replication := strings.ToLower(m.Parameters["replication"]); {
	case c.full:
		return c.fatal("53300", "there are too many connections to this WAL server")
	case c.server.config.RequireTLS && c.net == c.raw:
		return c.fatal("28000", "this WAL server wants TLS: connect with sslmode=require or better")
	case replication != "true" && replication != "on" && replication != "yes" && replication != "1":
		return c.fatal("0A000", "this is a WAL server of Holdfast: it takes physical replication connections only")
	}
	return nil
}

// look asks a majority for the log.
func (c *conn) look(ctx context.Context) (quorum.View, error) {
	ctx, cancel := context.WithTimeout(ctx, viewTimeout)
	defer cancel()
	v, err := c.server.config.Source.View(ctx)
	if err == nil && !v.Written {
		err = errors.New("no PostgreSQL has written it yet")
	}
	return v, err
}

// fatal tells the client why the connection ends, and returns that.
func (c *conn) fatal(code, message string) error {
	c.backend.Send(&pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: code, Message: message})
	c.backend.Flush()
	return errors.New(message)
}

// refuse tells the client that a command failed; the connection goes on.
func (c *conn) refuse(code, format string, args ...any) {
	c.backend.Send(&pgproto3.ErrorResponse{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: code, Message: fmt.Sprintf(format, args...)})
}

func (c *conn) ready() error {
	c.backend.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	return c.backend.Flush()
}
