package main

import (
	"strings"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/cli"
)

// TestAcceptorRefusesWrongSettings: none of these may be taken for another
// value, and none may touch the disk.
func TestAcceptorRefusesWrongSettings(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range []string{
		"--node-id 0", "--segment-bytes 1", "--segment-bytes 10GiB", "--segment-bytes 1000001B --first-segment-bytes 1MiB",
		"--segment-bytes 1MiB --first-segment-bytes 2MiB", "--first-segment-bytes 1048577", "--inbox-bytes 0", "--inbox-bytes 1GiB",
		"--inbox-bytes-node 1", "--window-bytes 0", "--max-batch-requests -1", "--readers-max 0", "--preparers 0", "--preparers 1000",
		"--spare-segments 1000000", "--spare-segments -2", "--logs-hot-max -5", "--close-idle-after -1s", "--close-idle-after 0",
	} {
		code, _, talk := invoke(t, nil, append([]string{"acceptor", "--node-id", "1", "--data-dir", "data", "--listen", "127.0.0.1:0", "--http", ""}, strings.Fields(args)...)...)
		if code != cli.Usage || !strings.Contains(talk, "holdfast: ") {
			t.Errorf("acceptor %s: code %d, %q", args, code, talk)
		}
	}
}
