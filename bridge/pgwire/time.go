package pgwire

import "time"

// epochMicros is PostgreSQL's epoch, 2000-01-01 00:00 UTC, in microseconds of the Unix epoch.
const epochMicros = 946684800 * 1_000_000

// Micros is a time as the replication protocol carries it: microseconds since 2000-01-01 UTC.
func Micros(t time.Time) int64 { return t.UnixMicro() - epochMicros }

// FromMicros is the time that m, microseconds since 2000-01-01 UTC, stands for.
func FromMicros(m int64) time.Time { return time.UnixMicro(m + epochMicros) }
