package acceptor

import (
	"fmt"
	"time"

	"github.com/seed7f3f3bb8/holdfast/flush"
	"github.com/seed7f3f3bb8/holdfast/metrics"
	"github.com/seed7f3f3bb8/holdfast/storage"
	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
)

// Defaults of Config.
const (
	InboxBytesDefault     = 16 << 20
	InboxBytesNodeDefault = 256 << 20
	WindowBytesDefault    = 64 << 20
	SpareSegmentsDefault  = 4
	PreparersDefault      = 2
	ReadersMaxDefault     = 1000
	CloseIdleAfterDefault = 5 * time.Minute

	ScrubBytesPerSecondDefault = 1 << 20
	ScrubEveryDefault          = 24 * time.Hour
)

// Config says who a node is and what it may use. NodeID and DataDir must be
// set; a zero field has the default given at it.
type Config struct {
	NodeID  wal.NodeID
	DataDir string
	FS      vfs.FS // the operating system's

	Log     *zap.Logger       // none
	Metrics *metrics.Acceptor // required by New; see metrics.NewAcceptor and Reasons
	Version string            // of the program, for GetNode

	// InboxBytes bounds what one timeline may have received and not yet
	// written (16 MiB), InboxBytesNode what all of them may have together (256 MiB).
	InboxBytes     int
	InboxBytesNode int

	// WindowBytes is how much a proposer is told it may leave unacknowledged
	// on a stream (64 MiB).
	WindowBytes int

	// BatchBytesMax bounds the WAL of one fdatasync (flush.BatchBytesMax),
	// BatchRequestsMax its requests; 1 is one flush per request, for comparison.
	BatchBytesMax    int
	BatchRequestsMax int

	// Segments grow from FirstSegmentBytes (1 MiB) to SegmentBytes (64 MiB).
	// SpareSegments (4; negative for none) are kept for votes on a full disk.
	FirstSegmentBytes int64
	SegmentBytes      int64
	SpareSegments     int

	// RetainBytes is how much of each timeline below its flush LSN is kept;
	// what is older is trimmed, never above the horizon. 0 keeps all.
	RetainBytes uint64

	// Preparers make segments ahead, so many at a time on this node (2).
	Preparers int

	// ReadersMax bounds Read calls at a time (1,000). Each holds a descriptor.
	ReadersMax int

	// LogsHotMax bounds the logs with open descriptors, up to three each (an
	// eighth of the process's limit on descriptors). Others that are open give
	// theirs back first; the next write takes them again.
	LogsHotMax int

	// CloseIdleAfter is how long a log stays open that nobody uses (5 min).
	CloseIdleAfter time.Duration

	// ScrubBytesPerSecond is how fast all that is on the disk is read and
	// verified in the background (1 MiB; negative: not at all), ScrubEvery the least
	// time from one such pass to the next (24 h).
	ScrubBytesPerSecond int64
	ScrubEvery          time.Duration

	// ManualRepair leaves damaged copies quarantined until RepairTimeline is
	// called. Otherwise they are repaired from peers by themselves.
	ManualRepair bool

	// TimelineMetrics are the timelines that the metrics show one by one.
	TimelineMetrics []wal.TimelineID

	// ServerOptions are added to the gRPC server's, for credentials. PeerDialOptions
	// are for calls to other acceptors (no transport security).
	ServerOptions   []grpc.ServerOption
	PeerDialOptions []grpc.DialOption
}

func (c Config) withDefaults() (Config, error) {
	if c.NodeID == 0 {
		return c, fmt.Errorf("node id 0 is no node: give every acceptor a number of its own, from 1")
	}
	if c.DataDir == "" {
		return c, fmt.Errorf("no data directory was given")
	}
	if c.Metrics == nil {
		return c, fmt.Errorf("an acceptor needs its metrics")
	}
	if c.FS == nil {
		c.FS = vfs.OS{}
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	positive(&c.InboxBytes, InboxBytesDefault)
	positive(&c.InboxBytesNode, max(InboxBytesNodeDefault, c.InboxBytes))
	positive(&c.WindowBytes, WindowBytesDefault)
	positive(&c.BatchBytesMax, flush.BatchBytesMax)
	positive(&c.FirstSegmentBytes, storage.FirstSegmentBytesDefault)
	positive(&c.SegmentBytes, max(storage.SegmentBytesDefault, c.FirstSegmentBytes))
	positive(&c.Preparers, PreparersDefault)
	positive(&c.ReadersMax, ReadersMaxDefault)
	positive(&c.CloseIdleAfter, CloseIdleAfterDefault)
	positive(&c.ScrubEvery, ScrubEveryDefault)
	if c.ScrubBytesPerSecond == 0 {
		c.ScrubBytesPerSecond = ScrubBytesPerSecondDefault
	}
	if c.SpareSegments == 0 {
		c.SpareSegments = SpareSegmentsDefault
	}
	if c.LogsHotMax <= 0 {
		c.LogsHotMax = max(descriptorsMax()/8, 16)
	}
	return c, nil
}

func positive[N int | int64 | time.Duration](field *N, otherwise N) {
	if *field <= 0 {
		*field = otherwise
	}
}

// descriptorsMax is the process's limit; the Go runtime has raised it already.
func descriptorsMax() int {
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &r) != nil {
		return 1024
	}
	return int(min(r.Cur, 1<<20))
}
