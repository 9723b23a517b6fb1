package promql

import (
	"math"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/value"
	upstream "github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/shaledb/shale/internal/model"
)

// computeMixed computes a series with histograms, from the row at the given index on.
func (w *windows) computeMixed(rows *model.Rows, from int) error {
	if err := w.mixed.load(rows, from); err != nil {
		return err
	}
	statistics := w.selector.SkipHistogramBuckets
	switch {
	case w.fn != nil && statistics:
		return w.callStatistics()
	case w.fn != nil:
		return w.callMixed()
	case statistics:
		return w.lastStatistics()
	}
	return w.lastMixed()
}

// mostValues returns the greatest number of steps at which a series with so many samples has a value.
func (n *node) mostValues(samples int) int {
	return int(mostValues(int64(n.steps()), int64(samples), n.width, n.step))
}

// mostValues bounds the number of steps whose windows have any of the samples. It divides first, because a
// product with the width of a window can overflow.
func mostValues(steps, samples, width, step int64) int64 {
	if perSample := width/step + 1; samples < steps/perSample {
		return samples * perSample
	}
	return steps
}

// stepTime returns the end of the window of a step.
func (w *windows) stepTime(i int) int64 { return w.start - w.offset + int64(i)*w.step }

// callMixed applies upstream's function to each window.
func (w *windows) callMixed() error {
	m := w.mixed
	if err := m.decodeAll(); err != nil {
		return err
	}
	if w.ownHistogramRate() {
		return w.computeHistogramRates()
	}
	var firstFloat, floats, firstHistogram, histograms int
	for i := range w.steps() {
		t := w.stepTime(i)
		for floats < len(m.floats) && m.floats[floats].T <= t {
			floats++
		}
		for firstFloat < floats && m.floats[firstFloat].T <= t-w.width {
			firstFloat++
		}
		for histograms < len(m.histograms) && m.histograms[histograms].T <= t {
			histograms++
		}
		for firstHistogram < histograms && m.histograms[firstHistogram].T <= t-w.width {
			firstHistogram++
		}
		if err := w.callStep(i, m.floats[firstFloat:floats:floats], m.histograms[firstHistogram:histograms:histograms]); err != nil {
			return err
		}
	}
	return nil
}

// callStatistics is callMixed without buckets.
func (w *windows) callStatistics() error {
	samples, err := w.mixed.statistics()
	if err != nil {
		return err
	}
	it := storage.NewBufferIterator(samples, w.width)
	for i := range w.steps() {
		t := w.stepTime(i)
		if err := w.mixed.slide(it, t-w.width, t); err != nil {
			return err
		}
		if err := w.callStep(i, w.mixed.floats, w.mixed.histograms); err != nil {
			return err
		}
		it.ReduceDelta(min(w.width, w.step))
	}
	return nil
}

// callStep applies upstream's function to the window of a step, unless that is empty.
func (w *windows) callStep(step int, floats []upstream.FPoint, histograms []upstream.HPoint) error {
	if len(floats)+len(histograms) == 0 {
		return nil
	}
	if w.edge() {
		return w.addEdge(step, floats, histograms)
	}
	w.matrix[0].Floats, w.matrix[0].Histograms = floats, histograms
	w.helper.Ts = w.start + int64(step)*w.step
	out, notes := w.fn(w.scalars, w.matrix, w.call.Args, &w.helper)
	w.notes.Merge(notes)
	w.helper.Out = out[:0]
	if len(out) == 0 {
		return nil
	}
	return w.addMade(step, out[0].F, out[0].H)
}

// addMade adds a histogram that was made for the step, or the float if that is nil, and charges it. If the
// aggregation does not look into histograms, all steps have the same one.
func (w *windows) addMade(step int, f float64, h *histogram.FloatHistogram) error {
	if h != nil && w.ignoresHistograms() {
		w.add(step, f, &w.mixed.increase.sum)
		return nil
	}
	w.add(step, f, h)
	if h == nil {
		return nil
	}
	return w.mixed.hold(sizeOf(h) + w.mixed.resultBounds.sizeOf(h))
}

// ignoresHistograms reports whether the node is an aggregation that does not look into histograms.
func (n *node) ignoresHistograms() bool { return n.aggregate != nil && !n.addsHistograms() }

// edge reports whether the function returns the first or last sample of a window.
func (n *node) edge() bool { return n.call != nil && !n.dropsName }

// addEdge adds the first or last sample of a window. Upstream copies histograms at each step; here
// consecutive steps share a copy.
func (w *windows) addEdge(step int, floats []upstream.FPoint, histograms []upstream.HPoint) error {
	float, last := 0, 0
	if w.call.Func.Name == "last_over_time" {
		float, last = len(floats)-1, len(histograms)-1
	}
	if len(floats) > 0 && (len(histograms) == 0 || (floats[float].T < histograms[last].T) == (w.call.Func.Name == "first_over_time")) {
		w.add(step, floats[float].F, nil)
		return nil
	}
	m, h := w.mixed, histograms[last].H
	if w.reused = w.aggregate != nil; w.reused {
		w.add(step, 0, h)
		return nil
	}
	if m.shared == h {
		w.add(step, 0, m.copy)
		return nil
	}
	m.shared, m.copy = h, h.Copy()
	return w.addMade(step, 0, m.copy)
}

// lastMixed returns the last sample of each window, unless it is a stale marker. It decodes only those. An
// aggregation that ignores histograms needs no more than one at a time.
func (w *windows) lastMixed() error {
	m := w.mixed
	slots := min(len(m.points.times), w.steps())
	if w.ignoresHistograms() {
		slots = 1
	}
	if err := m.memory.grow(m, slots); err != nil {
		return err
	}
	next, decoded, slot := 0, -1, -1
	var h *histogram.FloatHistogram
	for i := range w.steps() {
		t := w.stepTime(i)
		for next < len(m.points.times) && m.points.times[next] <= t {
			next++
		}
		last := next - 1
		if last < 0 || m.points.times[last] <= t-w.width {
			continue
		}
		if m.points.blobs.kinds[last] == model.KindFloat {
			if bits := m.points.values[last]; bits != model.StaleNaN {
				w.add(i, math.Float64frombits(bits), nil)
			}
			continue
		}
		if decoded != last {
			var err error
			slot = min(slot+1, slots-1)
			if h, err = m.decode(last, m.memory.get(slot)); err != nil {
				return err
			}
			decoded = last
		}
		if h != nil {
			w.add(i, 0, h)
		}
	}
	return nil
}

// lastStatistics is lastMixed without buckets. It moves as upstream does in vectorSelectorSingle.
func (w *windows) lastStatistics() error {
	samples, err := w.mixed.statistics()
	if err != nil {
		return err
	}
	it := storage.NewMemoizedIterator(samples, w.width)
	for i := range w.steps() {
		ref := w.stepTime(i)
		var t int64
		var v float64
		var h *histogram.FloatHistogram
		typ := it.Seek(ref)
		switch typ {
		case chunkenc.ValNone:
			if it.Err() != nil {
				return it.Err()
			}
		case chunkenc.ValFloat:
			t, v = it.At()
		default:
			t, h = it.AtFloatHistogram()
		}
		if typ == chunkenc.ValNone || t > ref {
			var ok bool
			if _, t, v, h, ok = it.PeekPrev(); !ok || t <= ref-w.width {
				continue
			}
		}
		if value.IsStaleNaN(v) || h != nil && value.IsStaleNaN(h.Sum) {
			continue
		}
		if err := w.addMade(i, v, h); err != nil {
			return err
		}
	}
	return nil
}
