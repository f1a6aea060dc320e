package pgcheck

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed7f3f3bb8/holdfast/bridge/pgclient"
)

// Level is how bad a finding is.
type Level string

const (
	OK      Level = "ok"
	Unknown Level = "unknown" // it cannot be seen with this role
	Warning Level = "warning" // it works, but promises less than one might think
	Fault   Level = "error"   // commits would not wait for the quorum, or the bridge cannot attach
)

// Finding is one thing that was looked at.
type Finding struct {
	Check  string `json:"check"`
	Level  Level  `json:"level"`
	Found  string `json:"found"`
	Remedy string `json:"remedy,omitempty"`
}

// Report is all findings, in a fixed order.
type Report struct {
	Findings []Finding `json:"findings"`
}

// Worst is the worst level of the report.
func (r Report) Worst() Level {
	order := []Level{OK, Unknown, Warning, Fault}
	worst := 0
	for _, f := range r.Findings {
		worst = max(worst, slices.Index(order, f.Level))
	}
	return order[worst]
}

func (r *Report) add(check string, level Level, found, remedy string) {
	if level == OK {
		remedy = ""
	}
	r.Findings = append(r.Findings, Finding{check, level, found, remedy})
}

// Run looks at the server that c reaches. An error means that it cannot be asked at all.
func Run(ctx context.Context, c pgclient.Config, slot string) (Report, error) {
	var r Report
	name, err := c.ApplicationNameOf()
	if err != nil {
		return r, err
	}
	c.AllowStandby = true
	conn, err := pgclient.Dial(ctx, c)
	if err != nil {
		return r, err
	}
	defer conn.Close()
	show := func(setting string) (string, bool) {
		v, err := conn.Show(ctx, setting)
		return v, err == nil
	}
	switch conn.Parameter("in_hot_standby") {
	case "on":
		r.add("in_hot_standby", Fault, "on", "the server is a standby: connect to the primary, or promote it")
	case "off":
		r.add("in_hot_standby", OK, "off", "")
	default:
		r.add("in_hot_standby", Unknown, "this version does not report it", "make sure that the server is the primary")
	}
	for _, s := range settings {
		value, ok := show(s.name)
		if !ok {
			r.add(s.name, Unknown, "cannot be read", "")
			continue
		}
		level, remedy := s.judge(value)
		r.add(s.name, level, value, remedy)
	}
	if value, ok := show("synchronous_standby_names"); ok {
		level, remedy := judgeNames(value, name)
		r.add("synchronous_standby_names", level, orEmpty(value), remedy)
	} else {
		r.add("synchronous_standby_names", Unknown, "cannot be read", "")
	}
	r.slot(ctx, conn, slot)
	r.viaSQL(ctx, c.DSN, name, slot)
	return r, nil
}

func orEmpty(s string) string {
	if s == "" {
		return "(empty)"
	}
	return s
}

// settings are those that can be judged by themselves.
var settings = []struct {
	name  string
	judge func(value string) (Level, string)
}{
	{"wal_level", func(v string) (Level, string) {
		if v == "minimal" {
			return Fault, "set wal_level = replica and restart"
		}
		return OK, ""
	}},
	{"max_wal_senders", atLeast(2, "set max_wal_senders to 10, its default, and restart: the bridge needs one, and one more for a moment")},
	{"max_replication_slots", atLeast(1, "set max_replication_slots to 10, its default, and restart")},
	{"synchronous_commit", func(v string) (Level, string) {
		switch v {
		case "on":
			return OK, ""
		case "remote_apply":
			return Warning, "it waits no longer than on: Holdfast reports what is flushed as applied, so it does not mean that a standby shows the row"
		case "remote_write":
			return Warning, "set synchronous_commit = on: Holdfast reports what is flushed as written, so there is nothing to gain"
		}
		return Fault, "set synchronous_commit = on: with " + v + " a COMMIT does not wait for the acceptors (sessions and roles can still override it)"
	}},
	{"fsync", isOn(Fault, "set fsync = on: after a crash of the machine the primary may have less than the acceptors, and is then refused")},
	{"full_page_writes", isOn(Warning, "set full_page_writes = on")},
	{"max_slot_wal_keep_size", func(v string) (Level, string) {
		if v == "-1" {
			return OK, ""
		}
		return Warning, "with a limit the primary may remove WAL that the acceptors still lack while they are away; the log then has to begin anew. Set -1 and watch the disk, or alarm on holdfast_bridge_slot_retained_bytes"
	}},
	{"wal_sender_timeout", func(v string) (Level, string) {
		if v == "0" {
			return Warning, "set wal_sender_timeout = 1min: without it a dead bridge keeps its slot for as long as TCP believes in it"
		}
		return OK, ""
	}},
	{"wal_log_hints", func(v string) (Level, string) {
		if v == "on" {
			return OK, ""
		}
		return Warning, "pg_rewind needs wal_log_hints = on, or data checksums (see data_checksums), to bring an old primary back"
	}},
	{"data_checksums", func(string) (Level, string) { return OK, "" }},
}

func atLeast(n int, remedy string) func(string) (Level, string) {
	return func(v string) (Level, string) {
		if got, err := strconv.Atoi(v); err != nil || got < n {
			return Fault, remedy
		}
		return OK, ""
	}
}

func isOn(level Level, remedy string) func(string) (Level, string) {
	return func(v string) (Level, string) {
		if v == "on" {
			return OK, ""
		}
		return level, remedy
	}
}

// judgeNames judges synchronous_standby_names for a bridge called name.
func judgeNames(value, name string) (Level, string) {
	want := fmt.Sprintf("set synchronous_standby_names = '%s'", name)
	names := strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" ,()\"\t\n", r) })
	any := false
	names = slices.DeleteFunc(names, func(s string) bool {
		any = any || strings.EqualFold(s, "ANY")
		_, err := strconv.Atoi(s)
		return strings.EqualFold(s, "ANY") || strings.EqualFold(s, "FIRST") || err == nil
	})
	at := slices.IndexFunc(names, func(s string) bool { return strings.EqualFold(s, name) })
	switch {
	case slices.Contains(names, "*"):
		return Fault, want + ": * lets any replication client acknowledge commits, pg_basebackup and pg_receivewal among them"
	case at < 0:
		return Fault, want + ": as it is, a COMMIT does not wait for the acceptors"
	case any && len(names) > 1:
		return Fault, want + ": with ANY another standby can acknowledge a commit that no acceptor has"
	case at > 0:
		return Fault, want + ": a name before it is preferred, and commits do not wait for the acceptors while that one is there"
	case len(names) > 1:
		return Warning, want + ": while the bridge is away another standby takes its place, and commits go on without the acceptors"
	}
	return OK, ""
}

func (r *Report) slot(ctx context.Context, conn *pgclient.Conn, slot string) {
	s, err := conn.ReadSlot(ctx, slot)
	switch {
	case errors.Is(err, pgclient.ErrNoReadSlot):
		r.add("slot", Unknown, "this version cannot be asked", "")
	case err != nil:
		r.add("slot", Unknown, err.Error(), "")
	case !s.Exists:
		r.add("slot", Warning, fmt.Sprintf("%s does not exist", slot), "run \"holdfast pg init\"; the bridge makes it when it attaches, but keeps no WAL before that")
	case s.Restart == 0:
		r.add("slot", Warning, fmt.Sprintf("%s keeps no WAL yet", slot), "attach the bridge")
	default:
		r.add("slot", OK, fmt.Sprintf("%s keeps WAL from %v on", slot, s.Restart), "")
	}
}

// viaSQL asks what only SQL can tell. The role may have no right to connect to
// a database, or to see others' connections: then it is unknown.
func (r *Report) viaSQL(ctx context.Context, dsn, name, slot string) {
	const clients, status = "clients_under_our_name", "slot_wal_status"
	unknown := func(check string, err error) {
		r.add(check, Unknown, err.Error(), "let the role connect to the database postgres, and grant it pg_monitor")
	}
	cfg, err := pgconn.ParseConfig(dsn)
	if err != nil {
		unknown(clients, err)
		return
	}
	if cfg.Database == "" {
		cfg.Database = "postgres"
	}
	conn, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		unknown(clients, err)
		unknown(status, err)
		return
	}
	defer conn.Close(context.WithoutCancel(ctx))
	value := func(sql string, args ...string) (string, error) {
		params := make([][]byte, len(args))
		for i, a := range args {
			params[i] = []byte(a)
		}
		result := conn.ExecParams(ctx, sql, params, nil, nil, nil).Read()
		if result.Err != nil || len(result.Rows) == 0 {
			return "", errors.Join(result.Err, errors.New("no answer"))
		}
		return string(result.Rows[0][0]), nil
	}
	seen, err := value("SELECT pg_has_role('pg_read_all_stats', 'usage')::text")
	// Only who streams can acknowledge. This check's own connection, and one that
	// the bridge opens to ask something, have the name too and stream nothing.
	n, err2 := value("SELECT count(*)::text FROM pg_stat_replication WHERE application_name = $1 AND state IN ('catchup', 'streaming')", name)
	switch err := errors.Join(err, err2); {
	case err != nil:
		unknown(clients, err)
	case seen != "true":
		unknown(clients, errors.New("the role may not see other connections"))
	case n == "0" || n == "1":
		r.add(clients, OK, n, "")
	default:
		r.add(clients, Fault, n, "end the others: any of them can acknowledge commits that no acceptor has. Give the bridge a role of its own, and keep its name out of other connection strings")
	}
	switch s, err := value("SELECT coalesce(max(wal_status), 'no slot') FROM pg_replication_slots WHERE slot_name = $1", slot); {
	case err != nil:
		unknown(status, err)
	case s == "lost":
		r.add(status, Fault, s, "the primary has removed WAL that the slot should keep: drop the slot, and begin a new timeline with a new base backup")
	case s == "unreserved":
		r.add(status, Warning, s, "the next checkpoint may remove WAL that the acceptors lack: bring them back now, or raise max_slot_wal_keep_size")
	default:
		r.add(status, OK, s, "")
	}
}
