package metrics

import "github.com/prometheus/client_golang/prometheus"

// VoteResult is how an acceptor answered a vote request.
type VoteResult string

// Results of votes.
const (
	VoteGranted VoteResult = "granted"
	VoteRefused VoteResult = "refused"
)

// SegmentOp is something that is done to a segment file.
type SegmentOp string

// Operations on segments.
const (
	SegmentCreate  SegmentOp = "create"  // zero-filled and synced
	SegmentRecycle SegmentOp = "recycle" // an old one given a new header
	SegmentSpare   SegmentOp = "spare"   // a prepared spare one taken
	SegmentRotate  SegmentOp = "rotate"  // the open one sealed, its successor begun
	SegmentRemove  SegmentOp = "remove"  // deleted
)

// DiskOp is a call that a disk can fail.
type DiskOp string

// Calls that fail.
const (
	DiskOpen    DiskOp = "open"
	DiskRead    DiskOp = "read"
	DiskWrite   DiskOp = "write"
	DiskSync    DiskOp = "sync"
	DiskPrepare DiskOp = "prepare" // making the next segment ready; it poisons nothing
)

// RepairResult is how the repair of a damaged copy ended.
type RepairResult string

// Results of repairs.
const (
	RepairDone   RepairResult = "done"   // the copy is whole and votes again
	RepairFailed RepairResult = "failed" // it stays quarantined
)

// Acceptor counts what an acceptor does, over all its timelines.
type Acceptor struct {
	// The drain loop. Observed once per batch.
	FlushSeconds prometheus.Histogram
	WriteSeconds prometheus.Histogram
	QueueSeconds prometheus.Histogram
	BatchAppends prometheus.Histogram
	BatchBytes   prometheus.Histogram

	// Counted once per batch, not once per append.
	Appends     prometheus.Counter
	AppendBytes prometheus.Counter
	Heartbeats  prometheus.Counter

	InboxWaitSeconds prometheus.Histogram

	Errors          *Counters[string] // reasons: see NewAcceptor
	Streams         prometheus.Gauge
	StreamsReplaced prometheus.Counter
	Votes           *Counters[VoteResult]
	Elections       prometheus.Counter
	Truncations     prometheus.Counter
	TruncatedBytes  prometheus.Counter

	SegmentOps       *Counters[SegmentOp]
	DiskErrors       *Counters[DiskOp]
	ChecksumFailures prometheus.Counter
	RecoverySeconds  prometheus.Histogram
	TrimmedBytes     prometheus.Counter
	ScrubbedBytes    prometheus.Counter
	ScrubPasses      prometheus.Counter
	RepairedBytes    prometheus.Counter
	Repairs          *Counters[RepairResult]
	FilledBytes      prometheus.Counter

	Readers   prometheus.Gauge
	ReadBytes prometheus.Counter
}

// NewAcceptor registers an acceptor's metrics. reasons is the closed set of
// error reasons; others are counted as "other".
func NewAcceptor(to prometheus.Registerer, reasons []string) (*Acceptor, error) {
	r := &registry{to: to}
	a := &Acceptor{
		FlushSeconds: r.histogram("flush_seconds", "Duration of the fdatasync of a batch.", secondsBuckets()),
		WriteSeconds: r.histogram("write_seconds", "Duration of handing a batch to the segment file.", secondsBuckets()),
		QueueSeconds: r.histogram("queue_seconds", "How long the oldest message of a batch had waited in the inbox.", secondsBuckets()),
		BatchAppends: r.histogram("batch_appends", "Append requests made durable by one fdatasync.", countBuckets()),
		BatchBytes:   r.histogram("batch_bytes", "WAL bytes made durable by one fdatasync.", bytesBuckets()),

		Appends:     r.counter("appends_total", "Append requests made durable, heartbeats not counted."),
		AppendBytes: r.counter("append_bytes_total", "WAL bytes made durable."),
		Heartbeats:  r.counter("heartbeats_total", "Append requests without data."),

		InboxWaitSeconds: r.histogram("inbox_wait_seconds", "How long a stream was not read because its inbox was full; only the waits that happened.", secondsBuckets()),

		Errors:          counters(r, "errors_total", "Streams and calls ended with an error, by reason.", "reason", reasons),
		Streams:         r.gauge("streams", "Open Append streams."),
		StreamsReplaced: r.counter("streams_replaced_total", "Append streams ended by a newer one of the same proposer."),
		Votes:           counters(r, "votes_total", "Votes, by result.", "result", []VoteResult{VoteGranted, VoteRefused}),
		Elections:       r.counter("elections_total", "Elected messages adopted."),
		Truncations:     r.counter("truncations_total", "Truncations of a log's end."),
		TruncatedBytes:  r.counter("truncated_bytes_total", "WAL bytes removed by truncations; none of them was committed."),

		SegmentOps: counters(r, "segment_operations_total", "Operations on segment files, by operation.", "op",
			[]SegmentOp{SegmentCreate, SegmentRecycle, SegmentSpare, SegmentRotate, SegmentRemove}),
		DiskErrors: counters(r, "disk_errors_total", "Calls that the disk has failed, by call. Write and sync poison the timeline.", "op",
			[]DiskOp{DiskOpen, DiskRead, DiskWrite, DiskSync, DiskPrepare}),
		ChecksumFailures: r.counter("checksum_failures_total", "Frames read from the disk that did not match their checksum."),
		RecoverySeconds:  r.histogram("recovery_seconds", "Duration of opening a timeline's log.", secondsBuckets()),
		TrimmedBytes:     r.counter("trimmed_bytes_total", "Bytes of segments given back below the horizon."),
		ScrubbedBytes:    r.counter("scrubbed_bytes_total", "Bytes read and checked by scrubbing."),
		ScrubPasses:      r.counter("scrub_passes_total", "Passes of the background scrub over all timelines."),
		RepairedBytes:    r.counter("repaired_bytes_total", "WAL bytes replaced from a peer."),
		Repairs:          counters(r, "repairs_total", "Repairs of damaged copies, by result.", "result", []RepairResult{RepairDone, RepairFailed}),
		FilledBytes:      r.counter("filled_bytes_total", "WAL bytes fetched from peers for copies that were lost, for reading only."),

		Readers:   r.gauge("readers", "Open Read streams."),
		ReadBytes: r.counter("read_bytes_total", "WAL bytes sent to readers."),
	}
	return a, r.done()
}
