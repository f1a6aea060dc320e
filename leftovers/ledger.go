package leftovers

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Kind says how a thing is given back.
type Kind string

// What can be taken.
const (
	Mount   Kind = "mount"   // a mount point; unmounted, lazily if it is busy
	Netns   Kind = "netns"   // a named network namespace; deleted with what is in it
	Link    Kind = "link"    // a network interface of the host; deleted
	Cgroup  Kind = "cgroup"  // a control group's directory; removed
	Dir     Kind = "dir"     // a directory; removed with all that is in it
	Process Kind = "process" // "PID START", see Identity; killed
)

// DefaultDir is where this user's ledgers are, of all lanes, so that each returns what any of them left.
func DefaultDir() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("holdfast-leftovers-%d", os.Getuid()))
}

// Ledger lists what this process has taken. It is safe for concurrent use.
type Ledger struct {
	mu    sync.Mutex
	file  *os.File
	taken []entry // in the order in which it was taken
}

type entry struct {
	kind Kind
	name string
}

// A line of a ledger is "+ KIND NAME" before it is taken, "- KIND NAME" once it
// has been given back. A torn last line was never acted upon.

const suffix = ".ledger"

// Open returns what dead processes left in ledgers in dir, and begins a ledger
// of its own there. Things that cannot be given back are reported through
// warn and stay listed; nil is silent.
func Open(dir string, warn func(error)) (*Ledger, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := sweep(name); err != nil && warn != nil {
			warn(fmt.Errorf("left over from an earlier run (%s): %w", name, err))
		}
	}
	for {
		f, err := os.CreateTemp(dir, "*"+suffix)
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
		}
		if _, err := os.Stat(f.Name()); err == nil {
			return &Ledger{file: f}, nil
		}
		_ = f.Close() // somebody swept it before it was locked; it was empty
	}
}

// Take writes down that something is about to be taken.
func (l *Ledger) Take(kind Kind, name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if strings.ContainsAny(name, "\n") || name == "" {
		return fmt.Errorf("a ledger cannot list %q", name)
	}
	l.taken = append(l.taken, entry{kind, name})
	_, err := fmt.Fprintf(l.file, "+ %s %s\n", kind, name)
	return err
}

// Return gives one thing back and strikes it off the list. What is gone
// already is given back.
func (l *Ledger) Return(kind Kind, name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.giveBack(entry{kind, name})
}

// Forget strikes one thing off the list that is gone or somebody else's by now.
func (l *Ledger) Forget(kind Kind, name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.strike(entry{kind, name})
}

func (l *Ledger) giveBack(e entry) error {
	if err := e.release(); err != nil {
		return fmt.Errorf("%s %s: %w", e.kind, e.name, err)
	}
	return l.strike(e)
}

func (l *Ledger) strike(e entry) error {
	if i := slices.Index(l.taken, e); i >= 0 {
		l.taken = slices.Delete(l.taken, i, i+1)
	}
	_, err := fmt.Fprintf(l.file, "- %s %s\n", e.kind, e.name)
	return err
}

// Close gives back all that is still listed, last taken first, and removes the
// ledger. If something cannot be given back the ledger stays for the next run.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	var all error
	for _, e := range slices.Backward(slices.Clone(l.taken)) {
		all = errors.Join(all, l.giveBack(e))
	}
	if all == nil {
		all = os.Remove(l.file.Name())
	}
	all = errors.Join(all, l.file.Close())
	l.file = nil
	return all
}

// sweep gives back what a ledger lists, unless its owner lives.
func sweep(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_APPEND, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil // swept by somebody else
	}
	if err != nil {
		return err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return f.Close() // its owner lives, or somebody else sweeps it
	}
	taken, err := read(f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l := &Ledger{file: f, taken: taken}
	return l.Close()
}

func read(f *os.File) ([]entry, error) {
	var taken []entry
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			return taken, nil // a line without its end is torn
		}
		if err != nil {
			return nil, err
		}
		sign, rest, _ := strings.Cut(line[:len(line)-1], " ")
		kind, name, ok := strings.Cut(rest, " ")
		e := entry{Kind(kind), name}
		switch i := slices.Index(taken, e); {
		case ok && sign == "+":
			taken = append(taken, e)
		case ok && sign == "-" && i >= 0:
			taken = slices.Delete(taken, i, i+1)
		}
	}
}
