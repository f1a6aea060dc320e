package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/cli"
	"github.com/seed7f3f3bb8/holdfast/workload"
)

// TestAuditSaysWhatItCouldNotLookAt: what was trimmed is not counted among what
// is there.
func TestAuditSaysWhatItCouldNotLookAt(t *testing.T) {
	var out bytes.Buffer
	r := &workload.AuditResult{Acked: 100, Trimmed: 40, Begin: 0x400, End: 0x1000, Identical: true}
	if err := printAudit(&app{Streams: &cli.Streams{Out: &out, Err: &out}}, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"40 of 100 acknowledged appends lie below what is kept", "60 acknowledged appends in [0/400, 0/1000): nothing is missing"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}
