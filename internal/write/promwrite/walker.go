package promwrite

import (
	"errors"
	"fmt"
	"math"
	"net/http"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	bodies "github.com/shaledb/shale/internal/write/body"
	"github.com/shaledb/shale/internal/write/wire"
)

// The memory, in bytes, that a walk reserves beside the decoded body, and the steps in which it does. A sample can be as
// short as two bytes on the wire, so the body's size says little of the columns'.
const (
	rowBytes      = 8 + 8
	startBytes    = 8
	seriesBytes   = model.KeyBytes + 4 + 4 + 8
	symbolBytes   = 8
	metadataBytes = 32
	reserveStep   = 256 << 10
)

// walker turns a decoded body into a batch. It is the batch's [model.LabelSource] until the push has returned.
type walker struct {
	version version
	keys    model.KeyBuilder
	decoded []byte
	batch   *model.Batch
	// spans says for each series of the batch where its labels lie: in version 1 the labels themselves, in version 2 the
	// packed references.
	spans []span
	// arena holds what of these could not be taken as it stands.
	arena       []byte
	labels, one model.LabelsBuilder
	// metadata is what the body tells of metric families, each once or a few times.
	metadata  []metadata
	histogram nativeHistogram
	buckets   int
	symbolic  symbolic

	// reserve asks for memory before it is used; reserved is what it gave so far.
	reserve  func(bytes int64) error
	reserved int64

	// pending is what is left out of the series that is being read, whose labels are not known yet.
	pending []pending
	left    write.Rejections
	// empty counts the time series of version 2 that hold nothing, and emptyExample is the first one.
	empty        int
	emptyExample string
}

// start readies the walker for a body.
func (w *walker) start(v version, decoded []byte, seed model.KeySeed, limits write.Limits, b *model.Batch, reserve func(int64) error) {
	w.version = v
	w.keys.Seed, w.keys.Signal = seed, model.Metrics
	w.decoded, w.batch, w.reserve, w.reserved = decoded, b, reserve, 0
	w.spans, w.arena, w.metadata = w.spans[:0], w.arena[:0], w.metadata[:0]
	w.pending, w.left, w.empty, w.emptyExample = w.pending[:0], nil, 0, ""
	w.buckets = limits.Buckets()
	w.symbolic.start(limits.MaxDecodedBytes)
	b.Source = w
}

// walk reads the whole body. Its error is a *malformed, or what reserve returned.
func (w *walker) walk() error {
	var err error
	if w.version == v2 {
		err = w.walkV2()
	} else {
		err = w.walkV1()
	}
	if m, ok := errors.AsType[*wire.Malformed](err); ok {
		return (*malformed)(m)
	}
	return err
}

// Reserve asks for memory on behalf of the write path.
func (w *walker) Reserve(bytes int64) error { return w.reserve(bytes) }

var (
	_ write.Reserver        = (*walker)(nil)
	_ write.CanonicalSource = (*walker)(nil)
)

// CanonicalLabels returns what the key of series i was made of: of version 1 as it lies in the body or the arena, of version
// 2 written out once more.
func (w *walker) CanonicalLabels(i int) model.Labels {
	if w.version == v2 {
		return w.canonicalReferenced(w.spans[i])
	}
	return model.Labels(w.bytes(w.spans[i]))
}

// BuildLabels adds the labels of series i.
func (w *walker) BuildLabels(i int, b *model.LabelsBuilder) {
	if w.version == v2 {
		w.buildReferenced(w.spans[i], b)
		return
	}
	w.buildPlain(w.spans[i], b)
}

// bytes returns a piece of the body or of the arena.
func (w *walker) bytes(s span) []byte {
	if s.at&inArena != 0 {
		return span{s.at &^ inArena, s.size}.of(w.arena)
	}
	return s.of(w.decoded)
}

// seriesWalk is what is known of a series half way through its message.
type seriesWalk struct {
	// samples, exemplars and their bytes are how far the columns were filled before it.
	samples, sampleBytes, exemplars, exemplarBytes int
	// created is the start timestamp, in milliseconds, of the rows that have none of their own.
	created int64
	// typ, helpRef and unitRef are the metadata of version 2.
	typ              metricType
	helpRef, unitRef uint32

	// Of version 1: labels are the bytes from begin to end, if plain: the labels stand together and each is canonical, so
	// that they can be hashed where they are.
	begin, end   int
	plain, named bool
	// Of version 2: where the packed references of the labels lie, and whether there were any yet.
	refs   span
	refers bool
}

// beginSeries readies the walker for a series.
func (w *walker) beginSeries(at int) seriesWalk {
	w.keys.Reset()
	b := w.batch
	return seriesWalk{
		samples: b.Samples.Len(), sampleBytes: len(b.Samples.Bytes), exemplars: b.Exemplars.Len(), exemplarBytes: len(b.Exemplars.Bytes),
		begin: at, end: at, plain: true,
	}
}

// added counts the rows of the series that are in the batch.
func (w *walker) added(s *seriesWalk) (n write.Counts) {
	rows := &w.batch.Samples.Rows
	for i := s.samples; i < rows.Len(); i++ {
		if rows.Kind(i) == model.KindHistogram {
			n.Histograms++
		}
	}
	n.Samples = rows.Len() - s.samples - n.Histograms
	n.Exemplars = w.batch.Exemplars.Len() - s.exemplars
	return n
}

// hasRows reports whether rows of the series are in the batch.
func (w *walker) hasRows(s *seriesWalk) bool {
	return w.batch.Samples.Len() > s.samples || w.batch.Exemplars.Len() > s.exemplars
}

// dropSeries takes the rows of the series out of the batch again.
func (w *walker) dropSeries(s *seriesWalk, reason string, why func() string) {
	n := w.added(s)
	if n.Total() == 0 {
		return
	}
	b := w.batch
	b.Samples.Truncate(s.samples)
	b.Samples.Bytes = b.Samples.Bytes[:s.sampleBytes]
	b.Exemplars.Truncate(s.exemplars)
	b.Exemplars.Bytes = b.Exemplars.Bytes[:s.exemplarBytes]
	w.leaveOut(reason, n, why)
}

// closeSeries gives the rows of the series their key.
func (w *walker) closeSeries(labels span, k model.Key) error {
	w.spans = append(w.spans, labels)
	w.batch.EndSeries(k)
	return w.room()
}

// addFloat adds a sample; times are in milliseconds.
func (w *walker) addFloat(value uint64, ms, startMs int64) error {
	t, ok := nanoseconds(ms)
	start, ok2 := nanoseconds(startMs)
	if !ok || !ok2 {
		w.leaveOutTime(write.Counts{Samples: 1}, ms, startMs)
		return nil
	}
	rows := &w.batch.Samples
	rows.Append(t, value, start)
	if len(rows.Times)&0xfff == 0 {
		return w.room()
	}
	return nil
}

// nanoseconds converts a time from milliseconds. It is not ok if it has no int64 of nanoseconds.
func nanoseconds(ms int64) (ns int64, ok bool) {
	const limit = math.MaxInt64 / 1_000_000
	return ms * 1_000_000, ms <= limit && ms >= -limit
}

// room reserves memory for what a walk builds ahead of its use.
func (w *walker) room() error {
	s, e := &w.batch.Samples, &w.batch.Exemplars
	used := int64(s.Len()+e.Len())*rowBytes + int64(len(s.Starts))*startBytes + int64(len(s.Kinds)+len(e.Kinds)+len(s.Bytes)+len(e.Bytes)) +
		int64(len(w.spans))*seriesBytes + int64(len(w.symbolic.symbols))*symbolBytes + int64(len(w.metadata))*metadataBytes + int64(len(w.arena))
	if used <= w.reserved {
		return nil
	}
	if n := max(len(s.Bytes), len(e.Bytes)); n > bodies.MaxDecoded {
		return tooLarge("histograms or exemplars, as they are stored,", int64(n), "limits.decoded-bytes", bodies.MaxDecoded)
	}
	step := max(used-w.reserved, reserveStep)
	if err := w.reserve(step); err != nil {
		return err
	}
	w.reserved += step
	return nil
}

func tooLarge(what string, n int64, limit string, most int64) error {
	return &write.Refused{
		Status: http.StatusRequestEntityTooLarge, Limit: limit,
		Text: fmt.Sprintf("remote write: the %s has %d bytes and %d are allowed; send fewer samples per request", what, n, most),
	}
}

// memory is the size of what the walker keeps between requests, in bytes.
func (w *walker) memory() int {
	return cap(w.arena) + cap(w.spans)*8 + cap(w.metadata)*metadataBytes + w.symbolic.memory() + w.histogram.memory()
}
