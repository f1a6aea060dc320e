package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// tableMain prints rows that were measured before.
func tableMain(_ context.Context, files []string) error {
	if len(files) == 0 {
		return errors.New("name files of JSON lines")
	}
	var all []row
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rows, err := readRows(bytes.NewReader(b))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, rows...)
	}
	return printTable(os.Stdout, all)
}

func readRows(r io.Reader) ([]row, error) {
	var rows []row
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var x row
		if len(lines.Bytes()) == 0 {
			continue
		}
		if err := json.Unmarshal(lines.Bytes(), &x); err != nil {
			return nil, err
		}
		rows = append(rows, x)
	}
	return rows, lines.Err()
}

// cell is all rows of one system, in the order in which they were measured.
type cell struct {
	payload, clients int
	system           string
	rows             []row
}

func cellsOf(rows []row) []*cell {
	var cells []*cell
	for _, r := range rows {
		i := slices.IndexFunc(cells, func(c *cell) bool {
			return c.payload == r.Payload && c.clients == r.Clients && c.system == r.System
		})
		if i < 0 {
			i = len(cells)
			cells = append(cells, &cell{payload: r.Payload, clients: r.Clients, system: r.System})
		}
		cells[i].rows = append(cells[i].rows, r)
	}
	slices.SortStableFunc(cells, func(a, b *cell) int {
		if a.payload != b.payload {
			return a.payload - b.payload
		}
		return a.clients - b.clients
	})
	return cells
}

// middle is the median of what get finds in the rows.
func (c *cell) middle(get func(row) float64) float64 {
	_, m, _ := spread(c.rows, get)
	return m
}

func spread(rows []row, get func(row) float64) (low, median, high float64) {
	var values []float64
	for _, r := range rows {
		values = append(values, get(r))
	}
	if len(values) == 0 {
		return 0, 0, 0
	}
	slices.Sort(values)
	n := len(values)
	return values[0], (values[(n-1)/2] + values[n/2]) / 2, values[n-1]
}

// against is the median, lowest and highest ratio of what was measured in the same round.
func (c *cell) against(other *cell, get func(row) float64) string {
	if other == nil {
		return "-"
	}
	var ratios []row
	for i, r := range c.rows {
		if i < len(other.rows) && get(other.rows[i]) > 0 {
			var x row
			x.OpsS = get(r) / get(other.rows[i])
			ratios = append(ratios, x)
		}
	}
	low, m, high := spread(ratios, opsS)
	if len(ratios) < 2 {
		return fmt.Sprintf("%.2f", m)
	}
	return fmt.Sprintf("%.2f (%.2f-%.2f)", m, low, high)
}

func opsS(r row) float64 { return r.OpsS }
func p99(r row) float64  { return r.P99MS }

// printTable prints Markdown: one table for each payload size.
func printTable(w io.Writer, rows []row) error {
	cells := cellsOf(rows)
	payload := -1
	out := bufio.NewWriter(w)
	for _, c := range cells {
		if c.payload != payload {
			payload = c.payload
			fmt.Fprintf(out, "\n**%d bytes**\n\n", payload)
			fmt.Fprintln(out, "| in flight | system | runs | appends/s (lowest-highest) | MB/s | of the floor | p50 ms | p99 ms | p99 over the floor's | p99.9 ms | CPU µs/append | switches/append | fdatasyncs/s | bytes/fdatasync | servers MB | other CPU |")
			fmt.Fprintln(out, "|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
		}
		var floor *cell
		if i := slices.IndexFunc(cells, func(x *cell) bool {
			return x.payload == c.payload && x.clients == c.clients && x.system == "floor"
		}); i >= 0 {
			floor = cells[i]
		}
		low, rate, high := spread(c.rows, opsS)
		other := c.middle(func(r row) float64 {
			if r.OtherCPU < 0 || r.CPU < 0 {
				return 0
			}
			return r.OtherCPU / (r.OtherCPU + r.CPU)
		})
		fmt.Fprintf(out, "| %d | %s | %d | %.0f (%.0f-%.0f) | %.1f | %s | %.2f | %.2f | %s | %.2f | %.1f | %.1f | %.0f | %.0f | %.0f | %.0f %% |\n",
			c.clients, c.system, len(c.rows), rate, low, high, c.middle(func(r row) float64 { return r.MBS }), c.against(floor, opsS),
			c.middle(func(r row) float64 { return r.P50MS }), c.middle(p99), c.against(floor, p99), c.middle(func(r row) float64 { return r.P999MS }),
			c.middle(func(r row) float64 { return r.CPUPerOp }), c.middle(func(r row) float64 { return r.Switches }),
			c.middle(func(r row) float64 { return r.SyncsS }), c.middle(func(r row) float64 { return r.BytesPerSync }),
			c.middle(func(r row) float64 { return r.PeakRSS }), 100*other)
	}
	return out.Flush()
}
