package main

import (
	"github.com/spf13/cobra"

	"github.com/seed7f3f3bb8/holdfast/bridge/ingest"
	"github.com/seed7f3f3bb8/holdfast/bridge/pgclient"
	"github.com/seed7f3f3bb8/holdfast/bridge/quorum"
	"github.com/seed7f3f3bb8/holdfast/cli"
	"github.com/seed7f3f3bb8/holdfast/metrics"
)

// postgresFlags say which PostgreSQL is meant.
type postgresFlags struct {
	dsn  string
	name string
	slot string
}

func (f *postgresFlags) addTo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.dsn, "postgres", "", `the primary, as a libpq connection string: "host=10.0.0.5 user=holdfast"; passwords belong into ~/.pgpass`)
	cmd.Flags().StringVar(&f.name, "name", ingest.DefaultName, "application_name, which synchronous_standby_names must name")
	cmd.Flags().StringVar(&f.slot, "slot", ingest.DefaultSlot, "physical replication slot")
	_ = cmd.MarkFlagRequired("postgres")
}

func (f *postgresFlags) config() pgclient.Config {
	return pgclient.Config{DSN: f.dsn, ApplicationName: f.name}
}

// openQuorum prepares the connections to the acceptors. The caller closes them.
func (f *clientFlags) openQuorum(c quorum.Config) (*quorum.Quorum, error) {
	c.Acceptors, c.Timeline = f.acceptors, f.timeline.TimelineID
	q, err := quorum.New(c)
	return q, cli.WithCode(cli.Usage, err)
}

// upstreamReason is the metric's label for why a session ended.
func upstreamReason(reason string) metrics.UpstreamReason {
	switch reason {
	case string(pgclient.Unreachable), string(pgclient.Starting):
		return metrics.UpstreamRefused
	case string(pgclient.Password), string(pgclient.Permission), string(pgclient.HBA):
		return metrics.UpstreamAuth
	case string(pgclient.SlotInUse):
		return metrics.UpstreamSlotInUse
	case string(pgclient.WALRemoved):
		return metrics.UpstreamWALRemoved
	case string(pgclient.Standby):
		return metrics.UpstreamStandby
	case string(pgclient.TimedOut):
		return metrics.UpstreamTimeout
	case string(pgclient.ShuttingDown):
		return metrics.UpstreamStopped
	case "quorum", "refused", "fenced":
		return metrics.UpstreamQuorum
	}
	return metrics.UpstreamBroken
}
