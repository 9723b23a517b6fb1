package tsdbtest

import (
	"os"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/histogram"
)

// differences lists where Shale differs from Prometheus on purpose, in the words of docs/read-path.md. The
// code below applies each of them; all other differences fail the test.
var differences = []string{
	// resolve passes only the winner to the oracle.
	"Of two values of a series at one time, the last one to arrive counts, and a value takes precedence over a stale marker.",
	// openOracle sets a window that is larger than all times.
	"Samples may arrive in any order and at any age",
	// sameStale.
	"A stale marker keeps the type that its sender gave it.",
	// sameHint.
	"The only reset hint that is stored is the one of gauge histograms",
	// sameValue and alike.
	"The buckets of a histogram keep their layout.",
	// compare: Prometheus may return any part of a truncated list.
	"If there are more label names or values than a limit allows, Shale returns the first ones.",
	// annotations.
	"the warning about conflicting counter resets",
}

// TestDifferencesAreDocumented keeps the list and the page equal.
func TestDifferencesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/read-path.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(page)), " ")
	for _, d := range differences {
		if !strings.Contains(text, d) {
			t.Errorf("docs/read-path.md does not say: %s", d)
		}
	}
}

// resolve removes the samples that others of the same time replace: the last one wins, but a value wins over
// a stale marker.
func resolve(batches [][]sample) [][]sample {
	type place struct{ batch, at int }
	type point struct {
		series int
		t      int64
	}
	wins := make(map[point]place)
	for i, b := range batches {
		for j := range b {
			p := point{b[j].series, b[j].t}
			old, ok := wins[p]
			if ok && b[j].stale() && !batches[old.batch][old.at].stale() {
				continue
			}
			wins[p] = place{i, j}
		}
	}
	out := make([][]sample, len(batches))
	for i, b := range batches {
		for j := range b {
			if wins[point{b[j].series, b[j].t}] == (place{i, j}) {
				out[i] = append(out[i], b[j])
			}
		}
	}
	return out
}

// sameStale: Prometheus turns a float stale marker into a histogram if the sample before was a histogram. It
// is a stale marker in both.
func sameStale(a, b *sample) bool { return a.stale() && b.stale() }

// sameHint: both report the hint of a gauge. For a counter, Shale reports "no reset" only if that is certain,
// and otherwise nothing. Prometheus reports it for other samples, since it keeps the results of encoding a
// chunk. Neither reports a reset. Before is the previous sample, or nil.
func sameHint(ours, theirs histogram.CounterResetHint, now, before *sample) bool {
	if (ours == histogram.GaugeType) != (theirs == histogram.GaugeType) || ours == histogram.CounterReset {
		return false
	}
	return ours != histogram.NotCounterReset || before != nil && !before.stale() && before.isHistogram() && !isReset(now, before)
}

func (s *sample) isHistogram() bool { return s.h != nil || s.fh != nil }

func (s *sample) float() *histogram.FloatHistogram {
	if s.h != nil {
		return s.h.ToFloat(nil)
	}
	return s.fh.Copy()
}

func isReset(now, before *sample) bool {
	h := now.float()
	h.CounterResetHint = histogram.UnknownCounterReset
	return h.DetectReset(before.float())
}

// annotations drops the warning of conflicting counter resets: it depends on the hint of the first histogram
// of a result.
func annotations(all []string) []string {
	var out []string
	for _, a := range all {
		if !strings.Contains(a, "conflicting counter resets") {
			out = append(out, a)
		}
	}
	return out
}
