package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// compareFlags are the settings of "compare".
type compareFlags struct {
	*grid
	rounds   int
	holdfast string
	peers    string
	systems  string
	out      string
}

// compareMain measures floor and Holdfast in turn, cell by cell, so that
// whatever else the machine does meets both alike.
func compareMain(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("compare", flag.ExitOnError)
	f := compareFlags{grid: addGrid(fs)}
	fs.IntVar(&f.rounds, "rounds", 3, "how often each cell is measured")
	fs.StringVar(&f.holdfast, "holdfast", "bin/holdfast", "the binary; arguments for its acceptors come after --")
	fs.StringVar(&f.peers, "peers", "", "binary of the peers harness; none is measured without it")
	fs.StringVar(&f.systems, "systems", "dragonboat,hcraft", "which peers")
	fs.StringVar(&f.out, "o", "", "file to add the JSON lines to")
	_ = fs.Parse(args)

	var raw bytes.Buffer
	lines := io.Writer(&raw)
	if f.out != "" {
		file, err := os.OpenFile(f.out, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
		if err != nil {
			return err
		}
		defer file.Close()
		lines = io.MultiWriter(&raw, file)
	}
	var failed error
	for round := range f.rounds {
		err := f.each(func(s cellSpec, dir string) error {
			for _, c := range f.commands(s, dir, fs.Args()) {
				line, err := measured(ctx, c.args)
				if ctx.Err() != nil {
					return ctx.Err()
				}
				if err != nil {
					failed = errors.Join(failed, fmt.Errorf("%s P=%d C=%d: %w", c.system, s.payload, s.clients, err))
					continue
				}
				fmt.Fprintf(os.Stderr, "%s round %d/%d %s P=%d C=%d\n", time.Now().Format(time.TimeOnly), round+1, f.rounds, c.system, s.payload, s.clients)
				if _, err := lines.Write(line); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return errors.Join(err, failed)
		}
	}
	rows, err := readRows(&raw)
	if err == nil {
		err = printTable(os.Stdout, rows)
	}
	return errors.Join(err, failed)
}

// command measures one cell of one system and prints it as JSON.
type command struct {
	system string
	args   []string
}

func (f *compareFlags) commands(s cellSpec, dir string, acceptorArgs []string) []command {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	p, c := strconv.Itoa(s.payload), strconv.Itoa(s.clients)
	holdfast := []string{f.holdfast, "load", "--spawn", "3", "--spawn-dir", dir, "--json",
		"--size", p, "--concurrency", c, "--warm", s.warm.String(), "--duration", s.measure.String()}
	for _, a := range acceptorArgs {
		holdfast = append(holdfast, "--spawn-arg", a)
	}
	all := []command{
		{"floor", []string{self, "floor", "-dir", dir, "-P", p, "-C", c, "-warm", s.warm.String(), "-T", s.measure.String()}},
		{"holdfast", holdfast},
	}
	if f.peers == "" {
		return all
	}
	for system := range strings.SplitSeq(f.systems, ",") {
		all = append(all, command{system, []string{f.peers, system, "-dir", filepath.Join(dir, system), "-P", p, "-C", c, "-warm", s.warm.String(), "-T", s.measure.String()}})
	}
	return all
}

// measured runs a command and returns its JSON document as one line.
func measured(ctx context.Context, args []string) ([]byte, error) {
	settle()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(args, " "), err)
	}
	var line bytes.Buffer
	if err := json.Compact(&line, out); err != nil {
		return nil, fmt.Errorf("%s prints %.100q, expected one JSON document", args[0], out)
	}
	line.WriteByte('\n')
	return line.Bytes(), nil
}
