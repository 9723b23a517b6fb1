package prom

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/http"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
)

// The fields of the messages ReadResponse, QueryResult, TimeSeries, Label and Sample: number << 3, wire type.
const (
	fieldResults    = 1<<3 | 2 // of ReadResponse
	fieldTimeseries = 1<<3 | 2 // of QueryResult
	fieldLabels     = 1<<3 | 2 // of TimeSeries
	fieldSamples    = 2<<3 | 2
	fieldHistograms = 4<<3 | 2
	fieldName       = 1<<3 | 2 // of Label
	fieldLabelValue = 2<<3 | 2
	fieldValue      = 1<<3 | 1 // of Sample
	fieldTimestamp  = 2 << 3
)

// readSamples answers with a ReadResponse in a snappy block, which must be whole before its first byte can be sent. It is
// encoded as it is read, since as messages it would take several times the memory.
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
		return nil, fmt.Errorf("%w: the answer has %d bytes, and a snappy block at most 4 GiB; ask for less, or for chunks", model.ErrLimit, len(e.out))
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
	one, later []byte // the last series, but for its histograms, and these: they stand behind its samples
	charged    int    // capacity of all three for which the quota was charged
	iterator   chunkenc.Iterator
}

// lengthBytes is room for the length of a result, which is known at its end.
const lengthBytes = binary.MaxVarintLen64

func (e *readEncoder) beginResult() int {
	e.samples = 0
	e.out = append(e.out, fieldResults)
	e.out = append(e.out, make([]byte, lengthBytes)...)
	return len(e.out)
}

// endResult puts the length before the result that begins at an offset, and closes the gap between them.
func (e *readEncoder) endResult(begin int) error {
	length := binary.AppendUvarint(nil, uint64(len(e.out)-begin))
	at := begin - lengthBytes
	copy(e.out[at:], length)
	n := copy(e.out[at+len(length):], e.out[begin:])
	e.out = e.out[:at+len(length)+n]
	return e.charge()
}

// charge charges what the buffers have grown by.
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
		b = append(b, fieldLabels)
		b = binary.AppendUvarint(b, uint64(stringSize(l.Name)+stringSize(l.Value)))
		b = appendString(b, fieldName, l.Name)
		b = appendString(b, fieldLabelValue, l.Value)
	})
	e.iterator = s.Iterator(e.iterator)
	it := e.iterator
	for kind := it.Next(); kind != chunkenc.ValNone; kind = it.Next() {
		if e.samples++; e.samples > e.maxSamples {
			return &api.Error{Kind: typeBadData, Status: http.StatusBadRequest, Err: fmt.Errorf("exceeded sample limit (%d)", e.maxSamples)}
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
	e.out = append(e.out, fieldTimeseries)
	e.out = binary.AppendUvarint(e.out, uint64(len(b)+len(later)))
	e.out = append(append(e.out, b...), later...)
	return e.charge()
}

// appendSample appends a Sample. Unlike upstream it writes a value of -0, whose bits are not those of the default.
func appendSample(b []byte, it chunkenc.Iterator) []byte {
	t, v := it.At()
	bits := math.Float64bits(v)
	size := 0
	if bits != 0 {
		size = 1 + 8
	}
	if t != 0 {
		size += 1 + uvarintSize(uint64(t))
	}
	b = append(b, fieldSamples)
	b = binary.AppendUvarint(b, uint64(size))
	if bits != 0 {
		b = append(b, fieldValue)
		b = binary.LittleEndian.AppendUint64(b, bits)
	}
	if t != 0 {
		b = append(b, fieldTimestamp)
		b = binary.AppendUvarint(b, uint64(t))
	}
	return b
}

func appendHistogram(b []byte, h prompb.Histogram) []byte {
	n := h.Size()
	b = append(b, fieldHistograms)
	b = binary.AppendUvarint(b, uint64(n))
	at := len(b)
	b = append(b, make([]byte, n)...)
	_, _ = h.MarshalTo(b[at:]) // has no error but for want of room
	return b
}

// stringSize is the size of a field that is a string; without one if it is empty.
func stringSize(s string) int {
	if s == "" {
		return 0
	}
	return 1 + uvarintSize(uint64(len(s))) + len(s)
}

func appendString(b []byte, field byte, s string) []byte {
	if s == "" {
		return b
	}
	b = append(b, field)
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func uvarintSize(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}
