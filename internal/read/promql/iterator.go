package promql

import (
	"fmt"
	"math"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/shaledb/shale/internal/model"
)

// pointIterator walks the points of a series. It decodes a histogram when it reaches it; a histogram that
// cannot be decoded ends the walk with an error.
type pointIterator struct {
	points
	index int
	err   error
	// decoder is made for the first series with histograms and kept for later ones.
	decoder *decoder
}

func (p *pointIterator) reset(points points) {
	p.points, p.index, p.err = points, -1, nil
	if points.blobs == nil {
		return
	}
	if p.decoder == nil {
		p.decoder = new(decoder)
	}
	p.decoder.reset(points.blobs)
}

func (p *pointIterator) Next() chunkenc.ValueType {
	if p.index+1 >= len(p.times) {
		p.index = len(p.times)
		return chunkenc.ValNone
	}
	p.index++
	if p.blobs == nil {
		return chunkenc.ValFloat
	}
	return p.decode()
}

// millis is the engine's unit of time. It is an alias, because go vet would take the engine's Seek for that
// of io.Seeker.
type millis = int64

// Seek gallops, because the engine seeks forward in small steps.
func (p *pointIterator) Seek(t millis) chunkenc.ValueType {
	n := len(p.times)
	lo := max(p.index, 0)
	if lo >= n {
		p.index = n
		return chunkenc.ValNone
	}
	if p.times[lo] < t {
		step := 1
		for lo+step < n && p.times[lo+step] < t {
			lo += step
			step *= 2
		}
		// The result lies in (lo, hi].
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
	p.index = lo
	if lo >= n {
		return chunkenc.ValNone
	}
	if p.blobs == nil {
		return chunkenc.ValFloat
	}
	return p.decode()
}

// decode decodes the current point and returns its type.
func (p *pointIterator) decode() chunkenc.ValueType {
	if p.blobs.kinds[p.index] == model.KindFloat {
		return chunkenc.ValFloat
	}
	if err := p.decoder.decode(p.index); err != nil {
		p.err = fmt.Errorf("sample at %d ms: %w", p.times[p.index], err)
		p.index = len(p.times)
		return chunkenc.ValNone
	}
	if p.decoder.h.Float {
		return chunkenc.ValFloatHistogram
	}
	return chunkenc.ValHistogram
}

func (p *pointIterator) At() (int64, float64) {
	return p.times[p.index], math.Float64frombits(p.values[p.index])
}

// AtHistogram returns an integer histogram, in the memory of h unless that is nil.
func (p *pointIterator) AtHistogram(h *histogram.Histogram) (int64, *histogram.Histogram) {
	if h == nil {
		h = new(histogram.Histogram)
	}
	p.decoder.integer(h)
	return p.times[p.index], h
}

// AtFloatHistogram returns a histogram of either kind with fractional counts, in the memory of h unless
// that is nil.
func (p *pointIterator) AtFloatHistogram(h *histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	if h == nil {
		h = new(histogram.FloatHistogram)
	}
	p.decoder.float(h)
	return p.times[p.index], h
}

func (p *pointIterator) AtT() int64 { return p.times[p.index] }

func (p *pointIterator) AtST() int64 {
	if len(p.starts) == 0 {
		return 0
	}
	return p.starts[p.index]
}

func (p *pointIterator) Err() error { return p.err }
