package promwrite

import (
	"errors"
	"fmt"
	"math"
	"net/http"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/wire"
)

// Memory in bytes that a walk reserves in addition to the decoded body: of a row with its kind, of its start,
// of a series with its ends and span, of a symbol, and of the metadata of a family. A sample may take only
// two bytes on the wire, so the size of the body says little about the size of the columns.
const (
	rowBytes      = 8 + 8 + 1
	startBytes    = 8
	seriesBytes   = model.KeyBytes + 4 + 4 + 8
	symbolBytes   = 8
	metadataBytes = 28
)

// walker turns a decoded body into a batch. It is the batch's [model.LabelSource] until the push has
// returned.
type walker struct {
	version version
	keys    model.KeyBuilder
	decoded []byte
	batch   *model.Batch
	// spans has the position of each series' labels: in version 1 the labels themselves, in version 2
	// the packed references.
	spans []span
	// arena holds labels and references that cannot be used as they are in the body.
	arena       []byte
	labels, one model.LabelsBuilder
	// metadata has the metadata of metric families, possibly with a few repeats.
	metadata  []metadata
	histogram nativeHistogram
	buckets   int
	symbolic  symbolic
	election  election

	// reserve reserves memory before it is used, and room that of the batch. at is where the series begins
	// that is being parsed. roomy are the capacities at the start of what is not in the batch.
	reserve func(bytes int64) error
	room    write.Room
	at      int
	roomy   struct{ arena, metadata, symbols int }
	// scratch is the most memory that the labels of one series have taken.
	scratch int64

	// pending has the rejected rows of the current series, whose labels are not known yet.
	pending []pending
	left    write.Rejections
	// empty counts the version 2 time series without any content. emptyExample is the first of them.
	empty        int
	emptyExample string
}

// start prepares the walker for a body.
func (w *walker) start(v version, decoded []byte, seed model.KeySeed, limits write.Limits, b *model.Batch, reserve func(int64) error) {
	w.version = v
	w.keys.Seed, w.keys.Signal = seed, model.Metrics
	w.decoded, w.batch, w.reserve, w.at, w.scratch = decoded, b, reserve, 0, 0
	perRow := int64(rowBytes)
	if v == v2 {
		perRow += startBytes
	}
	w.room.Start(b, seriesBytes, perRow, reserve)
	w.roomy.arena, w.roomy.metadata, w.roomy.symbols = cap(w.arena), cap(w.metadata), cap(w.symbolic.symbols)
	w.spans, w.arena, w.metadata = w.spans[:0], w.arena[:0], w.metadata[:0]
	w.pending, w.left, w.empty, w.emptyExample = w.pending[:0], nil, 0, ""
	w.buckets = limits.Buckets()
	w.symbolic.start(limits.MaxDecodedBytes)
	b.Source = w
}

// walk parses the whole body. Its error is a *malformed, or that of reserve.
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
	if err != nil {
		return err
	}
	return w.reserveRows()
}

// Reserve reserves memory for the write path.
func (w *walker) Reserve(bytes int64) error { return w.reserve(bytes) }

var (
	_ write.Reserver        = (*walker)(nil)
	_ write.CanonicalSource = (*walker)(nil)
)

// CanonicalLabels returns the bytes from which the key of series i was computed. Version 1 has them in
// the body or the arena; for version 2 they are expanded again.
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

// bytes returns a range of the body or of the arena.
func (w *walker) bytes(s span) []byte {
	if s.at&inArena != 0 {
		return span{s.at &^ inArena, s.size}.slice(w.arena)
	}
	return s.slice(w.decoded)
}

// seriesWalk is the state of a series while its message is being parsed.
type seriesWalk struct {
	// The lengths of the columns before the series.
	samples, sampleBytes, exemplars, exemplarBytes int
	// created is the start timestamp, in milliseconds, for rows without one.
	created int64
	// typ, helpRef and unitRef are the metadata in version 2.
	typ              metricType
	helpRef, unitRef uint32

	// In version 1, the labels are the bytes from begin to end if they are plain: adjacent and each
	// canonical, so that they can be hashed in place.
	begin, end   int
	plain, named bool
	// In version 2, refs is the position of the packed references, once refers is set.
	refs   span
	refers bool
}

// beginSeries prepares the walker for a series.
func (w *walker) beginSeries(at int) seriesWalk {
	w.keys.Reset()
	b := w.batch
	return seriesWalk{
		samples: b.Samples.Len(), sampleBytes: len(b.Samples.Bytes), exemplars: b.Exemplars.Len(), exemplarBytes: len(b.Exemplars.Bytes),
		begin: at, end: at, plain: true,
	}
}

// added counts the rows that the series has added to the batch.
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

// hasRows reports whether the series has added rows to the batch.
func (w *walker) hasRows(s *seriesWalk) bool {
	return w.batch.Samples.Len() > s.samples || w.batch.Exemplars.Len() > s.exemplars
}

// dropSeries removes the rows of the series from the batch and rejects them.
func (w *walker) dropSeries(s *seriesWalk, reason string, why func() string) {
	n := w.added(s)
	if n.Total() == 0 {
		return
	}
	w.truncate(s)
	w.leaveOut(reason, n, why)
}

// truncate removes the rows of the series from the batch.
func (w *walker) truncate(s *seriesWalk) {
	b := w.batch
	b.Samples.Truncate(s.samples)
	b.Samples.Bytes = b.Samples.Bytes[:s.sampleBytes]
	b.Exemplars.Truncate(s.exemplars)
	b.Exemplars.Bytes = b.Exemplars.Bytes[:s.exemplarBytes]
}

// closeSeries ends the series and gives its rows the key.
func (w *walker) closeSeries(labels span, k model.Key) error {
	if len(w.batch.Keys) == cap(w.batch.Keys) {
		if err := w.grow(); err != nil {
			return err
		}
	}
	if cap(w.spans) < cap(w.batch.Keys) {
		w.spans = model.Sized(w.spans, cap(w.batch.Keys))
	}
	w.spans = append(w.spans, labels)
	w.batch.EndSeries(k)
	if len(w.batch.Keys)&0xff == 0 {
		return w.reserveRows()
	}
	return nil
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
	if len(rows.Times) == cap(rows.Times) {
		if err := w.grow(); err != nil {
			return err
		}
	}
	rows.Append(t, value, start)
	if len(rows.Times)&0xfff == 0 {
		return w.reserveRows()
	}
	return nil
}

// nanoseconds converts a time from milliseconds. It returns false if the result does not fit into an
// int64.
func nanoseconds(ms int64) (ns int64, ok bool) {
	const limit = math.MaxInt64 / 1_000_000
	return ms * 1_000_000, ms <= limit && ms >= -limit
}

func tooLarge(what string, n int64, limit string, most int64) error {
	return &write.Refused{
		Status: http.StatusRequestEntityTooLarge, Limit: limit,
		Text: fmt.Sprintf("remote write: the %s take %d bytes, but %d are allowed; send fewer samples per request", what, n, most),
	}
}

// memory returns the bytes that the walker keeps between requests.
func (w *walker) memory() int {
	return cap(w.arena) + cap(w.spans)*8 + cap(w.metadata)*metadataBytes + w.symbolic.memory() + w.histogram.memory()
}
