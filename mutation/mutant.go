package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is one fault: a patch whose first line says what is wrong.
type mutant struct {
	name string
	why  string
	path string

	rooms []string // the packages it changes

	// equivalent, if not empty, argues why no test can notice it: the patch's
	// second line. Such a mutant is listed and not run.
	equivalent string
}

func mutants(dir, only string) ([]mutant, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, err
	}
	var all []mutant
	for _, p := range paths {
		m := mutant{name: strings.TrimSuffix(filepath.Base(p), ".patch"), path: p}
		if only != "" && !slices.Contains(strings.Split(only, ","), m.name) {
			continue
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return nil, err
		}
		first, rest, _ := strings.Cut(string(b), "\n")
		if argument, ok := strings.CutPrefix(rest, "# equivalent: "); ok {
			m.equivalent, _, _ = strings.Cut(argument, "\n")
		}
		for line := range strings.Lines(string(b)) {
			if file, ok := strings.CutPrefix(line, "+++ b/"); ok {
				m.rooms = append(m.rooms, filepath.Dir(strings.TrimSpace(file)))
			}
		}
		m.why = strings.TrimPrefix(first, "# ")
		if m.path, err = filepath.Abs(p); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no mutant in %s", dir)
	}
	return all, nil
}

// scratch is a copy of the source, to be spoilt.
type scratch struct{ dir string }

// copySource copies what the lanes need of the module.
func copySource(to string) (scratch, error) {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return scratch{}, err
	}
	for _, name := range []string{"go.mod", "go.sum", "wal", "consensus", "storage", "flush", "metrics", "proto", "admin", "acceptor", "sim"} {
		from, err := os.Stat(name)
		if err != nil {
			return scratch{}, err
		}
		target := filepath.Join(to, name)
		if from.IsDir() {
			err = os.CopyFS(target, os.DirFS(name))
		} else {
			var b []byte
			if b, err = os.ReadFile(name); err == nil {
				err = os.WriteFile(target, b, 0o600)
			}
		}
		if err != nil {
			return scratch{}, err
		}
	}
	return scratch{to}, nil
}

// renew copies the source again: a patch that did not fit may have left half of itself.
func (s scratch) renew() error {
	if err := os.RemoveAll(s.dir); err != nil {
		return err
	}
	_, err := copySource(s.dir)
	return err
}

// apply applies a mutant, or takes it back.
func (s scratch) apply(m mutant, back bool) error {
	args := []string{"-p1", "--quiet", "--force", "--no-backup-if-mismatch", "--fuzz=3", "-i", m.path}
	if back {
		args = append(args, "--reverse")
	}
	c := exec.Command("patch", args...)
	c.Dir = s.dir
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s does not apply; it must follow the source: %w\n%s", m.name, err, out)
	}
	return nil
}
