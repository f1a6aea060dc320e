package leftovers

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestADeadProcessesThingsAreGivenBack(t *testing.T) {
	dir, thing := t.TempDir(), filepath.Join(t.TempDir(), "thing")
	if err := os.MkdirAll(filepath.Join(thing, "inner"), 0o755); err != nil {
		t.Fatal(err)
	}
	child := exec.Command("sleep", "1000")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Process.Kill()
	id, err := Identity(child.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	text := "+ dir " + thing + "\n+ dir " + dir + "\n- dir " + dir + "\n+ process " + id + "\n+ process 1" // torn
	if err := os.WriteFile(filepath.Join(dir, "dead.ledger"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Open(dir, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(thing); !os.IsNotExist(err) {
		t.Errorf("the directory is still there: %v", err)
	}
	if err := child.Wait(); err == nil {
		t.Error("the process was not killed")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestALivingProcessKeepsItsThings(t *testing.T) {
	dir, thing := t.TempDir(), t.TempDir()
	a, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Take(Dir, thing); err != nil {
		t.Fatal(err)
	}
	b, err := Open(dir, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(thing); err != nil {
		t.Errorf("it was taken away: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(thing); !os.IsNotExist(err) {
		t.Errorf("it was not given back: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%d ledgers are left", len(left))
	}
}

func TestWhatIsGoneIsGivenBack(t *testing.T) {
	l, err := Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for kind, name := range map[Kind]string{
		Mount: "/nowhere/at/all", Netns: "hf-none", Link: "hf-none",
		Cgroup: "/sys/fs/cgroup/hf-none", Dir: "/nowhere/at/all", Process: "999999999 1",
	} {
		if err := l.Take(kind, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func TestARecycledNumberIsNotKilled(t *testing.T) {
	// This very process, as if it had begun at another time.
	if err := kill("2 0"); err != nil {
		t.Error(err)
	}
	id, err := Identity(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := kill(id + "0"); err != nil {
		t.Error(err)
	}
}
