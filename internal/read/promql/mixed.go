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
	charged int64 // for the largest series until now

	points  points
	decoder decoder
	memory  []histogram.FloatHistogram // of decoded histograms
	// The samples of the current window, or of the whole series. Stale markers are left out.
	floats     []upstream.FPoint
	histograms []upstream.HPoint
	iterator   pointIterator
	// copy is a copy of shared, of which several steps have one.
	shared, copy *histogram.FloatHistogram

	// For rates of uniform histograms.
	resets   []int // indexes of histograms that follow a reset
	increase increase
	results  []histogram.FloatHistogram // one for each value
}

// histogramBytes is the size of a decoded histogram without its spans and buckets, and of a point that refers
// to it.
const histogramBytes = 192

// sizeOf returns the memory that a histogram holds. Histograms share the bounds of custom buckets.
func sizeOf(h *histogram.FloatHistogram) int64 {
	if h == nil {
		return 0
	}
	return int64(histogramBytes + 8*(cap(h.PositiveSpans)+cap(h.NegativeSpans)+cap(h.PositiveBuckets)+cap(h.NegativeBuckets)))
}

// decodedBytes bounds the size of a histogram by that of its blob. Every bucket and every span takes 8 bytes,
// and at least one byte of the blob.
func decodedBytes(blob int) int64 { return histogramBytes + 8*int64(blob) }

// load takes the samples from the given one on. Before that it charges what they take when they are decoded,
// and so many results of the size of the largest histogram.
func (m *mixed) load(rows *model.Rows, from, results int) error {
	bytes, largest := int64(0), 0
	for i := from; i < rows.Len(); i++ {
		if rows.Kind(i) != model.KindFloat {
			n := len(rows.Blob(i))
			bytes, largest = bytes+int64(n)+decodedBytes(n), max(largest, n)
		}
	}
	bytes += int64(results)*decodedBytes(largest) + 32*int64(rows.Len())
	if bytes > m.charged {
		if err := m.quota.TakeBytes(bytes - m.charged); err != nil {
			return err
		}
		m.charged = bytes
	}
	n := rows.Len() - from
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
	m.decoder.float(h)
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
	if n := len(m.points.times); n > len(m.memory) {
		m.memory = append(m.memory, make([]histogram.FloatHistogram, n-len(m.memory))...)
	}
	for i, t := range m.points.times {
		if m.points.blobs.kinds[i] == model.KindFloat {
			if m.points.values[i] != model.StaleNaN {
				m.floats = append(m.floats, upstream.FPoint{T: t, F: math.Float64frombits(m.points.values[i])})
			}
			continue
		}
		h, err := m.decode(i, &m.memory[i])
		if err != nil {
			return err
		}
		if h != nil {
			m.histograms = append(m.histograms, upstream.HPoint{T: t, H: h})
		}
	}
	return nil
}

// statistics returns an iterator over counts and sums without buckets. Its reset hints depend on how it is
// moved, so it must be moved as upstream moves it.
func (m *mixed) statistics() chunkenc.Iterator {
	m.iterator.reset(m.points)
	return upstream.NewHistogramStatsIterator(&m.iterator)
}

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
			m.addHistogram(before.AtFloatHistogram(nil))
		}
	}
	switch sought {
	case chunkenc.ValFloat:
		if t, f := it.At(); t == maxt {
			m.addFloat(t, f)
		}
	case chunkenc.ValHistogram, chunkenc.ValFloatHistogram:
		if it.AtT() == maxt {
			m.addHistogram(it.AtFloatHistogram(nil))
		}
	}
	return nil
}

func (m *mixed) addFloat(t int64, f float64) {
	if !value.IsStaleNaN(f) {
		m.floats = append(m.floats, upstream.FPoint{T: t, F: f})
	}
}

func (m *mixed) addHistogram(t int64, h *histogram.FloatHistogram) {
	if !value.IsStaleNaN(h.Sum) {
		m.histograms = append(m.histograms, upstream.HPoint{T: t, H: h})
	}
}

// release gives back the memory.
func (m *mixed) release() {
	_ = m.quota.TakeBytes(-m.charged) // giving back never fails
	*m = mixed{quota: m.quota}
}
