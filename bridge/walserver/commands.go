package walserver

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgproto3"
	"go.uber.org/zap"

	"github.com/seed7f3f3bb8/holdfast/bridge/pgwal"
	"github.com/seed7f3f3bb8/holdfast/bridge/pgwire"
	"github.com/seed7f3f3bb8/holdfast/bridge/quorum"
)

// served is the ancestry as far as it is committed: what lies beyond might
// still be given up.
func served(v quorum.View) pgwal.Ancestry {
	a := v.Properties.Ancestry
	return a[:a.At(v.Commit)+1]
}

// Types of result columns.
const (
	oidText = 25
	oidInt4 = 23
	oidInt8 = 20
)

type column struct {
	name  string
	oid   uint32
	value []byte // nil = NULL
}

func text(name, value string) column { return column{name, oidText, []byte(value)} }

// row sends a result of one row; the command's own completion follows.
func (c *conn) row(columns ...column) {
	var d pgproto3.RowDescription
	var r pgproto3.DataRow
	for _, x := range columns {
		size := map[uint32]int16{oidText: -1, oidInt4: 4, oidInt8: 8}[x.oid]
		d.Fields = append(d.Fields, pgproto3.FieldDescription{Name: []byte(x.name), DataTypeOID: x.oid, DataTypeSize: size, TypeModifier: -1})
		r.Values = append(r.Values, x.value)
	}
	c.backend.Send(&d)
	c.backend.Send(&r)
}

func (c *conn) complete(tag string) {
	c.backend.Send(&pgproto3.CommandComplete{CommandTag: []byte(tag)})
}

// commands runs one command after another until the client leaves.
func (c *conn) commands(ctx context.Context) error {
	for {
		m, err := c.backend.Receive()
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case *pgproto3.Terminate:
			return nil
		case *pgproto3.Query:
			if err := c.command(ctx, m.String); err != nil {
				return err
			}
			if err := c.ready(); err != nil {
				return err
			}
		case *pgproto3.Sync:
			if err := c.ready(); err != nil {
				return err
			}
		case *pgproto3.CopyData, *pgproto3.CopyDone, *pgproto3.CopyFail: // what was under way when a stream ended
		default:
			c.refuse("08P01", "a replication connection takes simple queries only")
			if err := c.backend.Flush(); err != nil {
				return err
			}
		}
	}
}

// command runs one command. An error ends the connection; what only the command
// fails with has been sent.
func (c *conn) command(ctx context.Context, query string) error {
	cmd, err := pgwire.ParseCommand(query)
	if err != nil {
		c.refuse("42601", "%v", err)
		return nil
	}
	c.log.Debug("command", zap.String("command", query))
	v, err := c.look(ctx)
	if err != nil {
		c.refuse("57P03", "the log cannot be served now: %v", err)
		return nil
	}
	c.view = v
	switch cmd.Verb {
	case pgwire.IdentifySystem:
		c.row(text("systemid", strconv.FormatUint(v.Properties.SystemID, 10)),
			column{"timeline", oidInt4, []byte(strconv.FormatUint(uint64(served(v).Last()), 10))},
			text("xlogpos", v.Commit.String()), column{"dbname", oidText, nil})
	case pgwire.Show:
		value, ok := c.setting(cmd.Name)
		if !ok {
			c.refuse("42704", "unrecognized configuration parameter %q", cmd.Name)
			return nil
		}
		c.row(text(cmd.Name, value))
	case pgwire.TimelineHistory:
		return c.history(pgwal.TLI(cmd.Timeline))
	case pgwire.StartReplication:
		return c.start(ctx, cmd)
	case pgwire.BaseBackup:
		c.refuse("0A000", "a WAL server has no data files: take the base backup from a PostgreSQL server")
		return nil
	default:
		return c.slotCommand(cmd)
	}
	c.complete(string(cmd.Verb))
	return nil
}

func (c *conn) setting(name string) (string, bool) {
	p := c.view.Properties
	switch name {
	case "wal_segment_size":
		return p.Segment.String(), true
	case "data_directory_mode":
		return "0700", true
	case "server_version":
		return fmt.Sprintf("%d.0 (Holdfast)", p.VersionMajor), true
	case "server_version_num":
		return strconv.Itoa(p.VersionMajor * 10000), true
	case "wal_block_size":
		return strconv.Itoa(pgwal.PageBytes), true
	case "integer_datetimes", "transaction_read_only":
		return "on", true
	}
	return "", false
}

func (c *conn) history(tli pgwal.TLI) error {
	p := c.view.Properties
	if p.Ancestry = served(c.view); p.Ancestry.Last() != c.view.Properties.Ancestry.Last() {
		p.History = nil
	}
	content, ok := p.HistoryFile(tli)
	name := pgwal.HistoryFileName(tli)
	if !ok {
		c.refuse("58P01", "could not open file \"pg_wal/%s\": No such file or directory", name)
		return nil
	}
	c.row(text("filename", name), column{"content", oidText, content})
	c.complete(string(pgwire.TimelineHistory))
	return nil
}

func (c *conn) slotCommand(cmd pgwire.Command) error {
	var err error
	switch cmd.Verb {
	case pgwire.CreateReplicationSlot:
		x := slot{}
		if cmd.ReserveWAL {
			x.Restart, x.TLI = c.view.Commit, served(c.view).Last()
		}
		if cmd.Temporary {
			x.temporary = c.id
		}
		if err = c.server.slots.create(cmd.Name, x); err == nil {
			c.row(text("slot_name", cmd.Name), text("consistent_point", "0/0"), column{"snapshot_name", oidText, nil}, column{"output_plugin", oidText, nil})
		}
	case pgwire.ReadReplicationSlot:
		x, ok := c.server.slots.read(cmd.Name)
		columns := []column{{"slot_type", oidText, nil}, {"restart_lsn", oidText, nil}, {"restart_tli", oidInt8, nil}}
		if ok {
			columns[0].value = []byte("physical")
			if x.Restart != 0 {
				columns[1].value = []byte(x.Restart.String())
				columns[2].value = []byte(strconv.FormatUint(uint64(x.TLI), 10))
			}
		}
		c.row(columns...)
	case pgwire.DropReplicationSlot:
		err = c.server.slots.drop(cmd.Name)
	}
	var refused *slotError
	if errors.As(err, &refused) {
		c.refuse(refused.code, "%s", refused.message)
		return nil
	}
	if err != nil {
		c.refuse("58030", "the slots cannot be saved: %v", err)
		return nil
	}
	c.complete(string(cmd.Verb))
	return nil
}
