package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/seed7f3f3bb8/holdfast/cli"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

func newWALRead(a *app) *cobra.Command {
	var f sourceFlags
	var asHex bool
	cmd := &cobra.Command{
		Use:   "read",
		Short: "Write committed bytes of a timeline to standard output",
		Example: `  holdfast wal read --acceptors a:7001,b:7001,c:7001 --timeline prod/main --from 0/1000000 --to 0/2000000 > bytes
  holdfast wal read --acceptors a:7001,b:7001,c:7001 --timeline prod/main --hex | head`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.copy(cmd.Context(), a, asHex, false)
		},
	}
	f.addTo(cmd)
	cmd.Flags().Var(&f.to, "to", "end (default: what is committed now)")
	cmd.Flags().BoolVar(&asHex, "hex", false, "write a hex dump with positions instead of the bytes")
	return cmd
}

func newWALTail(a *app) *cobra.Command {
	var f sourceFlags
	var asHex bool
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Write committed bytes as they come, until interrupted",
		Example: `  holdfast wal tail --acceptors a:7001,b:7001,c:7001 --timeline prod/main --hex
  holdfast wal tail --acceptors a:7001,b:7001,c:7001 --timeline prod/main --from 0/1000000 > bytes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.copy(cmd.Context(), a, asHex, true)
		},
	}
	f.addTo(cmd)
	cmd.Flags().BoolVar(&asHex, "hex", false, "write a hex dump with positions instead of the bytes")
	return cmd
}

func (f *sourceFlags) copy(ctx context.Context, a *app, asHex, follow bool) error {
	if !asHex && cli.IsTerminal(a.Out) {
		return cli.Errorf(cli.Usage, "standard output is a terminal: send it to a file or a program, or use --hex")
	}
	c, err := f.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	var from []source
	var begin, end wal.LSN // end 0: none
	if follow {
		if from, err = f.sources(ctx, c); err == nil {
			begin = from[0].timeline.Commit
		}
		if f.from.Given {
			begin = f.from.LSN
		}
	} else {
		from, begin, end, err = f.span(ctx, c)
	}
	if err != nil || !follow && begin == end {
		return err
	}
	out := bufio.NewWriterSize(a.Out, 1<<20)
	_, err = f.read(ctx, c, from, begin, end, follow, func(x wal.Chunk) error {
		if err := writeChunk(out, x, asHex); err != nil {
			return err
		}
		if follow {
			return out.Flush()
		}
		return nil
	})
	if follow && errors.Is(err, context.Canceled) {
		err = nil // an interrupt is how tail ends
	}
	return errors.Join(err, out.Flush())
}

// writeChunk writes the bytes, or a hex dump of them, each line with its position.
func writeChunk(w io.Writer, x wal.Chunk, asHex bool) error {
	if !asHex {
		_, err := w.Write(x.Data)
		return err
	}
	const width = 16
	line := make([]byte, 0, 128)
	for at := 0; at < len(x.Data); at += width {
		row := x.Data[at:min(at+width, len(x.Data))]
		line = append(line[:0], (x.Begin + wal.LSN(at)).String()...)
		line = append(line, "  "...)
		line = hex.AppendEncode(line, row)
		line = append(line, '\n')
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return nil
}
