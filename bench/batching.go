package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"strconv"
	"time"
)

// batchingMain shows what one flush for all that waits is worth: against one
// flush for each request, with requests coalesced and with one for each append.
func batchingMain(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("batching", flag.ExitOnError)
	size := fs.Int("P", 1024, "payload: about the WAL of a small transaction")
	clients := intList{1, 16, 64}
	fs.Var(&clients, "C", "appends in flight, comma-separated")
	measure := fs.Duration("T", 3*time.Second, "measured time")
	rounds := fs.Int("rounds", 3, "how often")
	binary := fs.String("holdfast", "bin/holdfast", "the binary")
	parent := fs.String("dir", os.TempDir(), "where data goes")
	_ = fs.Parse(args)
	each := []string{"--spawn-arg", "--max-batch-requests", "--spawn-arg", "1"}
	modes := []struct {
		name string
		args []string
	}{
		{"batched flush", nil},
		{"flush per request", each},
		{"flush per append", append([]string{"--no-coalesce"}, each...)},
	}
	var rows []row
	for range *rounds {
		for _, c := range clients {
			for _, m := range modes {
				line, err := measured(ctx, append([]string{*binary, "load", "--spawn", "3", "--spawn-dir", *parent, "--json", "--size", strconv.Itoa(*size),
					"--concurrency", strconv.Itoa(c), "--warm", "1s", "--duration", measure.String()}, m.args...))
				if err != nil {
					return err
				}
				read, err := readRows(bytes.NewReader(line))
				if err != nil {
					return err
				}
				read[0].System = m.name
				rows = append(rows, read...)
			}
		}
	}
	return printTable(os.Stdout, rows)
}
