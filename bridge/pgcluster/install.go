package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// BinVariable names the environment variable that says which PostgreSQL to use.
const BinVariable = "HOLDFAST_PG_BIN"

// Installation is a directory with PostgreSQL's programs, and the user they run as.
type Installation struct {
	Bin   string
	Major int

	// credential is nil when this process is not root: then the programs run as
	// its own user. PostgreSQL refuses to run as root.
	credential *syscall.Credential
}

// ErrNotInstalled is returned by Find where there is no PostgreSQL.
var ErrNotInstalled = errors.New("no PostgreSQL server is installed; install one (Debian: apt-get install postgresql) or set " + BinVariable)

// Find looks for PostgreSQL's programs: in BinVariable, in PATH, and where
// Debian and Red Hat install them, newest version first.
func Find() (Installation, error) {
	candidates := []string{os.Getenv(BinVariable)}
	if candidates[0] == "" {
		candidates = nil
		if p, err := exec.LookPath("postgres"); err == nil {
			if p, err = filepath.EvalSymlinks(p); err == nil {
				candidates = append(candidates, filepath.Dir(p))
			}
		}
		for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin"} {
			found, _ := filepath.Glob(pattern)
			slices.SortFunc(found, func(a, b string) int { return versionIn(b) - versionIn(a) })
			candidates = append(candidates, found...)
		}
	}
	for _, bin := range candidates {
		out, err := exec.Command(filepath.Join(bin, "postgres"), "--version").Output()
		if err != nil {
			continue
		}
		fields := strings.Fields(string(out)) // postgres (PostgreSQL) 15.18 (Debian ...)
		if len(fields) < 3 {
			continue
		}
		in := Installation{Bin: bin, Major: versionIn(fields[2])}
		if os.Getuid() == 0 {
			if in.credential, err = unprivileged(); err != nil {
				return Installation{}, err
			}
		}
		return in, nil
	}
	return Installation{}, ErrNotInstalled
}

// versionIn is the first number in s.
func versionIn(s string) int {
	i := strings.IndexAny(s, "0123456789")
	if i < 0 {
		return 0
	}
	n := i
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	v, _ := strconv.Atoi(s[i:n])
	return v
}

func unprivileged() (*syscall.Credential, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("PostgreSQL refuses to run as root and there is no user postgres or nobody to run it as")
}

// Command prepares one of PostgreSQL's programs, to run as the unprivileged user.
func (in Installation) Command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(in.Bin, program), args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: in.credential, Setpgid: true}
	cmd.Dir = "/"
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PG") || strings.HasPrefix(v, "HOME=") }), "HOME=/nonexistent", "LC_ALL=C", "PGTZ=UTC")
	return cmd
}

// Run runs one of PostgreSQL's programs to its end. Its output is part of the error.
func (in Installation) Run(ctx context.Context, program string, args ...string) (string, error) {
	out, err := in.Command(ctx, program, args...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w\n%s", program, err, out)
	}
	return string(out), nil
}

// MakeDir makes a directory that the unprivileged user owns. Its parents must
// be passable for that user.
func (in Installation) MakeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if in.credential == nil {
		return nil
	}
	return os.Chown(dir, int(in.credential.Uid), int(in.credential.Gid))
}

// TempDir makes a temporary directory that the unprivileged user can write to.
func (in Installation) TempDir() (string, error) {
	dir, err := os.MkdirTemp("", "holdfast-pg-")
	if err != nil {
		return "", err
	}
	return dir, in.MakeDir(dir)
}

// TB is what Need wants of a test.
type TB interface {
	Helper()
	Skip(args ...any)
	Fatal(args ...any)
}

// Need returns the installed PostgreSQL. Without one the test is skipped, or,
// where CI=true says that nothing may be left out, fails.
func Need(t TB) Installation {
	t.Helper()
	in, err := Find()
	if err == nil {
		return in
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("CI=true and this test needs PostgreSQL: ", err)
	}
	t.Skip("this test needs PostgreSQL: ", err)
	panic("unreachable")
}
