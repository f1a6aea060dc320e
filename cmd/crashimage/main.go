// Command crashimage pulls the plug on a real acceptor, as often as it is told
// to, on the kernel and the ext4 of this machine; see package crashimage. It needs
// root, FUSE and loop devices, and ends with 1 if a promise was broken.
//
//	go build -o holdfast ./cmd/holdfast
//	go run ./cmd/crashimage --binary ./holdfast --images 50000 --keep ./broken
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/seed7f3f3bb8/holdfast/blockdev"
	"github.com/seed7f3f3bb8/holdfast/crashimage"
)

func main() {
	var o crashimage.Options
	flag.StringVar(&o.Binary, "binary", "", "the holdfast program to test")
	flag.IntVar(&o.Images, "images", 600, "how many images to make and audit")
	flag.IntVar(&o.PerRecording, "per-recording", 0, "how many of them from one recording (default 100)")
	flag.Uint64Var(&o.Seed, "seed", 1, "of the first recording; each further one has the next")
	flag.StringVar(&o.Keep, "keep", "", "directory for images that break a promise")
	asJSON := flag.Bool("json", false, "print the report as JSON")
	flag.Parse()
	o.Log = func(line string) { fmt.Fprintln(os.Stderr, line) }
	// A second signal ends the process at once; what is left over then is given
	// back by the next run.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if err := run(ctx, o, *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "crashimage:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o crashimage.Options, asJSON bool) error {
	if o.Binary == "" {
		return errors.New("--binary is missing: build one with go build -o holdfast ./cmd/holdfast")
	}
	if err := blockdev.Available(); err != nil {
		return fmt.Errorf("crash images cannot be made here: %w", err)
	}
	r, err := crashimage.Run(ctx, o)
	if r != nil && asJSON {
		out, jsonErr := json.MarshalIndent(r, "", "  ")
		fmt.Printf("%s\n", out)
		err = errors.Join(err, jsonErr)
	} else if r != nil {
		fmt.Printf("%d images of %d recordings (%d disk writes, %d flushes, %d acknowledgements, %d elections, %d truncations, %d kills): %d broken; %.1f images/s\n",
			r.Images, r.Recordings, r.Work.Writes, r.Work.Flushes, r.Work.Acks, r.Work.Elections, r.Work.Cuts, r.Work.Kills, r.Failed, r.ImagesS)
	}
	if err == nil && r.Failed > 0 {
		err = fmt.Errorf("%d of %d images break a promise", r.Failed, r.Images)
	}
	return err
}
