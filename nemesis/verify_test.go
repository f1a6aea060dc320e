package nemesis

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed7f3f3bb8/holdfast/wal"
	"github.com/seed7f3f3bb8/holdfast/workload"
)

// scene is a log that two clients wrote, and what they saw of it.
func scene(t *testing.T) (all []*history, log []byte) {
	t.Helper()
	text := []string{"w 0000000000000aaa\ne 1\n", "w 0000000000000bbb\ne 2\n"}
	parse := func() {
		all = nil
		for i, s := range text {
			h, err := parseHistory(strings.NewReader(s), i)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, h)
		}
	}
	parse()
	at := firstLSN
	for n := uint64(1); n <= 40; n++ {
		c := int(n % 2)
		seed := all[c].seed
		data := make([]byte, payloadBytes(seed, n, clientBytesMax))
		workload.NewPayloads(seed).Fill(n, data)
		end := at + wal.LSN(len(data))
		text[c] += fmt.Sprintf("i %d %d\np %d %v %v\n", n, n*100, n, at, end)
		if n%10 != 0 {
			text[c] += fmt.Sprintf("k %d %d\n", n, n*100+150) // overlaps the next
		}
		log = append(log, data...)
		at = end
	}
	text[0] += "i 99 100" // torn
	text[1] += "i 77 9999\nu 77\n"
	parse()
	all[0].read = append(all[0].read, read{called: 2000, returned: 2600, begin: firstLSN, end: all[0].ops[9].end, crc: crcOf(log, all[0].ops[9].end)})
	return all, log
}

func crcOf(log []byte, end wal.LSN) uint32 {
	sum := newCRC()
	sum.Write(log[:end-firstLSN])
	return sum.Sum32()
}

func TestTheJudgeIsContentWithACorrectRun(t *testing.T) {
	all, log := scene(t)
	v, err := judgeHistories(all, log)
	if err != nil {
		t.Fatal(err)
	}
	if v.acked != 36 || v.unknown != 4 || v.absent != 1 || v.wins != 2 || v.reads != 1 {
		t.Errorf("%+v", v)
	}
	if _, err := acksOf(wal.TimelineID{Tenant: "a", Timeline: "b"}, all); err != nil {
		t.Error(err)
	}
}

// TestTheJudgeSees changes one thing at a time and expects it to be noticed.
func TestTheJudgeSees(t *testing.T) {
	for what, change := range map[string]func(all []*history, log []byte) []byte{
		"an acknowledged append is gone": func(all []*history, log []byte) []byte {
			return log[:all[1].ops[len(all[1].ops)-2].begin-firstLSN]
		},
		"a byte changed":  func(_ []*history, log []byte) []byte { log[len(log)/2] ^= 4; return log },
		"an append twice": func(all []*history, log []byte) []byte { return append(log, log[:all[1].ops[0].end-firstLSN]...) },
		"bytes of nobody": func(_ []*history, log []byte) []byte { return append(log, make([]byte, 100)...) },
		"a torn end":      func(_ []*history, log []byte) []byte { return log[:len(log)-1] },
		"a later append stands in front of an earlier one": func(all []*history, log []byte) []byte {
			all[1].ops[0].called, all[1].ops[0].returned = 5000, 5100
			return log
		},
		"a read of what was not yet appended": func(all []*history, log []byte) []byte {
			all[0].read[0].called, all[0].read[0].returned = 1, 2
			return log
		},
		"a read of other bytes": func(all []*history, log []byte) []byte { all[0].read[0].crc++; return log },
		"another place than was told": func(all []*history, log []byte) []byte {
			all[0].ops[1].begin++
			return log
		},
	} {
		all, log := scene(t)
		log = change(all, log)
		if _, err := judgeHistories(all, log); err == nil {
			t.Errorf("%s: not noticed", what)
		} else {
			t.Logf("%s: %v", what, err)
		}
	}
}

func TestVacuousRunsFail(t *testing.T) {
	kinds := []fault{{name: "kill"}, {name: "rivals", elects: true}}
	o := &Options{AckedMin: 100, EveryOne: true}
	for what, c := range map[string]struct {
		r    Report
		want int
	}{
		"enough":             {Report{Acked: 100, Faults: map[string]*Suffered{"kill": {Times: 1}, "rivals": {Times: 2, Elections: 1}}}, 0},
		"too few":            {Report{Acked: 99, Faults: map[string]*Suffered{"kill": {Times: 1}, "rivals": {Times: 2, Elections: 1}}}, 1},
		"a kind is missing":  {Report{Acked: 100, Faults: map[string]*Suffered{"rivals": {Times: 2, Elections: 1}}}, 1},
		"no election":        {Report{Acked: 100, Faults: map[string]*Suffered{"kill": {Times: 1}, "rivals": {Times: 2}}}, 1},
		"failures are known": {Report{Failures: []string{"x"}}, 1},
	} {
		c.r.vacuous(kinds, o)
		if len(c.r.Failures) != c.want {
			t.Errorf("%s: %q", what, c.r.Failures)
		}
	}
}
