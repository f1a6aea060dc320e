package pgclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Kind is what went wrong, from a small closed set: it is a metric's label.
type Kind string

const (
	BadDSN        Kind = "bad_dsn"
	Password      Kind = "password"
	Permission    Kind = "permission"
	HBA           Kind = "pg_hba"
	NoSlot        Kind = "slot_missing"
	SlotInUse     Kind = "slot_in_use"
	NoSlots       Kind = "no_free_slot"
	NoSenders     Kind = "no_free_wal_sender"
	WALRemoved    Kind = "wal_removed"
	WALLevel      Kind = "wal_level"
	AheadOfServer Kind = "ahead_of_server"
	Standby       Kind = "standby"
	Starting      Kind = "starting"
	ShuttingDown  Kind = "shutting_down"
	Terminated    Kind = "terminated"
	Disconnected  Kind = "disconnected"
	Unreachable   Kind = "unreachable"
	TimedOut      Kind = "timeout"
	Other         Kind = "other"
)

// Problem is an error of the connection to PostgreSQL that says what to do.
type Problem struct {
	Kind   Kind
	Final  bool   // someone must change something: trying again alone will not help
	Remedy string // "" if there is nothing to say
	Err    error
}

func (p *Problem) Error() string {
	if p.Remedy == "" {
		return "PostgreSQL: " + p.Err.Error()
	}
	return fmt.Sprintf("PostgreSQL: %v; %s", p.Err, p.Remedy)
}

func (p *Problem) Unwrap() error { return p.Err }

// KindOf is the kind of a Problem in err's chain, Other without one.
func KindOf(err error) Kind {
	var p *Problem
	if errors.As(err, &p) {
		return p.Kind
	}
	return Other
}

// explain turns an error of pgconn, of the server or of the socket into a Problem.
func explain(err error) error {
	var p *Problem
	if err == nil || errors.As(err, &p) || errors.Is(err, context.Canceled) {
		return err
	}
	p = &Problem{Kind: Other, Err: err}
	var server *pgconn.PgError
	var network net.Error
	switch {
	case errors.Is(err, errStandby):
		p.Kind, p.Final = Standby, true
		p.Remedy = "connect to the primary (several hosts may be listed: host=a,b), or promote this server"
	case errors.As(err, &server):
		p.explainServer(server)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		p.Kind = Disconnected
		p.Err = errors.New("the server closed the connection")
	case errors.As(err, &network) && network.Timeout(), errors.Is(err, context.DeadlineExceeded):
		p.Kind = TimedOut
	case isConnectError(err):
		p.Kind = Unreachable
	case errors.As(err, &network):
		p.Kind = Disconnected
	}
	return p
}

func isConnectError(err error) bool {
	var c *pgconn.ConnectError
	return errors.As(err, &c)
}

func (p *Problem) explainServer(e *pgconn.PgError) {
	set := func(k Kind, final bool, remedy string) { p.Kind, p.Final, p.Remedy = k, final, remedy }
	switch {
	case e.Code == "28P01":
		set(Password, true, "check the password in the connection string, PGPASSWORD or ~/.pgpass")
	case strings.Contains(e.Message, "pg_hba.conf"):
		set(HBA, true, `add a line to pg_hba.conf whose database column is "replication", such as "host replication holdfast 10.0.0.0/24 scram-sha-256", and reload`)
	case e.Code == "28000":
		set(Permission, true, "create the role: CREATE ROLE holdfast LOGIN REPLICATION")
	case e.Code == "42501":
		set(Permission, true, "give the role the replication right: ALTER ROLE ... REPLICATION")
	case e.Code == "42704":
		set(NoSlot, false, `create it with "holdfast pg init"`)
	case e.Code == "55006":
		set(SlotInUse, false, "another client holds the slot, or a dead one until wal_sender_timeout; one slot belongs to one bridge")
	case e.Code == "58P01":
		set(WALRemoved, true, "the primary no longer has WAL that the acceptors lack: begin a new timeline with a new base backup, and let the slot keep WAL (max_slot_wal_keep_size = -1)")
	case e.Code == "53300":
		set(NoSenders, false, "raise max_wal_senders")
	case e.Code == "53400":
		set(NoSlots, true, "raise max_replication_slots or drop an unused slot")
	case e.Code == "57P03" && strings.Contains(e.Message, "shutting down"):
		set(ShuttingDown, false, "")
	case e.Code == "57P03":
		set(Starting, false, "")
	case e.Code == "57P01", e.Code == "57P02":
		set(Terminated, false, "")
	case e.Code == "55000" && strings.Contains(e.Message, "wal_level"):
		set(WALLevel, true, "set wal_level = replica and restart PostgreSQL")
	case e.Code == "55000" && strings.Contains(e.Message, "max_wal_senders"):
		set(NoSenders, true, "raise max_wal_senders")
	case strings.Contains(e.Message, "ahead of the WAL flush position"):
		set(AheadOfServer, false, "")
	}
}
