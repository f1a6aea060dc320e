package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/seed7f3f3bb8/holdfast/fleet"
	"github.com/seed7f3f3bb8/holdfast/workload"
)

// row is one measured cell, as "holdfast load --json" and the peers harness
// print it.
type row struct {
	workload.LoadResult
	fleet.Cost
}

func (r row) print(w io.Writer) error { return json.NewEncoder(w).Encode(r) }

// cellSpec is what one cell measures.
type cellSpec struct {
	payload, clients int
	warm, measure    time.Duration
}

func (s cellSpec) load() workload.Load {
	return workload.Load{Size: s.payload, Concurrency: s.clients, Warm: s.warm, Duration: s.measure, Payloads: workload.NewPayloads(1)}
}

// grid is the cells that a program goes through.
type grid struct {
	payloads, clients intList
	warm, measure     time.Duration
	dir               string
}

func addGrid(fs *flag.FlagSet) *grid {
	g := &grid{payloads: intList{128, 8192, 65536}, clients: intList{1, 64, 256}}
	fs.Var(&g.payloads, "P", "payload sizes, comma-separated")
	fs.Var(&g.clients, "C", "clients, comma-separated: appends in flight")
	fs.DurationVar(&g.warm, "warm", 2*time.Second, "driven before measuring")
	fs.DurationVar(&g.measure, "T", 6*time.Second, "measured time of each cell")
	fs.StringVar(&g.dir, "dir", "", "where data goes, on the disk to be measured (default: the temporary directory)")
	return g
}

// each calls do for every cell with a fresh directory.
func (g *grid) each(do func(s cellSpec, dir string) error) error {
	for _, p := range g.payloads {
		for _, c := range g.clients {
			if err := inScratch(g.dir, func(dir string) error {
				return do(cellSpec{payload: p, clients: c, warm: g.warm, measure: g.measure}, dir)
			}); err != nil {
				return fmt.Errorf("payload %d, %d clients: %w", p, c, err)
			}
		}
	}
	return nil
}

// inScratch gives do an empty directory and removes it.
func inScratch(parent string, do func(dir string) error) error {
	dir, err := os.MkdirTemp(parent, "holdfast-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return do(dir)
}

// settle lets the disk finish what was done before.
func settle() {
	syscall.Sync()
	time.Sleep(300 * time.Millisecond)
}

// intList is a flag of comma-separated numbers.
type intList []int

func (l *intList) String() string {
	var words []string
	for _, n := range *l {
		words = append(words, strconv.Itoa(n))
	}
	return strings.Join(words, ",")
}

func (l *intList) Set(s string) error {
	*l = nil
	for word := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return fmt.Errorf("%q is no positive number", word)
		}
		*l = append(*l, n)
	}
	return nil
}
