package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
}

// outcome is what came of one mutant.
type outcome struct {
	mutant
	lane string // that killed it, "" if it survived
	said string // the first thing that lane complained of
	took time.Duration
}

func run(ctx context.Context) error {
	dir := flag.String("mutants", "mutation/mutants", "directory of patches")
	only := flag.String("only", "", "names, separated by commas")
	table := flag.String("table", "", "file whose mutation table is to be written anew")
	seeds := flag.String("seeds", "150", "seeds of the simulator lane")
	limit := flag.Duration("limit", 5*time.Minute, "longest time of one lane")
	flag.Parse()

	all, err := mutants(*dir, *only)
	if err != nil {
		return err
	}
	to, err := os.MkdirTemp("", "holdfast-mutation-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(to)
	s, err := copySource(to)
	if err != nil {
		return err
	}
	var done []outcome
	survived := 0
	for _, m := range all {
		o, err := try(ctx, s, m, lanes(*seeds), *limit)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		switch {
		case err != nil: // it has to follow the source
			survived++
			o.lane, o.said = "BROKEN", err.Error()
		case o.lane == "":
			survived++
			o.lane = "SURVIVED"
		}
		fmt.Printf("%-40s %-12s %5.1f s  %s\n", o.name, o.lane, o.took.Seconds(), o.said)
		done = append(done, o)
	}
	fmt.Printf("%d mutants, %d killed, %d survived\n", len(done), len(done)-survived, survived)
	if *table != "" {
		if err := writeTable(*table, done); err != nil {
			return err
		}
	}
	if survived > 0 {
		return fmt.Errorf("%d mutants survived or are broken", survived)
	}
	return nil
}

// try applies m and runs the lanes until one fails.
func try(ctx context.Context, s scratch, m mutant, all []lane, limit time.Duration) (outcome, error) {
	o := outcome{mutant: m}
	if m.equivalent != "" {
		o.lane, o.said = "equivalent", m.equivalent
		return o, nil
	}
	if err := s.apply(m, false); err != nil {
		return o, errors.Join(err, s.renew())
	}
	start := time.Now()
	for _, l := range all {
		if sees, err := s.sees(ctx, l, m.rooms); err != nil || !sees {
			if err != nil {
				return o, errors.Join(err, s.unlink(), s.apply(m, true))
			}
			continue
		}
		out, err := s.test(ctx, l, limit)
		var failed *exec.ExitError
		if err != nil && (!errors.As(err, &failed) || ctx.Err() != nil) {
			return o, errors.Join(err, s.unlink(), s.apply(m, true))
		}
		if err != nil {
			o.lane, o.said = l.name, complaint(out)
			break
		}
	}
	o.took = time.Since(start)
	return o, errors.Join(s.unlink(), s.apply(m, true))
}

// complaint finds the line that says what was noticed.
func complaint(out string) string {
	for line := range strings.Lines(out) {
		t := strings.TrimSpace(line)
		if _, after, ok := strings.Cut(t, "_test.go:"); ok {
			_, after, _ = strings.Cut(after, ": ")
			if after != "" {
				return after[:min(len(after), 100)]
			}
		}
	}
	for line := range strings.Lines(out) {
		if strings.Contains(line, "panic:") || strings.HasPrefix(line, "--- FAIL") {
			return strings.TrimSpace(line)
		}
	}
	return "failed"
}
