package prom

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
)

// The numbers of the fields of ReadResponse, QueryResult, TimeSeries, Label, Sample and Histogram.
const (
	fieldResults    = 1 // of ReadResponse
	fieldTimeseries = 1 // of QueryResult
	fieldLabels     = 1 // of TimeSeries
	fieldSamples    = 2
	fieldHistograms = 4
	fieldName       = 1 // of Label
	fieldLabelValue = 2
	fieldValue      = 1 // of Sample
	fieldTimestamp  = 2

	fieldSum           = 3 // of Histogram
	fieldZeroThreshold = 5
)

// readSamples returns a ReadResponse in a snappy block, which must be complete before its first byte can be
// sent. Series are encoded while they are read: as messages they would take several times the memory.
func (h *Handler) readSamples(r *api.Request, queries []readQuery) (*api.Response, error) {
	e := readEncoder{quota: r.Quota, maxSamples: h.o.MaxReadSamples}
	store := h.store(r)
	for i := range queries {
		begin := e.beginResult()
		if err := queries[i].walk(r.Context(), store, false, e.series); err != nil {
			return nil, err
		}
		if err := e.endResult(begin); err != nil {
			return nil, err
		}
	}
	size := snappy.MaxEncodedLen(len(e.out))
	if size < 0 {
		return nil, fmt.Errorf("%w: the response has %d bytes, and a snappy block has at most 4 GiB; ask for less, or for chunks", model.ErrLimit, len(e.out))
	}
	if err := r.Quota.TakeBytes(int64(size)); err != nil {
		return nil, err
	}
	compressed := snappy.Encode(make([]byte, size), e.out)
	return &api.Response{ContentType: "application/x-protobuf", Encoded: true, Write: func(b *api.Body) error {
		b.W.Header().Set("Content-Encoding", "snappy")
		for len(compressed) > 0 && !b.Broken {
			n := min(len(compressed), api.FlushBytes)
			b.Buf = append(b.Buf, compressed[:n]...)
			compressed = compressed[n:]
			if len(compressed) > 0 {
				b.Spill()
			}
		}
		return nil
	}}, nil
}

// readEncoder encodes a ReadResponse.
type readEncoder struct {
	quota      *model.Quota
	maxSamples int    // of one query
	samples    int    // of this query
	out        []byte // the response
	one, later []byte // the current series: labels and samples, and the histograms that follow them
	charged    int    // capacity of all three that the quota was charged for
	iterator   chunkenc.Iterator
}

// lengthBytes is room for the length of a result, which is known only at its end.
const lengthBytes = binary.MaxVarintLen64

// beginResult returns the offset at which the result begins.
func (e *readEncoder) beginResult() int {
	e.samples = 0
	e.out = protowire.AppendTag(e.out, fieldResults, protowire.BytesType)
	e.out = append(e.out, make([]byte, lengthBytes)...)
	return len(e.out)
}

// endResult puts the length before the result that begins at an offset, and closes the gap between them.
func (e *readEncoder) endResult(begin int) error {
	at := begin - lengthBytes
	n := len(protowire.AppendVarint(e.out[:at], uint64(len(e.out)-begin)))
	e.out = append(e.out[:n], e.out[begin:]...)
	return e.charge()
}

// charge charges the growth of the buffers.
func (e *readEncoder) charge() error {
	held := cap(e.out) + cap(e.one) + cap(e.later)
	if held == e.charged {
		return nil
	}
	err := e.quota.TakeBytes(int64(held - e.charged))
	if err == nil {
		e.charged = held
	}
	return err
}

// series encodes a TimeSeries.
func (e *readEncoder) series(s storage.Series) error {
	b, later := e.one[:0], e.later[:0]
	s.Labels().Range(func(l labels.Label) {
		b = protowire.AppendTag(b, fieldLabels, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(stringSize(l.Name)+stringSize(l.Value)))
		b = appendString(b, fieldName, l.Name)
		b = appendString(b, fieldLabelValue, l.Value)
	})
	e.iterator = s.Iterator(e.iterator)
	it := e.iterator
	for kind := it.Next(); kind != chunkenc.ValNone; kind = it.Next() {
		if e.samples++; e.samples > e.maxSamples {
			return badData("exceeded sample limit (%d)", e.maxSamples)
		}
		switch kind {
		case chunkenc.ValFloat:
			b = appendSample(b, it)
		case chunkenc.ValHistogram:
			t, h := it.AtHistogram(nil)
			later = appendHistogram(later, prompb.FromIntHistogram(t, h))
		case chunkenc.ValFloatHistogram:
			t, h := it.AtFloatHistogram(nil)
			later = appendHistogram(later, prompb.FromFloatHistogram(t, h))
		default:
			return fmt.Errorf("%w: unrecognized value type: %s", model.ErrCorrupt, kind)
		}
	}
	e.one, e.later = b, later
	if err := it.Err(); err != nil {
		return err
	}
	e.out = protowire.AppendTag(e.out, fieldTimeseries, protowire.BytesType)
	e.out = protowire.AppendVarint(e.out, uint64(len(b)+len(later)))
	e.out = append(append(e.out, b...), later...)
	return e.charge()
}

// appendSample appends a Sample. Unlike upstream it writes the value -0, whose bits are not those of the
// default.
func appendSample(b []byte, it chunkenc.Iterator) []byte {
	t, v := it.At()
	bits := math.Float64bits(v)
	size := 0
	if bits != 0 {
		size = protowire.SizeTag(fieldValue) + protowire.SizeFixed64()
	}
	if t != 0 {
		size += protowire.SizeTag(fieldTimestamp) + protowire.SizeVarint(uint64(t))
	}
	b = protowire.AppendTag(b, fieldSamples, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(size))
	if bits != 0 {
		b = protowire.AppendTag(b, fieldValue, protowire.Fixed64Type)
		b = protowire.AppendFixed64(b, bits)
	}
	if t != 0 {
		b = protowire.AppendTag(b, fieldTimestamp, protowire.VarintType)
		b = protowire.AppendVarint(b, uint64(t))
	}
	return b
}

// appendHistogram appends a Histogram. Unlike upstream it writes a sum and a zero threshold of -0.
func appendHistogram(b []byte, h prompb.Histogram) []byte {
	n, negatives := h.Size(), 0
	for _, v := range [...]float64{h.Sum, h.ZeroThreshold} {
		if math.Float64bits(v) == negativeZero {
			negatives++
		}
	}
	b = protowire.AppendTag(b, fieldHistograms, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(n+negatives*(protowire.SizeTag(fieldSum)+protowire.SizeFixed64())))
	at := len(b)
	b = append(b, make([]byte, n)...)
	_, _ = h.MarshalTo(b[at:]) // fails only for want of room
	if math.Float64bits(h.Sum) == negativeZero {
		b = protowire.AppendFixed64(protowire.AppendTag(b, fieldSum, protowire.Fixed64Type), negativeZero)
	}
	if math.Float64bits(h.ZeroThreshold) == negativeZero {
		b = protowire.AppendFixed64(protowire.AppendTag(b, fieldZeroThreshold, protowire.Fixed64Type), negativeZero)
	}
	return b
}

const negativeZero = 1 << 63 // the bits of -0

// stringSize is the size of a string field. Empty strings are left out.
func stringSize(s string) int {
	if s == "" {
		return 0
	}
	return protowire.SizeTag(fieldName) + protowire.SizeBytes(len(s))
}

func appendString(b []byte, field protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}
