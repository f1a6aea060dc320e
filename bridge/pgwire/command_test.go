package pgwire

import "testing"

func TestParseCommand(t *testing.T) {
	for text, want := range map[string]Command{
		"IDENTIFY_SYSTEM":                         {Verb: IdentifySystem},
		" identify_system ; ":                     {Verb: IdentifySystem},
		"SHOW wal_segment_size":                   {Verb: Show, Name: "wal_segment_size"},
		"SHOW pg_stat.max":                        {Verb: Show, Name: "pg_stat.max"},
		"TIMELINE_HISTORY 3":                      {Verb: TimelineHistory, Timeline: 3},
		"START_REPLICATION 0/11000000 TIMELINE 1": {Verb: StartReplication, Start: 0x11000000, Timeline: 1},
		"START_REPLICATION SLOT \"fo\"\"o\" 0/2D000000 TIMELINE 4":               {Verb: StartReplication, Name: `fo"o`, Start: 0x2D000000, Timeline: 4},
		"START_REPLICATION SLOT Walproposer PHYSICAL a/ff":                       {Verb: StartReplication, Name: "walproposer", Start: 0xA_000000FF},
		"CREATE_REPLICATION_SLOT \"foo\" PHYSICAL":                               {Verb: CreateReplicationSlot, Name: "foo"},
		"CREATE_REPLICATION_SLOT foo PHYSICAL RESERVE_WAL":                       {Verb: CreateReplicationSlot, Name: "foo", ReserveWAL: true},
		"CREATE_REPLICATION_SLOT foo TEMPORARY PHYSICAL (RESERVE_WAL)":           {Verb: CreateReplicationSlot, Name: "foo", Temporary: true, ReserveWAL: true},
		"CREATE_REPLICATION_SLOT f PHYSICAL (RESERVE_WAL false, FAILOVER 'off')": {Verb: CreateReplicationSlot, Name: "f"},
		"READ_REPLICATION_SLOT foo":                                              {Verb: ReadReplicationSlot, Name: "foo"},
		"DROP_REPLICATION_SLOT \"foo\" WAIT;":                                    {Verb: DropReplicationSlot, Name: "foo", Wait: true},
		"BASE_BACKUP ( LABEL 'pg_basebackup base backup',  PROGRESS)":            {Verb: BaseBackup},
	} {
		if got, err := ParseCommand(text); err != nil || got != want {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", ";", "SELECT 1", "SHOW", "SHOW 'a", "TIMELINE_HISTORY", "TIMELINE_HISTORY 0", "TIMELINE_HISTORY 99999999999",
		"START_REPLICATION", "START_REPLICATION x", "START_REPLICATION SLOT a LOGICAL 0/0", "START_REPLICATION 0/0 TIMELINE 1 EXTRA",
		"CREATE_REPLICATION_SLOT a LOGICAL pgoutput", "CREATE_REPLICATION_SLOT a PHYSICAL (TWO_PHASE)", "CREATE_REPLICATION_SLOT a PHYSICAL (RESERVE_WAL",
		"DROP_REPLICATION_SLOT", "READ_REPLICATION_SLOT \"", "IDENTIFY_SYSTEM x",
	} {
		if c, err := ParseCommand(text); err == nil {
			t.Errorf("%q was parsed: %+v", text, c)
		}
	}
}

func TestQuoteIdentifierRoundTrip(t *testing.T) {
	for _, s := range []string{"a", `a"b`, "Weird Name", `""`} {
		c, err := ParseCommand("READ_REPLICATION_SLOT " + QuoteIdentifier(s))
		if err != nil || c.Name != s {
			t.Errorf("%q came back as %q, %v", s, c.Name, err)
		}
	}
}
