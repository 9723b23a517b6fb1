package promql

import (
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// series is one series with its samples in the engine's units. It stays valid when its set moves on.
type series struct {
	labels labels.Labels
	points points
}

// Labels returns the label set.
func (s *series) Labels() labels.Labels { return s.labels }

// Iterator returns an iterator over the samples. It reuses the memory of it if that is an iterator of this
// package.
func (s *series) Iterator(it chunkenc.Iterator) chunkenc.Iterator {
	p, ok := it.(*pointIterator)
	if !ok {
		p = new(pointIterator)
	}
	p.reset(s.points)
	return p
}
