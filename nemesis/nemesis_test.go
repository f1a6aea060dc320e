package nemesis

import (
	"encoding/json"
	"os"
	"testing"
	"time"
)

// TestNemesis breaks things for a while. The schedule comes from a seed that
// is printed; what the machine makes of it does not.
func TestNemesis(t *testing.T) {
	o := Options{Binary: program, Seed: *seed, Duration: *duration, Log: func(line string) { t.Log(line) }}
	if o.Duration == 0 {
		switch os.Getenv("HOLDFAST_DEPTH") {
		case "ci":
			o.Duration = 5 * time.Minute
		case "long":
			o.Duration = 2 * time.Hour
		default:
			o.Duration = 20 * time.Second
		}
	}
	o.EveryOne = o.Duration >= 4*time.Minute
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	out, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", out)
	for _, f := range r.Failures {
		t.Error(f)
	}
	if os.Getenv("HOLDFAST_REQUIRE_FUSE") == "1" && len(r.Skipped) > 0 {
		t.Errorf("HOLDFAST_REQUIRE_FUSE is set, but these were left out: %v", r.Skipped)
	}
}

// TestNemesisWithoutRoot is a short run of what every machine and every user can do.
func TestNemesisWithoutRoot(t *testing.T) {
	r, err := Run(t.Context(), Options{
		Binary: program, Seed: *seed, Duration: 6 * time.Second, AckedMin: 300, Loopback: true, PlainDirs: true,
		Faults: []string{"kill", "cut-both-ways", "cut-replies", "proposer-cut"}, Log: func(line string) { t.Log(line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Failures {
		t.Error(f)
	}
}
