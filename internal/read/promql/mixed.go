package promql

import (
	"fmt"
	"math"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/value"
	upstream "github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/shaledb/shale/internal/model"
)

// mixed holds the samples of one series that has histograms, and perhaps floats. Its memory serves one
// series after the other.
type mixed struct {
	quota   *model.Quota
	charged int64 // the most that was held until now
	held    int64 // for the current series
	kept    int64 // of that, in memory and results, which later series reuse

	points  points
	largest int // bytes of the largest histogram, as it is stored
	decoder decoder
	memory  histogramList // of decoded histograms
	// The samples of the current window, or of the whole series. Stale markers are left out.
	floats     []upstream.FPoint
	histograms []upstream.HPoint
	iterator   pointIterator
	// copy is a copy of shared, of which several steps have one.
	shared, copy *histogram.FloatHistogram

	// For rates of uniform histograms.
	resets   []int // indexes of histograms that follow a reset
	increase increase
	results  histogramList // one for each value

	bounds, resultBounds lastBounds
}

// histogramBytes is the size of a decoded histogram without its spans and buckets, and of a point that refers
// to it.
const histogramBytes = 192

// sizeOf returns the memory that a histogram holds, apart from the bounds of custom buckets, which histograms
// share.
func sizeOf(h *histogram.FloatHistogram) int64 {
	if h == nil {
		return 0
	}
	return int64(histogramBytes + 8*(cap(h.PositiveSpans)+cap(h.NegativeSpans)+cap(h.PositiveBuckets)+cap(h.NegativeBuckets)))
}

// decodedBytes bounds the size of a histogram by that of its blob. Every bucket and every span takes 8 bytes,
// and at least one byte of the blob. It is coarse: bounds of custom buckets take 8 bytes of either.
func decodedBytes(blob int) int64 { return histogramBytes + 8*int64(blob) }

// lastBounds tells whether histograms in sequence share the bounds of custom buckets.
type lastBounds struct{ first *float64 }

// sizeOf returns the memory of the bounds, or 0 if the histogram before has the same.
func (l *lastBounds) sizeOf(h *histogram.FloatHistogram) int64 {
	if len(h.CustomValues) == 0 || l.first == &h.CustomValues[0] {
		return 0
	}
	l.first = &h.CustomValues[0]
	return 8 * int64(cap(h.CustomValues))
}

// histogramList is memory of histograms that one series uses after the other.
type histogramList struct {
	all  []histogram.FloatHistogram
	used int // by the current series
}

// grow makes and charges room for n histograms.
func (l *histogramList) grow(m *mixed, n int) error {
	if n <= len(l.all) {
		return nil
	}
	if err := m.keep(int64(n-len(l.all)) * histogramBytes); err != nil {
		return err
	}
	all := make([]histogram.FloatHistogram, n)
	copy(all, l.all)
	l.all = all
	return nil
}

// get returns the i-th histogram, which is in memory of an earlier series.
func (l *histogramList) get(i int) *histogram.FloatHistogram {
	l.used = max(l.used, i+1)
	return &l.all[i]
}

// reset lets go of the bounds of the last series.
func (l *histogramList) reset() {
	for i := range l.used {
		l.all[i].CustomValues = nil
	}
	l.used = 0
}

// hold charges memory for the current series. What earlier series held is charged already.
func (m *mixed) hold(bytes int64) error {
	if m.held += bytes; m.held <= m.charged {
		return nil
	}
	if err := m.quota.TakeBytes(m.held - m.charged); err != nil {
		return err
	}
	m.charged = m.held
	return nil
}

// keep charges memory that later series reuse.
func (m *mixed) keep(bytes int64) error {
	m.kept += bytes
	return m.hold(bytes)
}

// load takes the samples from the given one on. It charges them as they are stored. Decoded histograms and
// results are charged when they are made.
func (m *mixed) load(rows *model.Rows, from int) error {
	n, stored := rows.Len()-from, int64(0)
	m.largest = 0
	for i := from; i < rows.Len(); i++ {
		if rows.Kind(i) != model.KindFloat {
			blob := len(rows.Blob(i))
			stored, m.largest = stored+int64(blob), max(m.largest, blob)
		}
	}
	m.memory.reset()
	m.results.reset()
	m.bounds, m.resultBounds, m.shared, m.copy = lastBounds{}, lastBounds{}, nil, nil
	m.held = m.kept
	if err := m.hold(32*int64(n) + stored + decodedBytes(m.largest)); err != nil {
		return err
	}
	m.points = cut(rows, from, make([]int64, n), make([]uint64, n))
	if m.points.blobs == nil { // all of the range are floats
		m.points.blobs = &blobs{kinds: make([]model.Kind, len(m.points.times)), ends: make([]uint32, len(m.points.times))}
	}
	if from > 0 && rows.Kind(from-1) == model.KindHistogram {
		m.points.blobs.before = rows.Blob(from - 1)
	}
	m.decoder.reset(m.points.blobs)
	m.floats, m.histograms = m.floats[:0], m.histograms[:0]
	return nil
}

// decode returns the i-th point, which is a histogram, in the given memory, or nil if it is a stale marker.
func (m *mixed) decode(i int, h *histogram.FloatHistogram) (*histogram.FloatHistogram, error) {
	if err := m.decoder.decode(i); err != nil {
		return nil, fmt.Errorf("sample at %d ms: %w", m.points.times[i], err)
	}
	if m.decoder.stale() {
		return nil, nil
	}
	before := sizeOf(h)
	m.decoder.float(h)
	if err := m.keep(sizeOf(h) - before); err != nil {
		return nil, err
	}
	if err := m.hold(m.bounds.sizeOf(h)); err != nil {
		return nil, err
	}
	if tooFine(m.decoder.h.Schema) || !m.decoder.h.Float && !exact(h) {
		return nil, errNeedsUpstream
	}
	return h, nil
}

// exact reports whether integer counts are small enough for floats. Upstream adds up the counts of larger
// buckets as floats or as integers, depending on how it reaches the sample.
func exact(h *histogram.FloatHistogram) bool {
	for _, counts := range [][]float64{h.PositiveBuckets, h.NegativeBuckets} {
		for _, c := range counts {
			if math.Abs(c) > 1<<52 {
				return false
			}
		}
	}
	return true
}

// decodeAll decodes all samples.
func (m *mixed) decodeAll() error {
	n := 0
	for _, k := range m.points.blobs.kinds {
		if k != model.KindFloat {
			n++
		}
	}
	if err := m.memory.grow(m, n); err != nil {
		return err
	}
	n = 0
	for i, t := range m.points.times {
		if m.points.blobs.kinds[i] == model.KindFloat {
			if m.points.values[i] != model.StaleNaN {
				m.floats = append(m.floats, upstream.FPoint{T: t, F: math.Float64frombits(m.points.values[i])})
			}
			continue
		}
		h, err := m.decode(i, m.memory.get(n))
		if err != nil {
			return err
		}
		n++
		if h != nil {
			m.histograms = append(m.histograms, upstream.HPoint{T: t, H: h})
		}
	}
	return nil
}

// statistics returns an iterator over counts and sums without buckets. Its reset hints depend on how it is
// moved, so it must be moved as upstream moves it. It holds two whole histograms.
func (m *mixed) statistics() (chunkenc.Iterator, error) {
	if err := m.hold(2 * decodedBytes(m.largest)); err != nil {
		return nil, err
	}
	m.iterator.reset(m.points)
	return upstream.NewHistogramStatsIterator(&m.iterator), nil
}

// slidBytes is the size of a histogram without buckets in a window, and in the iterator's buffer.
const slidBytes = 2 * histogramBytes

// slide moves the samples to the window (mint, maxt] as upstream does in matrixIterSlice.
func (m *mixed) slide(it *storage.BufferedSeriesIterator, mint, maxt int64) error {
	drop := 0
	for drop < len(m.floats) && m.floats[drop].T <= mint {
		drop++
	}
	m.floats = append(m.floats[:0], m.floats[drop:]...)
	for drop = 0; drop < len(m.histograms) && m.histograms[drop].T <= mint; drop++ {
	}
	m.histograms = append(m.histograms[:0], m.histograms[drop:]...)
	m.held -= int64(drop) * slidBytes
	afterFloats, afterHistograms := mint, mint
	if n := len(m.floats); n > 0 {
		afterFloats = m.floats[n-1].T
	}
	if n := len(m.histograms); n > 0 {
		afterHistograms = m.histograms[n-1].T
	}
	sought := it.Seek(maxt)
	if sought == chunkenc.ValNone && it.Err() != nil {
		return it.Err()
	}
	before := it.Buffer()
	for typ := before.Next(); typ != chunkenc.ValNone; typ = before.Next() {
		if typ == chunkenc.ValFloat {
			if t, f := before.At(); t > afterFloats {
				m.addFloat(t, f)
			}
		} else if before.AtT() > afterHistograms {
			if err := m.addHistogram(before.AtFloatHistogram(nil)); err != nil {
				return err
			}
		}
	}
	switch sought {
	case chunkenc.ValFloat:
		if t, f := it.At(); t == maxt {
			m.addFloat(t, f)
		}
	case chunkenc.ValHistogram, chunkenc.ValFloatHistogram:
		if it.AtT() == maxt {
			return m.addHistogram(it.AtFloatHistogram(nil))
		}
	}
	return nil
}

func (m *mixed) addFloat(t int64, f float64) {
	if !value.IsStaleNaN(f) {
		m.floats = append(m.floats, upstream.FPoint{T: t, F: f})
	}
}

func (m *mixed) addHistogram(t int64, h *histogram.FloatHistogram) error {
	if value.IsStaleNaN(h.Sum) {
		return nil
	}
	m.histograms = append(m.histograms, upstream.HPoint{T: t, H: h})
	return m.hold(slidBytes)
}

// release gives back the memory.
func (m *mixed) release() {
	_ = m.quota.TakeBytes(-m.charged) // giving back never fails
	*m = mixed{quota: m.quota}
}
