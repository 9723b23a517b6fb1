package tsdbimport

import (
	"math"

	"github.com/klauspost/compress/s2"
	"github.com/prometheus/prometheus/model/labels"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/prometheus/prometheus/storage"
	"google.golang.org/protobuf/encoding/protowire"
)

// A request ends with the piece of a series that reaches one of these bounds. They are far below the limits
// of servers, and large enough that a request costs little beyond its samples.
const (
	requestSamples = 10_000
	requestBytes   = 1 << 20
)

// request is an encoded request.
type request struct {
	body               []byte
	floats, histograms int
	// next is the reference at which the block is to be read on when the request is acknowledged.
	next storage.SeriesRef
}

func (r *request) samples() int { return r.floats + r.histograms }

// requestBuilder encodes requests of remote write 2.0. Prometheus's own encoder leaves out a value of -0,
// because it equals 0, so that its sign would be lost.
type requestBuilder struct {
	symbols writev2.SymbolsTable
	series  []byte // encoded series of the request
	current []byte // the series that is being encoded
	ref     storage.SeriesRef
	message []byte
	refs    []uint32
	request
}

func newRequestBuilder() *requestBuilder {
	return &requestBuilder{symbols: writev2.NewSymbolTable()}
}

// add adds a piece of a series.
func (b *requestBuilder) add(p *piece) error {
	if len(b.current) == 0 || b.ref != p.ref {
		b.endSeries()
		b.begin(p.ref, p.labels)
	}
	for i := range p.points {
		if err := b.point(&p.points[i]); err != nil {
			return err
		}
	}
	return nil
}

// full reports whether the request is to be sent.
func (b *requestBuilder) full() bool {
	return b.samples() >= requestSamples || len(b.series)+len(b.current) >= requestBytes
}

func (b *requestBuilder) begin(ref storage.SeriesRef, l labels.Labels) {
	b.ref = ref
	b.refs = b.symbols.SymbolizeLabels(l, b.refs)
	b.message = b.message[:0]
	for _, r := range b.refs {
		b.message = protowire.AppendVarint(b.message, uint64(r))
	}
	b.current = appendMessage(b.current[:0], 1, b.message)
}

func (b *requestBuilder) endSeries() {
	if len(b.current) > 0 {
		b.series = appendMessage(b.series, 5, b.current)
		b.current = b.current[:0]
	}
}

// point adds a point to the current series.
func (b *requestBuilder) point(p *point) error {
	if p.integer == nil && p.float == nil {
		b.floats++
		m := protowire.AppendFixed64(protowire.AppendTag(b.message[:0], 1, protowire.Fixed64Type), p.bits)
		m = protowire.AppendVarint(protowire.AppendTag(m, 2, protowire.VarintType), uint64(p.at))
		if p.start != 0 {
			m = protowire.AppendVarint(protowire.AppendTag(m, 3, protowire.VarintType), uint64(p.start))
		}
		b.message = m
		b.current = appendMessage(b.current, 2, m)
		return nil
	}
	b.histograms++
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
		if v == 0 && math.Signbit(v) { // the encoder leaves it out; see requestBuilder
			m = protowire.AppendFixed64(protowire.AppendTag(m, field, protowire.Fixed64Type), math.Float64bits(v))
		}
	}
	b.current = appendMessage(b.current, 3, m)
	return nil
}

// finish returns the request, compressed, and begins the next one.
func (b *requestBuilder) finish(next storage.SeriesRef) *request {
	b.endSeries()
	r := b.request
	r.next = next
	raw := make([]byte, 0, len(b.series)+64*len(b.symbols.Symbols()))
	for _, s := range b.symbols.Symbols() {
		raw = protowire.AppendString(protowire.AppendTag(raw, 4, protowire.BytesType), s)
	}
	raw = append(raw, b.series...)
	r.body = s2.EncodeSnappy(nil, raw)
	b.symbols.Reset()
	b.series, b.request = b.series[:0], request{}
	return &r
}

func appendMessage(dst []byte, field protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, field, protowire.BytesType), message)
}
