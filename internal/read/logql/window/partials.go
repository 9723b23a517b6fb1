package window

import "math"

// Sample is a number at a time. Position orders samples of one time.
type Sample struct {
	Time     int64
	Position uint64
	Value    float64
}

// before orders samples.
func (s *Sample) before(o *Sample) bool {
	return s.Time < o.Time || s.Time == o.Time && s.Position < o.Position
}

// partial is the partial aggregate of a cell. Its zero value is that of no samples.
type partial[P any] interface {
	*P
	add(s *Sample)
	merge(o *P)
	// extra returns the bytes that it refers to.
	extra() int64
	// value returns the aggregate, which has at least one sample.
	value() float64
}

// total is for sum_over_time.
type total struct{ exactSum }

func (p *total) add(s *Sample)  { p.exactSum.add(s.Value) }
func (p *total) merge(o *total) { p.exactSum.merge(&o.exactSum) }
func (p *total) value() float64 { return p.over(1) }

func (s *exactSum) extra() int64 {
	if s.rest == nil {
		return 0
	}
	return restBytes + 8*int64(cap(s.rest.terms)+cap(s.rest.huge))
}

// mean is for avg_over_time.
type mean struct {
	exactSum
	n float64
}

func (p *mean) add(s *Sample) { p.exactSum.add(s.Value); p.n++ }

func (p *mean) merge(o *mean) { p.exactSum.merge(&o.exactSum); p.n += o.n }

func (p *mean) value() float64 { return p.over(p.n) }

// least is for min_over_time. NaN counts only if there is nothing else, and -0 is less than 0.
type least struct {
	v    float64
	some bool
}

func (p *least) add(s *Sample) { p.merge(&least{s.Value, true}) }

func (p *least) merge(o *least) {
	if !o.some {
		return
	}
	if !p.some || math.IsNaN(p.v) || o.v < p.v || o.v == p.v && math.Signbit(o.v) {
		*p = *o
	}
}

func (p *least) extra() int64   { return 0 }
func (p *least) value() float64 { return p.v }

// most is for max_over_time.
type most struct{ least }

func (p *most) add(s *Sample) { p.merge(&most{least{s.Value, true}}) }

func (p *most) merge(o *most) {
	if !o.some {
		return
	}
	if !p.some || math.IsNaN(p.v) || o.v > p.v || o.v == p.v && !math.Signbit(o.v) {
		*p = *o
	}
}

// variance is for stdvar_over_time: the number of samples, their mean, and the sum of the squares of their
// distances from it. (Welford; merged as Chan, Golub and LeVeque do.)
type variance struct{ n, mean, squares float64 }

func (p *variance) add(s *Sample) {
	p.n++
	d := s.Value - p.mean
	p.mean += d / p.n
	p.squares += d * (s.Value - p.mean)
}

func (p *variance) merge(o *variance) {
	if o.n == 0 {
		return
	}
	if p.n == 0 {
		*p = *o
		return
	}
	n, d := p.n+o.n, o.mean-p.mean
	p.mean += d * (o.n / n)
	p.squares += o.squares + d*d*(p.n*o.n/n)
	p.n = n
}

func (p *variance) extra() int64   { return 0 }
func (p *variance) value() float64 { return p.squares / p.n }

// deviation is for stddev_over_time.
type deviation struct{ variance }

func (p *deviation) merge(o *deviation) { p.variance.merge(&o.variance) }
func (p *deviation) value() float64     { return math.Sqrt(p.variance.value()) }

// earliest is for first_over_time.
type earliest struct {
	s    Sample
	some bool
}

func (p *earliest) add(s *Sample) { p.merge(&earliest{*s, true}) }

func (p *earliest) merge(o *earliest) {
	if o.some && (!p.some || o.s.before(&p.s)) {
		*p = *o
	}
}

func (p *earliest) extra() int64   { return 0 }
func (p *earliest) value() float64 { return p.s.Value }

// latest is for last_over_time.
type latest struct{ earliest }

func (p *latest) add(s *Sample) { p.merge(&latest{earliest{*s, true}}) }

func (p *latest) merge(o *latest) {
	if o.some && (!p.some || p.s.before(&o.s)) {
		*p = *o
	}
}
