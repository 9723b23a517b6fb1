package ledger

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// clock is a time that a test moves.
type clock struct{ ns int64 }

func (c *clock) now() int64 { return c.ns }

// stack is a ledger of the usual tiers.
type stack struct {
	*Ledger
	memory, local, ssd, bucket, results *Tier
	at                                  clock
}

func newStack(firstBytes int64, reg prometheus.Registerer) *stack {
	s := &stack{at: clock{1e18}}
	s.Ledger = New(Options{FirstBytes: firstBytes, Now: s.at.now, Registerer: reg})
	s.memory, s.local, s.ssd, s.bucket = s.Tier(Memory), s.Source(Local), s.Tier(SSD), s.Source(Bucket)
	s.results = s.Aside(Results)
	return s
}

func row(t *testing.T, r *Report, name string) Row {
	t.Helper()
	for _, row := range r.Tiers {
		if row.Name == name {
			return row
		}
	}
	t.Fatalf("no row of %s", name)
	return Row{}
}

// TestFirstTouches: what a query asks for many times counts once as a first touch. A tier is asked for what
// the tiers before it did not have, and a part of the data folder is in no tier but memory.
func TestFirstTouches(t *testing.T) {
	s := newStack(1<<16, nil)
	hour := s.at.ns - int64(2*time.Hour)
	a, b := s.Asker("x", 1, hour), s.Asker("y", 2, s.at.ns)
	a.Served(s.bucket, 7, 100, 40)
	for range 3 {
		a.Served(s.memory, 7, 100, 0) // of the same query
	}
	b.Served(s.ssd, 7, 100, 40)
	c := s.LocalAsker("y", 2)
	c.Served(s.local, 8, 50, 0)
	b.Asked(s.results, 9, 10, true)
	b.Asked(s.results, 10, 10, false)
	r := s.Report()
	for _, want := range []struct {
		tier                               string
		asked, hits, first, firstHits, hit int64
	}{
		{Memory, 6, 3, 3, 0, 300}, {Local, 1, 1, 1, 1, 50}, {SSD, 2, 1, 2, 1, 100}, {Bucket, 1, 1, 1, 1, 100}, {Results, 2, 1, 2, 1, 10},
	} {
		f := row(t, r, want.tier).Total
		if f.Asked != want.asked || f.Hits != want.hits || f.First != want.first || f.FirstHits != want.firstHits || f.HitBytes != want.hit {
			t.Errorf("%s: got %+v, want %+v", want.tier, f, want)
		}
	}
	if got := row(t, r, Memory).Total; got.HitRatio != 0.5 || got.FirstHitRatio != 0 {
		t.Errorf("a hit ratio of %v, and of first touches %v", got.HitRatio, got.FirstHitRatio)
	}
	if r.Ages[0].First != 1 || !r.Ages[localAge].Local || r.Ages[localAge].First != 1 || r.Ages[1].First != 1 || r.Ages[1].Bytes != 400 || r.Ages[1].Bucket != 1 {
		t.Errorf("ages: %+v", r.Ages[:3])
	}
	if len(r.Tenants) != 2 || r.Tenants[0].Name != "x" {
		t.Errorf("tenants: %+v", r.Tenants)
	}
}

// TestLastHour: the figures of the last hour forget what was before.
func TestLastHour(t *testing.T) {
	s := newStack(1<<12, nil)
	s.ssd.Describe(func() State { return State{LimitBytes: 1000} })
	a := s.Asker("x", 1, 0)
	for minute := range 180 {
		s.Minute()
		if minute < 100 {
			a.Served(s.bucket, uint64(minute), 10, 10)
		}
		if minute >= 150 {
			s.ssd.Evicted(100, minute%3 == 0, time.Minute)
		}
		s.at.ns += int64(time.Minute)
	}
	r := s.Report()
	f := row(t, r, SSD)
	if f.Hour.Asked != 0 || f.Total.Asked != 100 || f.Hour.Evicted != 30 {
		t.Errorf("last hour %+v, since the start %+v", f.Hour, f.Total)
	}
	if f.Hour.Churn < 0.66 || f.Hour.Churn > 0.67 || f.Hour.Turnovers < 2.9 || f.Hour.Turnovers > 3.1 || f.Hour.Residence != 60 {
		t.Errorf("churn %v, turnovers %v, residence %v", f.Hour.Churn, f.Hour.Turnovers, f.Hour.Residence)
	}
}

// TestTenantsAreBounded: tenants beyond the bound count as others, until earlier ones have been idle for a
// day.
func TestTenantsAreBounded(t *testing.T) {
	s := newStack(1<<12, nil)
	for i := range 1000 {
		a := s.Asker(fmt.Sprint("t", i), uint64(i), 0)
		a.Served(s.bucket, uint64(i), 1, 1)
	}
	if r := s.Report(); len(r.Tenants) != maxTenants+1 || r.Tenants[0].Name != Other || row(t, r, Bucket).Total.Asked != 1000 {
		t.Errorf("%d tenants, the first is %+v", len(r.Tenants), r.Tenants[0])
	}
	s.at.ns += int64(25 * time.Hour)
	s.Minute()
	a := s.Asker("late", 1, 0)
	a.Served(s.bucket, 1, 1, 1)
	if r := s.Report(); len(r.Tenants) != 2 || row(t, r, Bucket).Total.Asked != 1001 {
		t.Errorf("%d tenants are left, with %d touches", len(r.Tenants), row(t, r, Bucket).Total.Asked)
	}
}

// TestFirstsForget: the table of first touches has a bound, and errs only by counting a touch as a first one.
func TestFirstsForget(t *testing.T) {
	f := newFirsts(1 << 14)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		if key, query := rng.Uint64(), rng.Uint64()%50; !f.note(key, query) || f.note(key, query) {
			t.Fatal("a pair is known that was never noted, or forgotten at once")
		}
	}
}

// TestMetrics: the metrics have the touches of tenants, and the histogram of ages.
func TestMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	s := newStack(1<<12, reg)
	a := s.Asker("x", 1, s.at.ns)
	a.Served(s.bucket, 7, 100, 40)
	a.Served(s.memory, 7, 100, 40)
	err := testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP shale_cache_first_touches_total Values that a tier was asked for, by the first touch of each query.
# TYPE shale_cache_first_touches_total counter
shale_cache_first_touches_total{tenant="x",tier="bucket"} 1
shale_cache_first_touches_total{tenant="x",tier="local"} 0
shale_cache_first_touches_total{tenant="x",tier="ram"} 1
shale_cache_first_touches_total{tenant="x",tier="results"} 0
shale_cache_first_touches_total{tenant="x",tier="ssd"} 1
`), "shale_cache_first_touches_total")
	if err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(reg, "shale_cache_asked_age_seconds"); n != 1 || err != nil {
		t.Errorf("%d histograms of ages: %v", n, err)
	}
}

// BenchmarkServed is what a touch costs.
func BenchmarkServed(b *testing.B) {
	s := newStack(1<<20, nil)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		a := s.Asker("x", rand.Uint64(), 0)
		for i := uint64(0); pb.Next(); i++ {
			a.Served(s.memory, i&0xfff*0x9e3779b97f4a7c15, 100, 40)
		}
	})
}

// TestTouchAllocatesNothing: so does opening the account of a query.
func TestTouchAllocatesNothing(t *testing.T) {
	s := newStack(1<<16, nil)
	key := uint64(0)
	if n := testing.AllocsPerRun(100, func() {
		a := s.Asker("x", key, 0)
		a.Served(s.memory, key, 1, 1)
		key++
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
