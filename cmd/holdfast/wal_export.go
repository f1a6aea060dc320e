package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/seed7f3f3bb8/holdfast/bridge/pgwal"
	"github.com/seed7f3f3bb8/holdfast/cli"
	"github.com/seed7f3f3bb8/holdfast/wal"
	"github.com/seed7f3f3bb8/holdfast/workload"
)

// exported is what "wal export --json" prints.
type exported struct {
	Timeline wal.TimelineID `json:"timeline"`
	Begin    wal.LSN        `json:"begin"`
	End      wal.LSN        `json:"end"`
	Files    []string       `json:"files"`
}

type exportFlags struct {
	sourceFlags
	out     string
	tli     uint32
	segment cli.Bytes
	asJSON  bool
}

func newWALExport(a *app) *cobra.Command {
	f := exportFlags{segment: 16 << 20}
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write committed bytes as PostgreSQL WAL segment files",
		Long: `Write a range of committed bytes as PostgreSQL WAL segment files with their
standard names. Bytes of a file outside the range are zeroes. With --acceptor
they are that one's own bytes, read from its own disk.`,
		Example: `  holdfast wal export --acceptors a:7001,b:7001,c:7001 --timeline prod/pg --from 0/1000000 --to 0/704E0C8 --out ./exported
  holdfast wal export --acceptors a:7001,b:7001,c:7001 --timeline prod/pg --from 0/1000000 --to 0/704E0C8 --out ./b --acceptor b:7001`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), a) },
	}
	f.addTo(cmd)
	jsonFlag(cmd, &f.asJSON)
	cmd.Flags().Var(&f.to, "to", "end (default: what is committed now)")
	cmd.Flags().StringVar(&f.out, "out", "", "directory to write to")
	cmd.Flags().Uint32Var(&f.tli, "pg-timeline", 1, "PostgreSQL's own timeline number, for the names")
	cmd.Flags().Var(&f.segment, "segment-size", "size of a segment file")
	cli.AtLeast(cmd, "pg-timeline", &f.tli, 1)
	_ = cmd.MarkFlagRequired("out")
	return cmd
}

func (f *exportFlags) run(ctx context.Context, a *app) error {
	c, err := f.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	size := pgwal.SegmentBytes(f.segment)
	if err := size.Validate(); err != nil || cli.Bytes(size) != f.segment {
		return cli.Errorf(cli.Usage, "--segment-size %v: expected a power of two from 1MiB to 1GiB", f.segment)
	}
	from, begin, end, err := f.span(ctx, c)
	if err != nil {
		return err
	}
	if begin == end {
		return cli.Errorf(cli.NotFound, "there are no committed bytes in [%v, %v)", begin, end)
	}
	x, err := workload.NewExport(f.out, pgwal.TLI(f.tli), size, begin)
	if err != nil {
		return err
	}
	var reached atomic.Uint64
	progress := a.NewProgress(func() string {
		return fmt.Sprintf("exported up to %v of %v", wal.LSN(reached.Load()), end)
	})
	_, err = f.read(ctx, c, from, begin, end, false, func(w wal.Chunk) error {
		reached.Store(uint64(w.End()))
		return x.Chunk(w)
	})
	progress.Stop()
	if err != nil {
		x.Abandon()
		return err
	}
	files, err := x.Close()
	if err != nil {
		return err
	}
	if f.asJSON {
		return a.printJSON(exported{f.timeline.TimelineID, begin, end, files})
	}
	_, err = fmt.Fprintf(a.Out, "[%v, %v) in %d files in %s\n", begin, end, len(files), f.out)
	return err
}
