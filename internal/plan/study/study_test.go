package study

import (
	"math"
	"slices"
	"testing"

	"github.com/shaledb/shale/internal/plan/cluster"
	"github.com/shaledb/shale/internal/plan/evict"
	"github.com/shaledb/shale/internal/plan/trace"
	"github.com/shaledb/shale/internal/plan/workload"
	"github.com/shaledb/shale/internal/racetest"
)

// loops reads keys in turn, a second apart, so that LRU hits only if it has room for all.
func loops(keys, rounds int) *trace.Trace {
	t := &trace.Trace{Name: "loops", Sizes: slices.Repeat([]uint32{1000}, keys), Scale: 1000}
	for i := range keys * rounds {
		t.Requests = append(t.Requests, trace.Request{At: int64(i) * 1000, Key: uint32(i % keys), Query: uint32(i), First: true})
	}
	return t
}

func mustRun(t *testing.T, s Study) *Report {
	t.Helper()
	if s.Workers == 0 {
		s.Workers = 2
	}
	ssd, err := cluster.FindNode("ssd")
	if err != nil {
		t.Fatal(err)
	}
	s.Node = ssd
	r, err := s.Run(t.Context(), func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestUnits: rates, sizes and dollars are those of the real system.
func TestUnits(t *testing.T) {
	// 100 keys of 1 kB stand for 1000 times as many bytes and requests.
	r := mustRun(t, Study{Trace: loops(100, 37), Sizes: []float64{50e6, 100e6}, Policies: []string{evict.LRU}})
	small, large := r.Rows[0], r.Rows[2]
	if small.HitRatio != 0 || math.Abs(small.Gets-1000) > 1 || math.Abs(small.PeakGets-1000) > 1 {
		t.Errorf("too small: %+v", small)
	}
	if want := 36.0 / 37; math.Abs(large.HitRatio-want) > 1e-9 || math.Abs(large.Gets-1000/37.0) > 0.1 || large.Turnovers != 0 {
		t.Errorf("large enough: %+v", large)
	}
	if want := 1000 * 365.0 / 12 * 86400 * 0.4e-6; math.Abs(small.GetDollars-want) > 0.01*want {
		t.Errorf("%g dollars a month, expected %g", small.GetDollars, want)
	}
	// All 50 MB are replaced each 50 s.
	if math.Abs(small.Turnovers-72) > 2 || small.Unread != 1 {
		t.Errorf("turnovers: %+v", small)
	}
	if math.Abs(large.Gbps-1000*1000*8/1e9) > 1e-3 || math.Abs(large.IOPS-1000) > 1 {
		t.Errorf("peaks: %+v", large)
	}
}

// TestFit: the model has the hit ratios of the report at 1.2 TB and 50 TB, and loses as many requests between
// them; and Shale's tier does what is promised for both sizes.
func TestFit(t *testing.T) {
	if testing.Short() {
		t.Skip("replays two weeks")
	}
	m, err := workload.Preset(workload.P)
	if err != nil {
		t.Fatal(err)
	}
	m.Days = 5
	tr, err := m.Generate(7, 20_000_000)
	if err != nil {
		t.Fatal(err)
	}
	tr.Scale = 7e12 / tr.Summarize().Produced
	rows := mustRun(t, Study{Trace: tr, Sizes: []float64{1.2e12, 50e12}, Policies: []string{evict.LRU, evict.Shale}, Delay: 14e9, Queue: 0.1}).Rows
	for _, c := range []struct {
		name           string
		got, low, high float64
	}{
		{"hit ratio at 1.2 TB", rows[0].HitRatio, 0.67, 0.76},
		{"hit ratio at 50 TB", rows[3].HitRatio, 0.87, 0.95},
		{"requests of LRU at 50 TB", rows[3].Gets / rows[0].Gets, 0.30, 0.40},
		{"requests of shale at 1.2 TB", rows[1].Gets / rows[0].Gets, 0, 0.85},
		{"requests of shale at 50 TB", rows[4].Gets / rows[0].Gets, 0, 0.30},
	} {
		if c.got < c.low || c.got > c.high {
			t.Errorf("%s: %.3f, expected between %g and %g", c.name, c.got, c.low, c.high)
		}
	}
}

// TestTarget: the smallest size is found between those that were simulated.
func TestTarget(t *testing.T) {
	s := Study{Trace: loops(100, 37), Sizes: []float64{25e6, 50e6, 100e6, 200e6}, Policies: []string{evict.LRU}}
	s.Target = Target{HitRatio: 0.5}
	met := mustRun(t, s).Target
	if met == nil || !met.Reached || met.Row.Bytes <= 50e6 || met.Row.Bytes >= 100e6 || math.Abs(met.Row.FirstHitRatio-0.5) > 1e-6 {
		t.Errorf("half of the reads: %+v", met)
	}
	s.Target = Target{HitRatio: 0.99}
	if r := mustRun(t, s); r.Target.Reached || r.Plan != nil {
		t.Errorf("out of reach: %+v", r.Target)
	}
	s.Target = Target{PeakGets: 1e9}
	if met := mustRun(t, s).Target; !met.Reached || met.Row.Bytes != 25e6 {
		t.Errorf("any size: %+v", met)
	}
}

// TestModel: on the fitted workload, Shale's tier needs fewer requests than LRU at every size, and no policy
// fewer than the bound.
func TestModel(t *testing.T) {
	racetest.SkipSerial(t)
	m, err := workload.Preset(workload.FanOut)
	if err != nil {
		t.Fatal(err)
	}
	m.Days, m.WarmUpDays = 1, 1
	tr, err := m.Generate(7, 20_000_000)
	if err != nil {
		t.Fatal(err)
	}
	produced := tr.Summarize().Produced
	r := mustRun(t, Study{Trace: tr, Sizes: []float64{0.17 * produced, produced}, Policies: []string{evict.LRU, LRUShared, evict.Shale}, Delay: 14e9, Queue: 0.1})
	for i := 0; i < len(r.Rows); i += 4 {
		lru, shared, shale, bound := r.Rows[i], r.Rows[i+1], r.Rows[i+2], r.Rows[i+3]
		if shale.Gets > 0.8*lru.Gets || shared.Gets > lru.Gets || bound.Gets > shale.Gets || bound.Gets > shared.Gets {
			t.Errorf("requests a second: lru %g, shared %g, shale %g, bound %g", lru.Gets, shared.Gets, shale.Gets, bound.Gets)
		}
		if shale.Written > lru.Written/2 {
			t.Errorf("shale writes %g bytes a day, lru %g", shale.Written, lru.Written)
		}
	}
}
