package workload

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/plan/trace"
)

// How long after the one before a sub-query starts, in hours.
const (
	slowStagger = 18.0 / 3600
	fastStagger = 2.9 / 3600
)

// generator collects the requests of a model.
type generator struct {
	*Model
	*production
	rng      *rand.Rand
	end      float64 // hours
	most     int     // requests
	requests []trace.Request
	query    uint32
}

// Generate makes the trace of the model. It takes 24 bytes a request, and fails beyond the limit.
func (m *Model) Generate(seed uint64, maxRequests int) (*trace.Trace, error) {
	rng := rand.New(rand.NewPCG(seed, 0x5ca1ab1e))
	g := &generator{Model: m, production: m.produce(rng), rng: rng, end: (m.Days + m.WarmUpDays) * 24, most: maxRequests}
	g.flushes()
	for _, part := range []func(){g.dashboards, g.investigations, g.scans, g.bursts} {
		part()
		if len(g.requests) > maxRequests {
			return nil, fmt.Errorf("%w: the model %s gives more than %d requests; raise --max-requests or lower --days", model.ErrLimit, m.Name, maxRequests)
		}
	}
	// The order is complete, so that it does not depend on how Go sorts.
	slices.SortFunc(g.requests, func(a, b trace.Request) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Query, b.Query), cmp.Compare(a.Key, b.Key))
	})
	t := &trace.Trace{
		Name: fmt.Sprintf("%s, seed %d", m.Name, seed), Requests: g.requests, Sizes: g.sizes,
		WarmUp: int64(m.WarmUpDays * 24 * 3_600_000), Scale: 1,
	}
	return t, nil
}

// flushes writes each chunk when it ends.
func (g *generator) flushes() {
	for _, streams := range g.groups {
		for _, s := range streams {
			for i := range s.chunks {
				if at := s.begin + float64(i+1)*s.span; at >= 0 && at < g.end {
					g.requests = append(g.requests, trace.Request{At: millis(at), Key: s.key + uint32(i), Write: true})
				}
			}
		}
	}
}

func millis(hours float64) int64 { return int64(hours * 3_600_000) }

// ask sends a query for [from, to) of a group, at a time, as the sub-queries that it is split into: the
// newest interval first. Each asks for every chunk that it overlaps and that has been flushed.
func (g *generator) ask(at float64, group int, from, to float64) {
	from = max(from, -history)
	if at < 0 || at >= g.end || to <= from || len(g.requests) > g.most {
		return
	}
	g.query++
	split := g.Split / 60
	stagger := fastStagger
	if g.rng.Float64() < g.Slow {
		stagger = slowStagger
	}
	for end := to; end > from; at += stagger {
		start := max(from, (math.Ceil(end/split-1e-9)-1)*split)
		for i := range g.groups[group] {
			g.askStream(at, &g.groups[group][i], start, end, end == to)
		}
		end = start
	}
}

func (g *generator) askStream(at float64, s *stream, start, end float64, newest bool) {
	if at >= g.end {
		return
	}
	last := min(int(math.Ceil((end-s.begin)/s.span))-1, int((at-s.begin)/s.span)-1, s.chunks-1)
	for i := max(int((start-s.begin)/s.span), 0); i <= last; i++ {
		flushed := s.begin + float64(i+1)*s.span
		g.requests = append(g.requests, trace.Request{
			At: millis(at), Key: s.key + uint32(i), Query: g.query, Age: int32((at - flushed) * 3600),
			// The sub-queries go back in time, so the one that has the chunk's end is the first to ask for it.
			First: newest || flushed <= end,
		})
	}
}

// diurnal is the load at a time relative to the mean.
func diurnal(at float64) float64 { return 1 + 0.5*math.Sin((math.Mod(at, 24)-8)/24*2*math.Pi) }

// arrivals calls fn at random times, so many an hour, more of them by day.
func (g *generator) arrivals(perHour float64, fn func(at float64)) {
	const most = 1.5 // of diurnal
	for at := g.rng.ExpFloat64() / (perHour * most); at < g.end; at += g.rng.ExpFloat64() / (perHour * most) {
		if g.rng.Float64()*most < diurnal(at) {
			fn(at)
		}
	}
}

// dashboards refresh the same range of the recent past.
func (g *generator) dashboards() {
	lookBacks := [...]float64{0.5, 1, 3, g.LookBack}
	for range int(g.Dashboards * 40) {
		group, back := g.popular.pick(g.rng), lookBacks[g.rng.IntN(len(lookBacks))]
		period := (5 + 55*g.rng.Float64()) / 60
		for at := period * g.rng.Float64(); at < g.end; at += period {
			if g.rng.Float64()*1.5 < diurnal(at) {
				g.ask(at, group, at-back, at)
			}
		}
	}
}

// logUniform draws between two bounds so that each factor is as likely.
func (g *generator) logUniform(from, to float64) float64 {
	return from * math.Pow(to/from, g.rng.Float64())
}

// investigations look at one range some times within minutes, and some come back to it days later.
func (g *generator) investigations() {
	g.arrivals(g.Investigations, func(at float64) {
		group, age := g.popular.pick(g.rng), g.logUniform(0.5, g.OldestInvestigated)
		from := at - age
		to := min(from+age*(0.1+0.4*g.rng.Float64()), at)
		visits := 1
		if g.rng.Float64() < 0.35 {
			visits += 1 + g.rng.IntN(4)
		}
		for range visits {
			now := at
			for range 3 + g.rng.IntN(10) {
				g.ask(now, group, from, to)
				now += (1 + 5*g.rng.Float64()) / 60
			}
			at += g.rng.ExpFloat64() * 18
		}
	})
}

// scans read a long range of old data once.
func (g *generator) scans() {
	g.arrivals(g.Scans, func(at float64) {
		age := g.logUniform(g.YoungestScanned, 700)
		from := at - age
		g.ask(at, g.popular.pick(g.rng), from, from+min(age, 72)*g.rng.Float64())
	})
}

// bursts read a day of many groups at once.
func (g *generator) bursts() {
	g.arrivals(g.Bursts/24, func(at float64) {
		from := at - g.logUniform(24, 400)
		for range 40 {
			g.ask(at+g.rng.Float64()/30, g.popular.pick(g.rng), from, from+24)
		}
	})
}
