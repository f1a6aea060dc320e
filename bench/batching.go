package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"
)

// batchingRow is one run of "batching".
type batchingRow struct {
	Mode           string  `json:"mode"`
	OpsS           float64 `json:"ops_s"`
	P50MS          float64 `json:"p50_ms"`
	P99MS          float64 `json:"p99_ms"`
	AppendsPerSync float64 `json:"appends_per_sync"` // client appends per fdatasync of an acceptor
}

// batchingResult is what "batching" prints: medians and their ratio.
type batchingResult struct {
	Payload int         `json:"P"`
	Clients int         `json:"C"`
	Rounds  int         `json:"rounds"`
	Batched batchingRow `json:"batched"`
	Single  batchingRow `json:"flush_per_request"`
	Ratio   float64     `json:"ops_ratio"`
}

// batchingMain compares one fdatasync for all that waits with one for each
// append, in turn: acceptor --max-batch-requests 1, proposer coalescing off.
func batchingMain(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("batching", flag.ExitOnError)
	holdfast := fs.String("holdfast", "bin/holdfast", "the binary")
	payload := fs.Int("P", 8192, "payload size")
	clients := fs.Int("C", 64, "appends in flight")
	rounds := fs.Int("rounds", 3, "how often each is measured")
	measure := fs.Duration("T", 6*time.Second, "measured time of each run")
	dir := fs.String("dir", "", "where data goes, on the disk to be measured (default: the temporary directory)")
	_ = fs.Parse(args)

	common := []string{*holdfast, "load", "--spawn", "3", "--json", "--size", strconv.Itoa(*payload),
		"--concurrency", strconv.Itoa(*clients), "--warm", "1s", "--duration", measure.String()}
	single := []string{"--no-coalesce", "--spawn-arg", "--max-batch-requests", "--spawn-arg", "1"}
	var runs [2][]batchingRow
	for range *rounds {
		for i, extra := range [2][]string{nil, single} {
			err := inScratch(*dir, func(scratch string) error {
				row, err := batchingRun(ctx, slices.Concat(common, []string{"--spawn-dir", scratch}, extra))
				row.Mode = [2]string{"batched", "flush per request"}[i]
				runs[i] = append(runs[i], row)
				fmt.Fprintf(os.Stderr, "%s: %.0f appends/s, %.1f appends per fdatasync\n", row.Mode, row.OpsS, row.AppendsPerSync)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	result := batchingResult{Payload: *payload, Clients: *clients, Rounds: *rounds, Batched: medianRow(runs[0]), Single: medianRow(runs[1])}
	if result.Single.OpsS > 0 {
		result.Ratio = result.Batched.OpsS / result.Single.OpsS
	}
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", "  ")
	return e.Encode(result)
}

// batchingReplicas is how many acceptors there are; each syncs for itself.
const batchingReplicas = 3

func batchingRun(ctx context.Context, args []string) (batchingRow, error) {
	line, err := measured(ctx, args)
	if err != nil {
		return batchingRow{}, err
	}
	var r row
	if err := json.Unmarshal(line, &r); err != nil {
		return batchingRow{}, err
	}
	b := batchingRow{OpsS: r.OpsS, P50MS: r.P50MS, P99MS: r.P99MS, AppendsPerSync: -1}
	if r.SyncsS > 0 {
		b.AppendsPerSync = r.OpsS * batchingReplicas / r.SyncsS
	}
	return b, nil
}

// medianRow is the run in the middle by appends/s.
func medianRow(rows []batchingRow) batchingRow {
	sorted := slices.SortedFunc(slices.Values(rows), func(a, b batchingRow) int {
		switch {
		case a.OpsS < b.OpsS:
			return -1
		case a.OpsS > b.OpsS:
			return 1
		}
		return 0
	})
	return sorted[len(sorted)/2]
}
