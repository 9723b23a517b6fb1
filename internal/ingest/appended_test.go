package ingest

import (
	"testing"
	"time"
)

// TestAppended: what is known of the time of a record is never later than that, and not much earlier.
func TestAppended(t *testing.T) {
	var a appended
	if got := a.of(7); got != 0 {
		t.Errorf("nothing is noted: got %d", got)
	}
	const every, n = 100 * time.Millisecond, 100_000
	at := func(seq uint64) int64 { return int64(time.Hour) + int64(every)*int64(seq) }
	for seq := uint64(1); seq <= n; seq++ {
		a.note(seq, at(seq))
		if got := a.of(seq); got > at(seq) || at(seq)-got > takenEvery {
			t.Fatalf("record %d of %d: got %d", seq, at(seq), got)
		}
	}
	if len(a.all) > mostTaken {
		t.Errorf("%d records are remembered", len(a.all))
	}
	for seq := uint64(1); seq <= n; seq++ {
		recent := at(n)-at(seq) < mostTaken/2*takenEvery
		if got := a.of(seq); got > at(seq) || got == 0 || recent && at(seq)-got > 2*takenEvery {
			t.Fatalf("record %d of %d, afterwards: got %d", seq, at(seq), got)
		}
	}
}
