package ingest

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/seed7f3f3bb8/holdfast/bridge/pgclient"
)

// Config says which PostgreSQL to follow and which log to write.
type Config struct {
	Postgres pgclient.Config
	Slot     string // physical replication slot; made if it is missing
	Log      Elector

	// Trust lets the bridge attach when PostgreSQL no longer has any WAL that
	// could be compared with the log. Only a person who knows that no copy of
	// the cluster has run in between can say so.
	Trust bool

	// Unfence lets a server attach to a log that was fenced although it does not
	// come from a recovery of it.
	Unfence bool

	// OnFenced runs once when another writer has taken the log over, after the
	// connection to PostgreSQL has been closed. It should stop PostgreSQL:
	// being fenced ends acknowledgements only, not reads or local commits.
	OnFenced func(ctx context.Context)

	Logger   *zap.Logger // nil = none
	Observer Observer    // nil = none
}

// Defaults of the names that PostgreSQL's settings must mention.
const (
	DefaultName = "holdfast" // application_name, so synchronous_standby_names = 'holdfast'
	DefaultSlot = "holdfast"
)

// Observer is told what a metric counts. Its methods must not block.
type Observer interface {
	// Received is called for each run of WAL that arrived.
	Received(bytes int)
	// Stage is called with how long one sampled run of WAL spent in a stage:
	// StageReceive, StageCommit, StageReply.
	Stage(stage string, d time.Duration)
	// Reconnected is called after each session that ended, with the reason.
	Reconnected(reason string)
}

// The stages of a commit's way through the bridge.
const (
	StageReceive = "receive" // from PostgreSQL's clock at sending to read here
	StageCommit  = "commit"  // from read here to committed
	StageReply   = "reply"   // writing the acknowledgement
)

type noObserver struct{}

func (noObserver) Received(int)                {}
func (noObserver) Stage(string, time.Duration) {}
func (noObserver) Reconnected(string)          {}

// Timing of the parts that must not depend on what PostgreSQL is set to.
const (
	statusInterval    = 10 * time.Second // and at most wal_sender_timeout/4
	replySpacing      = 100 * time.Millisecond
	waitingAfter      = time.Second     // a commit position that stands this long with WAL pending is "waiting"
	stormReplies      = 8               // demands for a reply in a row, nothing else: PostgreSQL shuts down
	stormPatience     = 2 * time.Second // how long a shutdown may wait for the quorum
	probeAfter        = 2 * time.Second // a blocked append is no reason to keep a shutdown from ending
	probeEvery        = 3 * time.Second
	idleTimeoutMin    = 30 * time.Second
	backoffMin        = 50 * time.Millisecond
	backoffMax        = time.Second
	backoffProblem    = 5 * time.Second // where a person must change something
	slotPatienceExtra = 5 * time.Second // beyond wal_sender_timeout, for a dead client to lose the slot
)
