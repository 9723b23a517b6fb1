package promql

import (
	"errors"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// computedSeries is a computed series. The engine evaluates a selector once and copies its samples, so a
// series forgets them when they are read.
type computedSeries struct {
	series
	histograms []*histogram.FloatHistogram // one for each point, nil for floats; nil: all are floats
	read       bool
}

var errReadTwice = errors.New("promql: a computed series was read twice")

// Iterator returns an iterator over the samples. It reuses the memory of it if that is one of the same type.
// A second call returns an iterator that fails.
func (s *computedSeries) Iterator(it chunkenc.Iterator) chunkenc.Iterator {
	p, histograms := s.points, s.histograms
	s.points, s.histograms = points{}, nil
	if s.read {
		return &pointIterator{err: errReadTwice}
	}
	s.read = true
	if histograms == nil {
		return (&series{points: p}).Iterator(it)
	}
	c, ok := it.(*computedIterator)
	if !ok {
		c = new(computedIterator)
	}
	c.reset(p)
	c.histograms = histograms
	return c
}

// computedIterator walks floats and computed histograms.
type computedIterator struct {
	pointIterator
	histograms []*histogram.FloatHistogram
}

func (c *computedIterator) Next() chunkenc.ValueType { return c.typeOf(c.pointIterator.Next()) }

func (c *computedIterator) Seek(t millis) chunkenc.ValueType {
	return c.typeOf(c.pointIterator.Seek(t))
}

func (c *computedIterator) typeOf(t chunkenc.ValueType) chunkenc.ValueType {
	if t == chunkenc.ValFloat && c.histograms[c.index] != nil {
		return chunkenc.ValFloatHistogram
	}
	return t
}

// AtFloatHistogram returns the series' own histogram if h is nil. The engine never changes a histogram that
// it got from a selector, because it may return the same one at several steps.
func (c *computedIterator) AtFloatHistogram(h *histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	own := c.histograms[c.index]
	if h == nil {
		return c.times[c.index], own
	}
	own.CopyTo(h)
	return c.times[c.index], h
}
