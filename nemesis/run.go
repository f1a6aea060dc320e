package nemesis

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Options says how long and with what.
type Options struct {
	Binary   string // the holdfast program
	Seed     uint64
	Duration time.Duration // rounds are begun until then; half as long again if too little was acknowledged
	Faults   []string      // only these kinds; empty for all that can be done

	AckedMin int  // fewer acknowledged appends prove nothing (10,000)
	EveryOne bool // so does a run in which a possible kind did not happen

	Loopback  bool // no network namespaces, even if they can be made
	PlainDirs bool // no disks of our own, even if they can be made
	KeepLogs  bool // leave the working directory behind

	Log func(string) // told of every step; nil for nobody
}

// Report says what was done and what is wrong. Without failures all is well.
type Report struct {
	Network  string               `json:"network"`
	Disks    string               `json:"disks"`
	Seed     uint64               `json:"seed"`
	Rounds   int                  `json:"rounds"`
	Acked    int                  `json:"acked_appends"`
	Unknown  int                  `json:"unknown_but_there"`
	Absent   int                  `json:"unknown_and_absent"`
	Wins     int                  `json:"elections"`
	Reads    int                  `json:"reads"`
	Kills    int                  `json:"kills_meanwhile"` // of acceptors while another fault lasted
	Faults   map[string]*Suffered `json:"faults"`
	Skipped  map[string]string    `json:"skipped,omitempty"` // kinds that cannot be done here, and why
	Failures []string             `json:"failures,omitempty"`
	Seconds  float64              `json:"secs"`
	Dir      string               `json:"dir,omitempty"` // logs, if they were to be kept
}

// Suffered counts one kind of fault.
type Suffered struct {
	Times     int `json:"times"`
	Elections int `json:"elections"` // terms that were won because of it
}

const (
	ackedMinDefault = 10_000
	roundTime       = 25 * time.Second // faults of one round; its history must stay small enough to be judged
)

// Run does rounds until the time is over.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	if o.AckedMin == 0 {
		o.AckedMin = ackedMinDefault
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	began := time.Now()
	w, err := newWorld(ctx, &o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	r := &Report{Network: w.net.name(), Disks: "ext4 on disks that fail", Seed: o.Seed, Faults: map[string]*Suffered{}}
	if w.noDisks != nil {
		r.Disks = "plain directories"
	}
	if o.KeepLogs {
		r.Dir = w.dir
	}
	kinds, skipped, err := w.pickFaults()
	if err != nil {
		return r, err
	}
	r.Skipped = skipped
	for why, reason := range skipped {
		o.Log(fmt.Sprintf("%s is left out: %s", why, reason))
	}
	d := &deck{w: w, kinds: kinds}
	// A slow machine gets half as much time again to do enough.
	for until, latest := began.Add(o.Duration), began.Add(o.Duration*3/2); ctx.Err() == nil; {
		if r.Acked < o.AckedMin && r.Rounds > 0 && time.Now().After(until) {
			until = latest
		}
		if time.Now().After(until) {
			break
		}
		w.round++
		if err := w.playRound(ctx, d, r, until); err != nil {
			r.Failures = append(r.Failures, fmt.Sprintf("round %d: %v", w.round, err))
			o.Log(r.Failures[len(r.Failures)-1])
			for _, m := range w.machines {
				o.Log(fmt.Sprintf("end of node %d's log:\n%s", m.at, end(m.node.Log, 3000)))
			}
			o.Log("end of the clients' log:\n" + end(w.clientLog.Name(), 3000))
			break // the next round would begin on what this one left
		}
		r.Rounds++
	}
	r.Seconds, r.Kills = time.Since(began).Seconds(), w.kills
	r.vacuous(kinds, &o)
	return r, ctx.Err()
}

// vacuous adds a failure if too little happened to prove anything.
func (r *Report) vacuous(kinds []fault, o *Options) {
	if len(r.Failures) > 0 {
		return
	}
	if r.Acked < o.AckedMin {
		r.Failures = append(r.Failures, fmt.Sprintf("vacuous: %d appends were acknowledged, at least %d must be", r.Acked, o.AckedMin))
	}
	for _, f := range kinds {
		s := r.Faults[f.name]
		if s == nil && o.EveryOne {
			r.Failures = append(r.Failures, fmt.Sprintf("vacuous: there was no %s", f.name))
		}
		if s != nil && f.elects && s.Elections == 0 {
			r.Failures = append(r.Failures, fmt.Sprintf("vacuous: %d times %s brought no election", s.Times, f.name))
		}
	}
}
