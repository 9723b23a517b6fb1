package fleet

import (
	"github.com/shaledb/shale/internal/load/random"
	"github.com/shaledb/shale/internal/load/values"
	"github.com/shaledb/shale/internal/model"
)

// Point is one sample of one series, with everything that a message can say about it.
type Point struct {
	Place
	G        int64  // number of the series
	Identity uint64 // number that its values depend on
	*Moment
	// Stale makes it the marker that ends the series.
	Stale bool
}

// Bits returns the value of a float, or the value of a histogram's exemplar.
func (p *Point) Bits(m values.ValueModel) uint64 {
	switch {
	case p.Stale:
		return model.StaleNaN
	case m.Histogram():
		return values.Gauge.Bits(&p.Instant, p.Identity)
	}
	return m.Bits(&p.Instant, p.Identity)
}

func (p *Point) Ms() int64 { return p.Ns / 1e6 }

// Exemplar reports whether a sample has an exemplar, and writes the trace that it names.
func (f *Fleet) Exemplar(p *Point, trace *[TraceBytes]byte) bool {
	if f.Exemplars == 0 || p.Stale {
		return false
	}
	drawn := random.Draw(p.Seed^random.SaltExemplar, p.Identity, p.Tick)
	if !random.Happens(f.Exemplars, drawn) {
		return false
	}
	const hex = "0123456789abcdef"
	high, low := random.Spread64(drawn), random.Spread64(drawn+random.SaltExemplar)
	for i := range 16 {
		trace[i], trace[16+i] = hex[high>>(4*i)&15], hex[low>>(4*i)&15]
	}
	return true
}

// TraceLabel is the label of an exemplar, and TraceBytes the length of its value.
const (
	TraceLabel = "trace_id"
	TraceBytes = 32
)
