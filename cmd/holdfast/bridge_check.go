package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/seed7f3f3bb8/holdfast/bridge/pgcheck"
	"github.com/seed7f3f3bb8/holdfast/cli"
)

// checkWait bounds "bridge --check".
const checkWait = 30 * time.Second

// runCheck is "bridge --check": 0 when nothing is wrong, 3 when something
// promises less than one might think, 1 when commits would not be safe.
func (f *bridgeFlags) runCheck(ctx context.Context, a *app) error {
	ctx, cancel := context.WithTimeout(ctx, checkWait)
	defer cancel()
	r, err := pgcheck.Run(ctx, f.postgres.config(), f.postgres.slot)
	if err != nil {
		return err
	}
	if f.asJSON {
		err = a.printJSON(struct {
			Verdict pgcheck.Level `json:"verdict"`
			pgcheck.Report
		}{r.Worst(), r})
	} else {
		err = printFindings(a, r)
	}
	if err != nil {
		return err
	}
	switch r.Worst() {
	case pgcheck.Fault:
		return cli.Errorf(cli.Failure, "with these settings commits are not safe, or the bridge cannot attach")
	case pgcheck.Warning:
		return cli.Errorf(cli.Degraded, "with these settings less is promised than one might think")
	}
	return nil
}

func printFindings(a *app, r pgcheck.Report) error {
	paint := cli.Painter(a.Colour(a.Out))
	colours := map[pgcheck.Level]string{pgcheck.OK: cli.Green, pgcheck.Fault: cli.Red, pgcheck.Warning: cli.Yellow, pgcheck.Unknown: cli.Yellow}
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	for _, x := range r.Findings {
		fmt.Fprintf(w, "%s\t%s\t%s\n", paint.Paint(colours[x.Level], string(x.Level)), x.Check, x.Found)
		if x.Remedy != "" {
			fmt.Fprintf(w, "\t\t-> %s\n", x.Remedy)
		}
	}
	return w.Flush()
}
