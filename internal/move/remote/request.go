package remote

import (
	"github.com/klauspost/compress/s2"
	"github.com/prometheus/prometheus/model/labels"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"google.golang.org/protobuf/encoding/protowire"
)

// A request is full when it reaches one of these bounds. They are far below the limits of servers, and large
// enough that a request costs little beyond its samples.
const (
	requestSamples = 10_000
	requestBytes   = 1 << 20
)

// Request is an encoded request.
type Request struct {
	Body               []byte
	Floats, Histograms int
}

// Samples returns the number of samples of both kinds.
func (r *Request) Samples() int { return r.Floats + r.Histograms }

// Builder encodes requests of remote write 2.0. Prometheus's own encoder leaves out a value of -0, because it
// equals 0, so that its sign would be lost.
type Builder struct {
	symbols writev2.SymbolsTable
	series  []byte // encoded series of the request
	current []byte // the series that is being encoded
	message []byte
	refs    []uint32
	Request
}

// NewBuilder returns a builder of requests.
func NewBuilder() *Builder { return &Builder{symbols: writev2.NewSymbolTable()} }

// Full reports whether the request is to be sent.
func (b *Builder) Full() bool {
	return b.Samples() >= requestSamples || len(b.series)+len(b.current) >= requestBytes
}

// Begun reports whether the request has a series to add samples to.
func (b *Builder) Begun() bool { return len(b.current) > 0 }

// Begin begins a series. Samples that are added belong to it.
func (b *Builder) Begin(l labels.Labels) {
	b.endSeries()
	b.refs = b.symbols.SymbolizeLabels(l, b.refs)
	b.message = b.message[:0]
	for _, r := range b.refs {
		b.message = protowire.AppendVarint(b.message, uint64(r))
	}
	b.current = appendMessage(b.current[:0], 1, b.message)
}

func (b *Builder) endSeries() {
	if len(b.current) > 0 {
		b.series = appendMessage(b.series, 5, b.current)
		b.current = b.current[:0]
	}
}

// Float adds a float by its bits. Times are in Unix milliseconds; a start of 0 is unknown.
func (b *Builder) Float(at, start int64, bits uint64) {
	b.Floats++
	m := protowire.AppendFixed64(protowire.AppendTag(b.message[:0], 1, protowire.Fixed64Type), bits)
	m = protowire.AppendVarint(protowire.AppendTag(m, 2, protowire.VarintType), uint64(at))
	if start != 0 {
		m = protowire.AppendVarint(protowire.AppendTag(m, 3, protowire.VarintType), uint64(start))
	}
	b.message = m
	b.current = appendMessage(b.current, 2, m)
}

// Histogram adds an encoded histogram.
func (b *Builder) Histogram(message []byte) {
	b.Histograms++
	b.current = appendMessage(b.current, 3, message)
}

// Finish returns the request, compressed, and begins the next one.
func (b *Builder) Finish() Request {
	b.endSeries()
	r := b.Request
	raw := make([]byte, 0, len(b.series)+64*len(b.symbols.Symbols()))
	for _, s := range b.symbols.Symbols() {
		raw = protowire.AppendString(protowire.AppendTag(raw, 4, protowire.BytesType), s)
	}
	raw = append(raw, b.series...)
	r.Body = s2.EncodeSnappy(nil, raw)
	b.symbols.Reset()
	b.series, b.Request = b.series[:0], Request{}
	return r
}

func appendMessage(dst []byte, field protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, field, protowire.BytesType), message)
}
