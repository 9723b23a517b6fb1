package promql

import (
	"math"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/shaledb/shale/internal/model"
)

// series is one series with its samples in the engine's units. It stays valid when its set has moved on.
type series struct {
	labels labels.Labels
	points points
}

// points are columns of samples: Unix milliseconds, IEEE bits, and start timestamps in milliseconds, which are either
// absent or as many.
type points struct {
	times  []int64
	values []uint64
	starts []int64
}

// Labels returns the label set.
func (s *series) Labels() labels.Labels { return s.labels }

// Iterator returns an iterator over the samples. It takes the memory of the given one if that is of this package.
func (s *series) Iterator(it chunkenc.Iterator) chunkenc.Iterator {
	p, ok := it.(*pointIterator)
	if !ok {
		p = new(pointIterator)
	}
	*p = pointIterator{points: s.points, at: -1}
	return p
}

type pointIterator struct {
	points
	at int
}

func (p *pointIterator) Next() chunkenc.ValueType {
	if p.at+1 >= len(p.times) {
		p.at = len(p.times)
		return chunkenc.ValNone
	}
	p.at++
	return chunkenc.ValFloat
}

// millis is the engine's unit of time. It is an alias because go vet would take the engine's Seek for that of io.Seeker.
type millis = int64

// Seek gallops, since the engine seeks forward in small steps.
func (p *pointIterator) Seek(t millis) chunkenc.ValueType {
	n := len(p.times)
	lo := max(p.at, 0)
	if lo >= n {
		p.at = n
		return chunkenc.ValNone
	}
	if p.times[lo] < t {
		step := 1
		for lo+step < n && p.times[lo+step] < t {
			lo += step
			step *= 2
		}
		// The answer lies in (lo, hi].
		hi := min(lo+step, n)
		for hi-lo > 1 {
			mid := int(uint(lo+hi) / 2)
			if p.times[mid] < t {
				lo = mid
			} else {
				hi = mid
			}
		}
		lo = hi
	}
	p.at = lo
	if lo >= n {
		return chunkenc.ValNone
	}
	return chunkenc.ValFloat
}

func (p *pointIterator) At() (int64, float64) {
	return p.times[p.at], math.Float64frombits(p.values[p.at])
}

func (p *pointIterator) AtT() int64 { return p.times[p.at] }

func (p *pointIterator) AtST() int64 {
	if len(p.starts) == 0 {
		return 0
	}
	return p.starts[p.at]
}

// The rows of this family are floats; Next and Seek never announce a histogram.

func (p *pointIterator) AtHistogram(*histogram.Histogram) (int64, *histogram.Histogram) {
	return math.MinInt64, nil
}

func (p *pointIterator) AtFloatHistogram(*histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	return math.MinInt64, nil
}

func (p *pointIterator) Err() error { return nil }

// slab hands out columns from large allocations, since a wide query has many short series.
type slab struct {
	times  []int64
	values []uint64
}

// slabPoints is the size of one allocation, in samples: 64 KB a column.
const slabPoints = 8192

// take copies rows into columns of their own, times cut to milliseconds. Of rows in one millisecond, the last stays.
func (s *slab) take(r *model.Rows) points {
	n := r.Len()
	if n > len(s.times) {
		// A long series gets columns of its own, and what is left of the slab serves the next short one.
		if n > slabPoints/4 {
			return cut(r, make([]int64, n), make([]uint64, n))
		}
		s.times, s.values = make([]int64, slabPoints), make([]uint64, slabPoints)
	}
	p := cut(r, s.times[:n:n], s.values[:n:n])
	s.times, s.values = s.times[n:], s.values[n:]
	return p
}

func cut(r *model.Rows, times []int64, values []uint64) points {
	var starts []int64
	if len(r.Starts) > 0 {
		starts = make([]int64, len(r.Starts))
	}
	n := 0
	for i, t := range r.Times {
		ms := floorMillis(t)
		if n > 0 && times[n-1] == ms {
			n--
		}
		times[n], values[n] = ms, r.Values[i]
		if starts != nil {
			starts[n] = floorMillis(r.Starts[i])
		}
		n++
	}
	p := points{times: times[:n:n], values: values[:n:n]}
	if starts != nil {
		p.starts = starts[:n:n]
	}
	return p
}
