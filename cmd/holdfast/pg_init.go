package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/bridge/pgclient"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

func newPG(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "pg", Short: "Prepare a PostgreSQL server"}
	cmd.AddCommand(newPGInit(a))
	return cmd
}

// pgInitialised is what "pg init --json" prints.
type pgInitialised struct {
	Timeline    wal.TimelineID `json:"timeline"`
	Created     bool           `json:"created"` // false: it was there, exactly so
	First       wal.LSN        `json:"first_lsn"`
	SystemID    uint64         `json:"system_id,string"`
	Slot        string         `json:"slot"`
	SlotCreated bool           `json:"slot_created"`
}

func newPGInit(a *app) *cobra.Command {
	var f clientFlags
	var postgres postgresFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make the replication slot and the timeline that begins where the slot does",
		Long: `Make a physical replication slot on the primary, which keeps WAL from the last
checkpoint on, and a timeline on the acceptors that begins with the segment of
that position. Repeating it changes nothing.`,
		Example: `  holdfast pg init --postgres "host=10.0.0.5 user=holdfast" --acceptors a:7001,b:7001,c:7001 --timeline prod/main`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := f.question(cmd.Context())
			defer cancel()
			out, err := initPostgres(ctx, &f, postgres)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(out)
			}
			fmt.Fprintf(a.Out, "slot %q keeps WAL; timeline %v begins at %v, for system %d\n\nNext:\n", out.Slot, out.Timeline, out.First, out.SystemID)
			fmt.Fprintf(a.Out, "  1. holdfast bridge --postgres %q --acceptors %v --timeline %v\n", postgres.dsn, &f.acceptors, &f.timeline)
			fmt.Fprintf(a.Out, "  2. on the primary: synchronous_standby_names = '%s', then reload; holdfast bridge --check\n", postgres.name)
			fmt.Fprintf(a.Out, "  3. when the bridge streams: pg_basebackup -X none -D BACKUP (no WAL needed: the acceptors have it)\n")
			return nil
		},
	}
	f.addTimelineTo(cmd, true)
	postgres.addTo(cmd)
	jsonFlag(cmd, &asJSON)
	return cmd
}

func initPostgres(ctx context.Context, f *clientFlags, postgres postgresFlags) (pgInitialised, error) {
	out := pgInitialised{Timeline: f.timeline.TimelineID, Slot: postgres.slot}
	conn, err := pgclient.Dial(ctx, postgres.config())
	if err != nil {
		return out, err
	}
	defer conn.Close()
	server, _, err := conn.Server(ctx)
	if err != nil {
		return out, err
	}
	out.SystemID = server.SystemID
	if out.SlotCreated, err = conn.CreateSlot(ctx, postgres.slot); err != nil {
		return out, err
	}
	restart := server.Flush
	slot, err := conn.ReadSlot(ctx, postgres.slot)
	switch {
	case errors.Is(err, pgclient.ErrNoReadSlot): // before version 15: begin now, and take the base backup later
	case err != nil:
		return out, err
	case slot.Restart != 0:
		restart = slot.Restart
	}
	out.First = server.Segment.Begin(restart)
	c, err := f.dial()
	if err != nil {
		return out, err
	}
	defer c.Close()
	// A timeline that is there for this cluster already is what was asked for:
	// the slot has moved on since it was made.
	if best, err := admin.Best(c.Timelines(ctx, f.timeline.TimelineID)); err == nil && best.Value.SystemID == server.SystemID {
		out.First = best.Value.First
		return out, nil
	}
	_, out.Created, err = c.Create(ctx, admin.Creation{Timeline: f.timeline.TimelineID, First: out.First, SystemID: server.SystemID})
	return out, err
}
