package metrics

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
)

var update = flag.Bool("update", false, "write the golden file and docs/metrics.md anew")

type drops struct{}

func (drops) DroppedLines() uint64 { return 3 }
func (drops) DroppedBytes() uint64 { return 300 }

// sets are the sections of the documentation, each with everything of its
// metrics that can show.
var sets = []struct {
	title, about string
	register     func(prometheus.Registerer) error
}{
	{"Every process", "Besides these, the usual `go_*` and `process_*` of the Prometheus client.", func(r prometheus.Registerer) error {
		return NewProcess(r, Build{Version: "v1.2.3", Revision: "abcdef"}, drops{})
	}},
	{"Acceptor", "Over all timelines of the node.", func(r prometheus.Registerer) error {
		if _, err := NewAcceptor(r, []string{"GAP"}); err != nil {
			return err
		}
		return NewAcceptorState(r, func() AcceptorState {
			return AcceptorState{Ready: true, OK: 2, Peers: []PeerState{{Node: 2, LagBytes: 5}, {Node: 3, ContactAge: -1}},
				Timelines: []TimelineState{{Name: "prod/main"}}}
		})
	}},
	{"Proposer", "Over all proposers of the process.", func(r prometheus.Registerer) error {
		p, err := NewProposer(r, []string{"GAP"})
		if err == nil {
			p.Peer(1).Connected.Inc()
		}
		return err
	}},
	{"Bridge", "What is not known is absent, never zero.", func(r prometheus.Registerer) error {
		if _, err := NewBridge(r); err != nil {
			return err
		}
		return NewBridgeState(r, func() BridgeState { return BridgeState{Protection: Waiting} })
	}},
}

// families gathers what register makes, but for the collectors of others.
func families(t *testing.T, register func(prometheus.Registerer) error) []*dto.MetricFamily {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	if err := register(r); err != nil {
		t.Fatal(err)
	}
	all, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(f *dto.MetricFamily) bool { return !strings.HasPrefix(f.GetName(), prefix) })
}

// labels lists a family's labels, and the values that they have here.
func labels(f *dto.MetricFamily) string {
	values := map[string][]string{}
	var names []string
	for _, m := range f.GetMetric() {
		for _, l := range m.GetLabel() {
			if _, ok := values[l.GetName()]; !ok {
				names = append(names, l.GetName())
			}
			if !slices.Contains(values[l.GetName()], l.GetValue()) {
				values[l.GetName()] = append(values[l.GetName()], l.GetValue())
			}
		}
	}
	var out []string
	for _, n := range names {
		switch n {
		case "peer", "timeline", "version", "revision", "goversion", "reason":
			if f.GetName() != prefix+"bridge_reconnects_total" && f.GetName() != prefix+"proposer_reconnects_total" || n == "peer" {
				out = append(out, n)
				continue
			}
		}
		slices.Sort(values[n])
		out = append(out, n+"="+strings.Join(values[n], "|"))
	}
	return strings.Join(out, " ")
}

// TestGolden keeps every name, type, label and help text, and the documentation.
func TestGolden(t *testing.T) {
	var golden, doc strings.Builder
	doc.WriteString(docHead)
	for _, s := range sets {
		fmt.Fprintf(&doc, "\n## %s\n\n%s\n\n| name | type | labels | meaning |\n|---|---|---|---|\n", s.title, s.about)
		for _, f := range families(t, s.register) {
			kind := strings.ToLower(f.GetType().String())
			fmt.Fprintf(&golden, "%s %s {%s} %s\n", f.GetName(), kind, labels(f), f.GetHelp())
			fmt.Fprintf(&doc, "| `%s` | %s | %s | %s |\n", f.GetName(), kind, strings.ReplaceAll(labels(f), "|", ", "), f.GetHelp())
		}
	}
	same(t, "testdata/metrics.txt", golden.String())
	same(t, "../docs/metrics.md", doc.String())
}

const docHead = `# Metrics

Every process shows its metrics on ` + "`/metrics`" + ` of its HTTP address, in the Prometheus text format, OpenMetrics, or
protobuf with native histograms. This file is written by a test from the code: ` + "`go test ./metrics -update`" + `.

Durations are in seconds, sizes and LSNs in bytes. Labels come from small closed sets; there is no series per tenant or
timeline unless an operator asks for one. Every histogram of seconds has the same buckets: 50 µs doubled up to 12.8 ms, then
25 ms, 50 ms, 0.1, 0.25, 0.5, 1, 2.5, 5, 10 and 30 s.

` + "`/livez`" + ` says whether the process should be restarted, ` + "`/readyz`" + ` whether it can serve; both answer 503 with one reason per
line if not.

Some questions and where the answer is:

| question | look at |
|---|---|
| Why is my commit slow? | ` + "`holdfast_stage_seconds`" + ` by stage: the stages add up to ` + "`holdfast_ack_seconds`" + ` |
| Is the disk the limit? | ` + "`holdfast_flush_seconds`" + `, and ` + "`holdfast_batch_appends`" + `: how much one sync carries |
| Is a timeline broken? | ` + "`holdfast_timelines`" + ` with a health other than ok |
| Is one acceptor behind? | ` + "`holdfast_proposer_peer_lag_bytes`" + ` at the proposer, ` + "`holdfast_peer_lag_bytes`" + ` at the acceptors |
| Is anything held back? | ` + "`holdfast_inbox_wait_seconds`" + ` at the acceptor, ` + "`holdfast_window_wait_seconds`" + ` at the proposer |
| Will the disk be full? | ` + "`holdfast_disk_free_bytes`" + `, ` + "`holdfast_segment_bytes`" + ` |
`

func same(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) == want {
		return
	}
	gotLines, wantLines := strings.Split(string(got), "\n"), strings.Split(want, "\n")
	for i := range max(len(gotLines), len(wantLines)) {
		g, w := "(end)", "(end)"
		if i < len(gotLines) {
			g = gotLines[i]
		}
		if i < len(wantLines) {
			w = wantLines[i]
		}
		if g != w {
			t.Fatalf("%s:%d is %q, the code says %q; run go test ./metrics -update if that is meant", path, i+1, g, w)
		}
	}
}

func TestLint(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	for _, s := range sets {
		if err := s.register(r); err != nil {
			t.Fatal(err)
		}
	}
	problems, err := testutil.GatherAndLint(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, prefix) {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

func TestUnknownIsAbsent(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	if err := NewBridgeState(r, func() BridgeState {
		return BridgeState{LastMessageAge: -1, SlotRetainedBytes: -1, FeedbackLagBytes: 7, PostgresTimeline: -1}
	}); err != nil {
		t.Fatal(err)
	}
	if err := testutil.GatherAndCompare(r, strings.NewReader(`
# HELP holdfast_bridge_feedback_lag_bytes WAL received and not yet reported to PostgreSQL as flushed; absent if not known.
# TYPE holdfast_bridge_feedback_lag_bytes gauge
holdfast_bridge_feedback_lag_bytes 7
# HELP holdfast_bridge_protection 1 for the state that holds, 0 for the others.
# TYPE holdfast_bridge_protection gauge
holdfast_bridge_protection{state="protected"} 0
holdfast_bridge_protection{state="unknown"} 1
holdfast_bridge_protection{state="unprotected"} 0
holdfast_bridge_protection{state="waiting"} 0
# HELP holdfast_bridge_upstream_connected 1 while WAL is streamed from PostgreSQL.
# TYPE holdfast_bridge_upstream_connected gauge
holdfast_bridge_upstream_connected 0
`)); err != nil {
		t.Error(err)
	}
}

func TestASetIsRegisteredWhollyOrNotAtAll(t *testing.T) {
	r := prometheus.NewRegistry()
	taken := prometheus.NewCounter(prometheus.CounterOpts{Name: prefix + "read_bytes_total", Help: "WAL bytes sent to readers."})
	r.MustRegister(taken)
	if _, err := NewAcceptor(r, nil); err == nil {
		t.Fatal("a name was taken twice")
	}
	r.Unregister(taken)
	if _, err := NewAcceptor(r, nil); err != nil {
		t.Errorf("the failed registration left something behind: %v", err)
	}
	if _, err := NewAcceptor(nil, nil); err != nil {
		t.Errorf("without a registerer: %v", err)
	}
}

func TestCountersStayClosed(t *testing.T) {
	r := prometheus.NewRegistry()
	a, err := NewAcceptor(r, []string{"GAP"})
	if err != nil {
		t.Fatal(err)
	}
	a.Errors.Inc("GAP")
	a.Errors.Inc("something that nobody has listed")
	a.Errors.Add("neither this", 2)
	if err := testutil.GatherAndCompare(r, strings.NewReader(`
# HELP holdfast_errors_total Streams and calls ended with an error, by reason.
# TYPE holdfast_errors_total counter
holdfast_errors_total{reason="GAP"} 1
holdfast_errors_total{reason="other"} 3
`), prefix+"errors_total"); err != nil {
		t.Error(err)
	}
}

func TestHotPathDoesNotAllocate(t *testing.T) {
	a, err := NewAcceptor(prometheus.NewRegistry(), []string{"GAP"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewProposer(prometheus.NewRegistry(), []string{"GAP"})
	if err != nil {
		t.Fatal(err)
	}
	peer := p.Peer(1)
	d := 50 * time.Microsecond
	observe := func() {
		a.FlushSeconds.Observe(d.Seconds())
		a.WriteSeconds.Observe(d.Seconds())
		a.BatchAppends.Observe(12)
		a.BatchBytes.Observe(98304)
		a.Appends.Add(12)
		a.AppendBytes.Add(98304)
		a.Errors.Inc("GAP")
		p.AckSeconds.Observe(d.Seconds())
		p.StageSeconds.Observe(StageSync, d)
		peer.LagBytes.Add(12)
		if d += 7 * time.Microsecond; d > 100*time.Millisecond {
			d = 50 * time.Microsecond
		}
	}
	for range 20000 { // native buckets are made when first hit
		observe()
	}
	if n := testing.AllocsPerRun(1000, observe); n != 0 {
		t.Errorf("counting one batch allocates %v times, expected 0", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	p, err := NewProposer(nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		p.StageSeconds.Observe(StageSync, 310*time.Microsecond)
	}
}
