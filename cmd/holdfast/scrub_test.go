package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/admin"
	"github.com/seed7f3f3bb8/holdfast/cli"
	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

func TestScrubOffline(t *testing.T) {
	dir := writtenLog(t)
	root := filepath.Dir(filepath.Dir(dir))
	code, out, talk := invoke(t, nil, "scrub", root)
	if code != cli.OK || !strings.Contains(out, "prod/main") {
		t.Fatalf("code %d\n%s\n%s", code, out, talk)
	}
	name := filepath.Join(dir, "0000000000000002.seg")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(b), "easy to find")
	b[at] ^= 1
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, talk = invoke(t, nil, "scrub", "--json", root)
	var r scrubReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != cli.Corruption || r.Damaged != 1 || len(r.Copies) != 1 {
		t.Fatalf("code %d, %v\n%s\n%s", code, err, out, talk)
	}
	d := r.Copies[0].Damage[0]
	if d.File != filepath.Base(name) || d.Begin == nil || *d.Begin != 0 || *d.End != 31 {
		t.Errorf("damage %+v", d)
	}
	if after, err := os.ReadDir(dir); err != nil || len(after) != 2 {
		t.Errorf("the scrub left %v, %v", after, err)
	}
}

func TestScrubRefusesWhatIsInUse(t *testing.T) {
	dir := writtenLog(t)
	root := filepath.Dir(filepath.Dir(dir))
	lock, err := vfs.OS{}.Lock(filepath.Join(root, lockFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{root, filepath.Dir(dir), dir} {
		if code, _, talk := invoke(t, nil, "scrub", d); code != cli.Failure || !strings.Contains(talk, "--acceptors") {
			t.Errorf("%s: code %d, %s", d, code, talk)
		}
	}
	lock.Close()
	if code, _, talk := invoke(t, nil, "scrub", dir); code != cli.OK {
		t.Errorf("code %d, %s", code, talk)
	}
	for _, args := range [][]string{{"scrub"}, {"scrub", dir, "--acceptors", "a:1"}} {
		if code, _, _ := invoke(t, nil, args...); code != cli.Usage {
			t.Errorf("%v: code %d", args, code)
		}
	}
	if code, _, _ := invoke(t, nil, "scrub", t.TempDir()); code != cli.NotFound {
		t.Errorf("nothing there: code %d", code)
	}
}

// A member that answers "not found" for a timeline that is in use has lost it.
func TestStatusShowsALostMember(t *testing.T) {
	nodes, copies := answersOf()
	for i := range copies {
		copies[i].Value.Term = 1
	}
	copies[2].Err, copies[2].Value = admin.ErrNotFound, nil
	r := &statusReport{Verdict: verdictOK}
	r.addNodes(nodes)
	r.addTimeline(wal.TimelineID{Tenant: "prod", Timeline: "main"}, copies)
	if r.Verdict != verdictDegraded || r.Timeline.Members[2].Health != "lost" || !strings.Contains(strings.Join(r.Why, " "), "has lost its copy") {
		t.Errorf("%+v, %+v", r, r.Timeline.Members[2])
	}
	copies[0].Value.Term, copies[1].Value.Term = 0, 0 // its creation is under way
	r = &statusReport{Verdict: verdictOK}
	r.addTimeline(wal.TimelineID{Tenant: "prod", Timeline: "main"}, copies)
	if r.Timeline.Members[2].Health != "unknown" {
		t.Errorf("never written to: %+v", r.Timeline.Members[2])
	}
}
