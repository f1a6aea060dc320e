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
		{"creation", "admin", "TestCreate|TestBest", nil},
		{"storage", "storage", "", nil},
		{"simulator", "sim", "TestSeeds", []string{"HOLDFAST_SIM_SEEDS=" + seeds, "HOLDFAST_SIM_SHORTEN=0"}},
		{"walks", "consensus", "TestWalks", nil},
		{"stories", "sim", "TestStory", nil},
		{"flush", "flush", "", nil},
		{"acceptor", "acceptor", "TestCreate|TestACopy|TestRecovery|TestMemberWiped|TestALostCopy", nil},
		{"exhaustive", "consensus", "TestExhaustive", nil},
	}
}

// sees reports whether l's tests are made of any of the rooms, so that the others need not run.
func (s scratch) sees(ctx context.Context, l lane, rooms []string) (bool, error) {
	c := exec.CommandContext(ctx, "go", "list", "-deps", "-test", "./"+l.room)
	c.Dir = s.dir
	out, err := c.Output()
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(string(out)) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		for _, room := range rooms {
			if strings.HasSuffix(name, "/holdfast/"+room) {
				return true, nil
			}
		}
	}
	return false, nil
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
