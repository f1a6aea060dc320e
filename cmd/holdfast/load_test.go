package main

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed7f3f3bb8/holdfast/acceptor"
	"github.com/seed7f3f3bb8/holdfast/bridge/pgwal"
	"github.com/seed7f3f3bb8/holdfast/cli"
	"github.com/seed7f3f3bb8/holdfast/metrics"
	"github.com/seed7f3f3bb8/holdfast/storage/vfs"
	"github.com/seed7f3f3bb8/holdfast/wal"
)

// acceptors runs three in this process, the last of them on a disk whose
// fdatasync takes so much longer, and returns the environment that names them.
func acceptors(t *testing.T, slow time.Duration) (env []string, addrs []string) {
	t.Helper()
	for i := range 3 {
		m, err := metrics.NewAcceptor(prometheus.NewRegistry(), acceptor.Reasons())
		if err != nil {
			t.Fatal(err)
		}
		disk := vfs.NewFault(vfs.NewMem())
		if i == 2 {
			disk.Observe(func(op vfs.Op, _ string) {
				if op == vfs.OpDatasync {
					time.Sleep(slow)
				}
			})
		}
		node, err := acceptor.New(acceptor.Config{NodeID: wal.NodeID(i + 1), DataDir: "data", FS: disk, Metrics: m, SpareSegments: -1})
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go node.Serve(l)
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			node.Shutdown(ctx)
		})
		addrs = append(addrs, l.Addr().String())
	}
	return []string{"HOLDFAST_ACCEPTORS=" + strings.Join(addrs, ","), "HOLDFAST_TIMELINE=test/main"}, addrs
}

// segmentFiles writes n segment files of 1 MiB from 0/100000 on.
func segmentFiles(t *testing.T, n int) string {
	t.Helper()
	dir := t.TempDir()
	for i := range n {
		b := make([]byte, 1<<20)
		for j := range b {
			b[j] = byte(i + j*j>>3)
		}
		if err := os.WriteFile(filepath.Join(dir, pgwal.SegmentBytes(1<<20).FileName(1, wal.LSN(1+i)<<20)), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestLoadLeavesNobodyBehind: what a load has streamed comes out of each of the
// three, at once, also out of one whose disk is slow.
func TestLoadLeavesNobodyBehind(t *testing.T) {
	env, addrs := acceptors(t, 50*time.Millisecond)
	dir := segmentFiles(t, 6)
	if code, _, talk := invoke(t, env, "load", "--create", "--from-segments", dir, "--until", "0/6FFFF0"); code != cli.OK {
		t.Fatalf("code %d\n%s", code, talk)
	}
	want, err := os.ReadFile(filepath.Join(dir, "000000010000000000000003"))
	if err != nil {
		t.Fatal(err)
	}
	for i, addr := range addrs {
		out := filepath.Join(t.TempDir(), strconv.Itoa(i))
		code, _, talk := invoke(t, env, "wal", "export", "--from", "0/100000", "--to", "0/6FFFF0", "--out", out, "--segment-size", "1MiB", "--acceptor", addr)
		got, err := os.ReadFile(filepath.Join(out, "000000010000000000000003"))
		if code != cli.OK || err != nil || string(got) != string(want) {
			t.Errorf("acceptor %d: code %d, %v\n%s", i+1, code, err, talk)
		}
	}
	var list struct {
		Timelines []struct {
			Copies []struct {
				Flush wal.LSN `json:"flush_lsn"`
			} `json:"copies"`
		} `json:"timelines"`
	}
	_, text, _ := invoke(t, env, "timeline", "list", "--json")
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list.Timelines) != 1 {
		t.Fatalf("%v\n%s", err, text)
	}
	for i, c := range list.Timelines[0].Copies {
		if c.Flush != 0x6FFFF0 {
			t.Errorf("acceptor %d has it up to %v", i+1, c.Flush)
		}
	}
}

// TestPositionsThatAreNotThere: a range that nobody has is an error before
// anything is written, and one that is no range is a usage error.
func TestPositionsThatAreNotThere(t *testing.T) {
	env, _ := acceptors(t, 0)
	dir := segmentFiles(t, 2)
	if code, _, talk := invoke(t, env, "load", "--create", "--from-segments", dir); code != cli.OK {
		t.Fatalf("code %d\n%s", code, talk)
	}
	out := filepath.Join(t.TempDir(), "out")
	for _, c := range []struct {
		args string
		want cli.Code
	}{
		{"wal read --from 0/200000 --to 0/100000", cli.Usage},
		{"wal read --from 0/100000 --to 9/0", cli.NotFound},
		{"wal read --from 9/0", cli.NotFound},
		{"wal read --from 0/0 --to 0/100010", cli.NotFound},
		{"wal read --from 0/300000 --to 0/300000", cli.OK},
		{"wal export --from 0/100000 --to 9/0 --out " + out, cli.NotFound},
		{"wal export --from 0/300000 --out " + out, cli.NotFound},
		{"wal export --segment-size 3MiB --out " + out, cli.Usage},
		{"wal export --pg-timeline 0 --out " + out, cli.Usage},
		{"load --from-segments " + dir + " --until 0/0", cli.Usage},
		{"load --from-segments " + dir + " --until 0/300001", cli.Usage},
		{"load --from-segments " + dir + " --until 0/200000", cli.Failure}, // it holds more already
		{"load --from-segments " + dir, cli.OK},                            // it is complete
	} {
		code, stdout, talk := invoke(t, env, strings.Fields(c.args)...)
		if code != c.want || code != cli.OK && stdout != "" {
			t.Errorf("%s: code %d, want %d, %d bytes of output\n%s", c.args, code, c.want, len(stdout), talk)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("something was exported")
	}
}

// TestLoadRefusesBeforeItDoesAnything: a wrong setting creates no timeline and
// prints no result.
func TestLoadRefusesBeforeItDoesAnything(t *testing.T) {
	env, _ := acceptors(t, 0)
	dir := segmentFiles(t, 1)
	for _, args := range []string{
		"--size 0", "--size 2GiB", "--size 1GiB --concurrency 64", "--concurrency 0", "--concurrency -1", "--duration 0", "--duration -1s",
		"--timeout 0", "--warm -1s", "--settle -1s", "--open-wait 0", "--spawn -1", "--request-bytes 0", "--request-bytes 1MiB",
		"--until 0/1", "--from-segments " + dir + " --until 99/0", "--from-segments " + dir + " --until 0/0",
	} {
		code, out, talk := invoke(t, env, append([]string{"load", "--create"}, strings.Fields(args)...)...)
		if code != cli.Usage || out != "" || talk == "" {
			t.Errorf("load %s: code %d, stdout %q, stderr %q", args, code, out, talk)
		}
	}
	if _, text, _ := invoke(t, env, "timeline", "list"); strings.Contains(text, "test/main") {
		t.Errorf("a timeline was created\n%s", text)
	}
}
