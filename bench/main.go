// Command bench measures Holdfast: against what the disk can do at best, with a
// slow or a missing member, with many timelines, with large and tiny records.
// Each subcommand is a program that can be run again; none is a test, and none
// fails because a machine is slow. docs/benchmarks.md tells how to read them.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// experiment is one subcommand.
type experiment struct {
	name string
	what string
	run  func(ctx context.Context, args []string) error
}

func experiments() []experiment {
	return []experiment{
		{"floor", "what three files on this disk can do at best; one JSON line per cell", floorMain},
		{"compare", "floor and Holdfast interleaved, medians, spread and ratios", compareMain},
		{"slow", "a member with a slow disk, one that is stopped, one that catches up", slowMain},
		{"batching", "one flush for all that waits, against one for each request", batchingMain},
		{"sizes", "large and tiny records", sizesMain},
		{"inbox", "bulk WAL through inboxes of several sizes", inboxMain},
		{"scale", "many timelines on one set of acceptors", scaleMain},
		{"segments", "acks while a segment begins", segmentsMain},
		{"table", "a table of JSON lines, of other systems too", tableMain},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if len(os.Args) > 1 {
		for _, e := range experiments() {
			if e.name != os.Args[1] {
				continue
			}
			if err := e.run(ctx, os.Args[2:]); err != nil {
				fmt.Fprintf(os.Stderr, "bench %s: %v\n", e.name, err)
				os.Exit(1)
			}
			return
		}
	}
	fmt.Fprintln(os.Stderr, "usage: bench EXPERIMENT [flags]; each has --help")
	for _, e := range experiments() {
		fmt.Fprintf(os.Stderr, "  %-12s %s\n", e.name, e.what)
	}
	os.Exit(2)
}
