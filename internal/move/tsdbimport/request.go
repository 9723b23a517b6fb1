package tsdbimport

import (
	"math"

	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/prometheus/prometheus/storage"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/shaledb/shale/internal/move/remote"
)

// request is an encoded request.
type request struct {
	remote.Request
	// next is the reference at which the block is to be read on when the request is acknowledged.
	next storage.SeriesRef
}

// requestBuilder encodes pieces of series.
type requestBuilder struct {
	*remote.Builder
	ref storage.SeriesRef
}

// add adds a piece of a series.
func (b *requestBuilder) add(p *piece) error {
	if !b.Begun() || b.ref != p.ref {
		b.ref = p.ref
		b.Begin(p.labels)
	}
	for i := range p.points {
		if err := b.point(&p.points[i]); err != nil {
			return err
		}
	}
	return nil
}

// point adds a point to the current series.
func (b *requestBuilder) point(p *point) error {
	if p.integer == nil && p.float == nil {
		b.Float(p.at, p.start, p.bits)
		return nil
	}
	var h writev2.Histogram
	if p.integer != nil {
		h = writev2.FromIntHistogram(p.start, p.at, p.integer)
	} else {
		h = writev2.FromFloatHistogram(p.start, p.at, p.float)
	}
	m, err := h.Marshal()
	if err != nil {
		return err
	}
	for field, v := range map[protowire.Number]float64{3: h.Sum, 5: h.ZeroThreshold} {
		if v == 0 && math.Signbit(v) { // the encoder leaves it out; see remote.Builder
			m = protowire.AppendFixed64(protowire.AppendTag(m, field, protowire.Fixed64Type), math.Float64bits(v))
		}
	}
	b.Histogram(m)
	return nil
}

// finish returns the request, and begins the next one.
func (b *requestBuilder) finish(next storage.SeriesRef) *request {
	return &request{b.Finish(), next}
}
