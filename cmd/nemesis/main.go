// Command nemesis breaks things under three real acceptors on this machine and
// judges what their clients were told; see package nemesis. With root it uses
// network namespaces and disks of its own, without it does what it can and says
// what it leaves out. It ends with 1 if something is wrong.
//
//	go build -o holdfast ./cmd/holdfast
//	go run ./cmd/nemesis --binary ./holdfast --duration 2h
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/seed7f3f3bb8/holdfast/nemesis"
)

func main() {
	nemesis.ClientMain()
	var o nemesis.Options
	flag.StringVar(&o.Binary, "binary", "", "the holdfast program to test")
	flag.DurationVar(&o.Duration, "duration", 5*time.Minute, "how long; 2h is the long form")
	flag.Uint64Var(&o.Seed, "seed", uint64(time.Now().Unix()), "of the schedule")
	only := flag.String("faults", "", "only these kinds, comma-separated: "+strings.Join(nemesis.FaultNames(), ", "))
	flag.IntVar(&o.AckedMin, "acked-min", 0, "fewer acknowledged appends prove nothing (default 10000)")
	flag.BoolVar(&o.Loopback, "loopback", false, "no network namespaces")
	flag.BoolVar(&o.PlainDirs, "plain-dirs", false, "no disks of our own")
	flag.BoolVar(&o.KeepLogs, "keep-logs", false, "leave logs and histories behind")
	asJSON := flag.Bool("json", false, "print nothing but the report, as JSON")
	flag.Parse()
	o.EveryOne = *only == "" && o.Duration >= 5*time.Minute
	if *only != "" {
		o.Faults = strings.Split(*only, ",")
	}
	o.Log = func(line string) { fmt.Fprintln(os.Stderr, line) }
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if err := run(ctx, o, *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "nemesis:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o nemesis.Options, asJSON bool) error {
	if o.Binary == "" {
		return errors.New("--binary is missing: build one with go build -o holdfast ./cmd/holdfast")
	}
	r, err := nemesis.Run(ctx, o)
	if r == nil {
		return err
	}
	if asJSON {
		out, jsonErr := json.MarshalIndent(r, "", "  ")
		fmt.Printf("%s\n", out)
		err = errors.Join(err, jsonErr)
	} else {
		fmt.Printf("seed %d, %s, %s: %d rounds in %.0f s, %d acknowledged appends, %d of unknown outcome, %d elections, %d reads\n",
			r.Seed, r.Network, r.Disks, r.Rounds, r.Seconds, r.Acked, r.Unknown+r.Absent, r.Wins, r.Reads)
		for _, name := range nemesis.FaultNames() {
			if s := r.Faults[name]; s != nil {
				fmt.Printf("  %-16s %3d times, %d elections\n", name, s.Times, s.Elections)
			} else if why := r.Skipped[name]; why != "" {
				fmt.Printf("  %-16s left out: %s\n", name, why)
			}
		}
	}
	for _, f := range r.Failures {
		err = errors.Join(err, errors.New(f))
	}
	return err
}
