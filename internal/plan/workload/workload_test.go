package workload

import (
	"errors"
	"math"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/plan/trace"
	"github.com/shaledb/shale/internal/racetest"
)

func mustGenerate(t *testing.T, name string, seed uint64, change func(*Model)) *trace.Trace {
	t.Helper()
	m, err := Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&m)
	}
	tr, err := m.Generate(seed, 20_000_000)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func brief(m *Model) { m.Days, m.WarmUpDays = 0.4, 0.1 }

// TestSameSeedSameTrace: a seed gives one trace, and another seed another.
func TestSameSeedSameTrace(t *testing.T) {
	a, b, c := mustGenerate(t, P, 7, brief), mustGenerate(t, P, 7, brief), mustGenerate(t, P, 8, brief)
	if len(a.Requests) != len(b.Requests) {
		t.Fatalf("%d and %d requests", len(a.Requests), len(b.Requests))
	}
	for i := range a.Requests {
		if a.Requests[i] != b.Requests[i] {
			t.Fatalf("request %d: %+v and %+v", i, a.Requests[i], b.Requests[i])
		}
	}
	if a.Summarize() == c.Summarize() {
		t.Error("two seeds give the same trace")
	}
}

// TestRequests: requests are in order, for chunks that exist at the time, and each query asks for a chunk
// first once.
func TestRequests(t *testing.T) {
	for name := range presets() {
		tr := mustGenerate(t, name, 3, brief)
		type pair struct{ query, key uint32 }
		first, asked := map[pair]int{}, map[pair]bool{}
		at := int64(0)
		for i, r := range tr.Requests {
			if r.At < at || int(r.Key) >= len(tr.Sizes) || !r.Write && r.Age < 0 {
				t.Fatalf("%s: request %d: %+v after %d ms", name, i, r, at)
			}
			at = r.At
			if r.Write {
				continue
			}
			asked[pair{r.Query, r.Key}] = true
			if r.First {
				first[pair{r.Query, r.Key}]++
			}
		}
		twice := 0
		for _, n := range first {
			if n > 1 {
				twice++
			}
		}
		// A chunk that is flushed while its query runs may be asked for by a later sub-query only.
		if missing := len(asked) - len(first); twice > 0 || float64(missing) > 0.002*float64(len(asked)) {
			t.Errorf("%s: of %d pairs of a query and a chunk, %d lack a first request and %d have several", name, len(asked), missing, twice)
		}
	}
}

// TestFit: the presets read the shares of young data that the report gives: for its usual cells 60 % younger
// than 3 hours and 69 % younger than a day, for the unusual one 35 % and, for 5 days, 67 %.
func TestFit(t *testing.T) {
	racetest.SkipSerial(t)
	for name, want := range map[string]map[float64]float64{P: {3: 0.35, 120: 0.667}, G: {3: 0.60, 24: 0.69}} {
		tr := mustGenerate(t, name, 7, func(m *Model) { m.Days, m.WarmUpDays = 3, 0.1 })
		for hours, share := range want {
			got, ok := tr.Young(int32(hours * 3600))
			if !ok || math.Abs(got-share) > 0.05 {
				t.Errorf("%s: %.3f of the bytes are younger than %g hours, expected %.3f within 0.05", name, got, hours, share)
			}
		}
	}
}

func TestLimit(t *testing.T) {
	m, err := Preset(P)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Generate(1, 1000); !errors.Is(err, model.ErrLimit) {
		t.Errorf("beyond the limit: %v", err)
	}
	if _, err := Preset("q"); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("unknown model: %v", err)
	}
}
