package metrics

import (
	"math"
	"testing"
)

func TestSecondsBuckets(t *testing.T) {
	want := []float64{50e-6, 100e-6, 200e-6, 400e-6, 800e-6, 1.6e-3, 3.2e-3, 6.4e-3, 12.8e-3, 25e-3, 50e-3, .1, .25, .5, 1, 2.5, 5, 10, 30}
	got := secondsBuckets()
	if len(got) != len(want) {
		t.Fatalf("%d buckets, expected %d", len(got), len(want))
	}
	for i := range want {
		if math.Abs(got[i]-want[i]) > want[i]*1e-9 {
			t.Errorf("bucket %d is %g, expected %g", i, got[i], want[i])
		}
	}
}

func TestOtherBuckets(t *testing.T) {
	if b := countBuckets(); b[0] != 1 || b[len(b)-1] != 4096 {
		t.Errorf("counts go from %g to %g", b[0], b[len(b)-1])
	}
	if b := bytesBuckets(); b[0] != 64 || b[len(b)-1] != 16<<20 {
		t.Errorf("sizes go from %g to %g", b[0], b[len(b)-1])
	}
}
