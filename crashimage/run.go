package crashimage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/seed7f3f3bb8/holdfast/blockdev"
	"github.com/seed7f3f3bb8/holdfast/leftovers"
)

// Options says how much to do.
type Options struct {
	Binary string // the holdfast program
	Seed   uint64 // of the first recording; each further one has the next
	Images int    // how many in all
	Keep   string // directory for images that break a promise; empty keeps none

	// PerRecording is how many images are made of one recording (100), Bytes
	// how much WAL is appended in it (12 MiB).
	PerRecording int
	Bytes        uint64

	Log func(string) // told of each failure and each recording; nil for nobody
}

// Report says what was done and found.
type Report struct {
	Recordings int       `json:"recordings"`
	Images     int       `json:"images"`
	Failed     int       `json:"failed"`
	Failures   []Failure `json:"failures,omitempty"` // the first few
	Pending    int       `json:"pending_writes"`     // not flushed when the power failed, over all images
	Work       Stats     `json:"work"`
	Seconds    float64   `json:"secs"`
	ImagesS    float64   `json:"images_s"` // without the recordings
}

const (
	perRecordingDefault = 100
	bytesDefault        = 12 << 20
)

// flushDelay is that of a fast disk.
const flushDelay = 200 * time.Microsecond

// Run records and examines until there were enough images. Failures are in the
// report; an error says that something could not be tried.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	if o.PerRecording <= 0 {
		o.PerRecording = perRecordingDefault
	}
	if o.Bytes == 0 {
		o.Bytes = bytesDefault
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	if o.Keep != "" {
		if err := os.MkdirAll(o.Keep, 0o700); err != nil {
			return nil, err
		}
	}
	ledger, err := leftovers.Open(leftovers.DefaultDir(), func(err error) { o.Log(err.Error()) })
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()

	began := time.Now()
	report = &Report{}
	var examining time.Duration
	for report.Images < o.Images {
		seed := o.Seed + uint64(report.Recordings)
		book, h, stats, err := record(ctx, ledger, &o, seed)
		if err != nil {
			return report, fmt.Errorf("recording with seed %d: %w", seed, err)
		}
		report.Recordings++
		report.Work.add(stats)
		start := time.Now()
		if err := examine(ctx, ledger, book, h, min(o.PerRecording, o.Images-report.Images), 0, &o, report); err != nil {
			return report, fmt.Errorf("images of the recording with seed %d: %w", seed, err)
		}
		examining += time.Since(start)
		o.Log(fmt.Sprintf("seed %d: %d writes, %d flushes, %d acks, %d elections; %d of %d images, %d failed", seed, stats.Writes, stats.Flushes, stats.Acks, stats.Elections, report.Images, o.Images, report.Failed))
	}
	report.Seconds = time.Since(began).Seconds()
	report.ImagesS = float64(report.Images) / examining.Seconds()
	return report, nil
}

// record runs one script and returns what its disk saw.
func record(ctx context.Context, ledger *leftovers.Ledger, o *Options, seed uint64) (book *Book, h *blockdev.History, stats Stats, err error) {
	// The smallest segments, so that many are begun, sealed and used again.
	s, err := newStage(ctx, ledger, o.Binary, "--first-segment-bytes", "1MiB", "--segment-bytes", "1MiB", "--spare-segments", "2")
	if err != nil {
		return nil, nil, stats, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	book = newBook(seed)
	c, err := dial(s.node.Addr, book, s.disk.Mark)
	if err != nil {
		return nil, nil, stats, err
	}
	defer c.conn.Close()
	s.disk.SetFault(blockdev.Fault{FlushDelay: flushDelay}) // so that more is on its way at any moment
	noise, quiet := context.WithCancel(ctx)
	noisy := make(chan error, 1)
	go func() { noisy <- neighbour(noise, s.ext4.Dir, rand.New(rand.NewPCG(seed, 3))) }()
	x := &script{rng: rand.New(rand.NewPCG(seed, 1)), c: c, node: s.node}
	err = x.run(ctx, o.Bytes)
	h = s.disk.Stop()
	quiet()
	if err = errors.Join(err, <-noisy); err != nil {
		return nil, nil, stats, fmt.Errorf("%w\n%s", err, tailOf(s.node.Log))
	}
	for _, e := range h.Events {
		switch e.Kind {
		case blockdev.Write:
			x.stats.Writes++
		case blockdev.Flush:
			x.stats.Flushes++
		case blockdev.Note:
			if _, ok := e.Note.(acked); ok {
				x.stats.Acks++
			}
		}
	}
	return book, h, x.stats, nil
}

// tailOf is the end of a log file.
func tailOf(name string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-3000):])
}
