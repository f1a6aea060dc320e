package main

import (
	"context"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// lane is one way in which the tests can notice a fault.
type lane struct {
	name string
	room string // its package
	run  string // which of its tests
	env  []string
}

// lanes are tried in this order, cheapest first.
func lanes(seeds string) []lane {
	return []lane{
		{"oracles", "wal", "", nil},
		{"transcripts", "consensus", "TestTranscripts|TestElection", nil},
		{"simulator", "sim", "TestSeeds", []string{"HOLDFAST_SIM_SEEDS=" + seeds, "HOLDFAST_SIM_SHORTEN=0"}},
		{"walks", "consensus", "TestWalks", nil},
		{"stories", "sim", "TestStory", nil},
		{"flush", "flush", "", nil},
		{"storage", "storage", "", nil},
		{"exhaustive", "consensus", "TestExhaustive", nil},
	}
}

// test runs one lane; a room's tests are linked once for all its lanes. Too
// long is a failure, too: a mutant may never end.
func (s scratch) test(ctx context.Context, l lane, limit time.Duration) (string, error) {
	binary := filepath.Join(s.dir, path.Base(l.room)+".test")
	if _, err := os.Stat(binary); err != nil {
		c := exec.CommandContext(ctx, "go", "test", "-vet=off", "-c", "-o", binary, "./"+l.room)
		c.Dir = s.dir
		if out, err := c.CombinedOutput(); err != nil {
			return string(out), &brokenError{string(out)}
		}
	}
	c := exec.CommandContext(ctx, binary, "-test.failfast", "-test.timeout", limit.String(), "-test.run", l.run)
	c.Dir = filepath.Join(s.dir, l.room)
	c.Env = append(os.Environ(), l.env...)
	out, err := c.CombinedOutput()
	return string(out), err
}

// unlink removes what test has linked.
func (s scratch) unlink() error {
	binaries, err := filepath.Glob(filepath.Join(s.dir, "*.test"))
	for _, b := range binaries {
		if e := os.Remove(b); err == nil {
			err = e
		}
	}
	return err
}

// brokenError is a mutant that does not compile.
type brokenError struct{ out string }

func (e *brokenError) Error() string { return "does not compile: " + strings.TrimSpace(e.out) }
