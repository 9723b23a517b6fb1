package promql

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	upstream "github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/slots"
)

// windows computes the values of a function, or of a selector, for one series at each step.
type windows struct {
	*node
	own    func(bits []uint64) float64 // the node's function, if it is one of ownOverTime
	fn     upstream.FunctionCall       // upstream's implementation; nil: a selector
	notes  annotations.Annotations
	times  []int64 // nanoseconds
	bits   []uint64
	points *[]upstream.FPoint // times and bits in the form of upstream's functions
	resets []int32            // indexes of values that are less than the value before
	located
	matrix upstream.Matrix
	helper upstream.EvalNodeHelper

	mixed  *mixed         // for series with histograms
	rolled *slots.Windows // for series with summaries; nil: there was none

	result        // of the last series
	anyFloat bool // a series had a float in its result
	// sawHistograms says that a series had histograms among its samples.
	sawHistograms bool
	reused        bool // the histograms of the result must not be kept or changed
}

func newWindows(n *node, quota *model.Quota) *windows {
	w := &windows{node: n, matrix: make(upstream.Matrix, 1), mixed: &mixed{quota: quota}}
	if n.call != nil {
		w.matrix[0].Metric = labels.FromStrings(model.NameLabel, n.name()) // for warnings
		w.fn, w.own = n.function(), ownOverTime[n.call.Func.Name]
		w.helper.Out = make(upstream.Vector, 0, 1)
		w.points = pointLists.Get().(*[]upstream.FPoint)
	}
	return w
}

// compute fills the result from ascending rows, which it changes. The rows before the given index are not in
// any window. It returns errNeedsUpstream for rows that only upstream computes.
func (w *windows) compute(rows *model.Rows, from int) error {
	if w.usesStarts && slices.ContainsFunc(rows.Starts, func(t int64) bool { return t != 0 }) {
		return errNeedsUpstream
	}
	w.reset()
	w.reused = w.fn == nil
	for _, k := range rows.Kinds {
		if k != model.KindFloat {
			w.sawHistograms = true
			err := w.computeMixed(rows, from)
			w.anyFloat = w.anyFloat || slices.Contains(w.histograms, nil)
			return err
		}
	}
	w.times, w.bits = w.clean(rows.Times[from:], rows.Values[from:])
	switch {
	case w.fn == nil:
		w.lastValues()
	case w.ownRate():
		w.computeRates()
	case w.own != nil:
		w.computeOverTime()
	default:
		w.callUpstream()
	}
	w.anyFloat = w.anyFloat || len(w.at) > 0
	return nil
}

// computeRolled is compute for rows with summaries, of a function that they give.
func (w *windows) computeRolled(q *Queryable, rows *model.Rows) error {
	if w.rolled == nil {
		w.rolled = new(slots.Windows)
	}
	w.reset()
	what := w.what()
	warning, err := w.rolled.Gather(rows, q.late, what)
	if err != nil {
		return err
	}
	if warning != "" {
		q.Cost.Warnings.Add(warning)
	}
	g := slots.Grid{First: w.start - w.offset, Step: w.step, Width: w.width, Steps: w.steps()}
	err = w.rolled.Compute(w.call.Func.Name, g, what, func(step int, v float64) {
		w.at, w.values = append(w.at, int32(step)), append(w.values, v)
	})
	w.anyFloat = w.anyFloat || len(w.at) > 0
	return err
}

// clean keeps the last of the rows in one millisecond, and removes stale markers for functions. Usually all
// rows stay.
func (w *windows) clean(times []int64, bits []uint64) ([]int64, []uint64) {
	if mayShareMilli(times) {
		n := 0
		for i, t := range times {
			if n > 0 && floorMillis(t) == floorMillis(times[n-1]) {
				n--
			}
			times[n], bits[n] = t, bits[i]
			n++
		}
		times, bits = times[:n], bits[:n]
	}
	if w.fn == nil || !slices.Contains(bits, model.StaleNaN) {
		return times, bits
	}
	n := 0
	for i, v := range bits {
		if v != model.StaleNaN {
			times[n], bits[n] = times[i], v
			n++
		}
	}
	return times[:n], bits[:n]
}

// mayShareMilli reports whether two rows may lie in one millisecond, which only neighbours do, since times
// ascend. It subtracts four pairs at a time because a processor does that in parallel; BenchmarkRate runs
// it.
func mayShareMilli(times []int64) bool {
	short := int64(0) // negative once a distance is too short
	for len(times) > 4 {
		t := times[:5]
		short |= (t[1] - t[0] - nanosPerMilli) | (t[2] - t[1] - nanosPerMilli) | (t[3] - t[2] - nanosPerMilli) | (t[4] - t[3] - nanosPerMilli)
		times = times[4:]
	}
	for i := 1; i < len(times); i++ {
		short |= times[i] - times[i-1] - nanosPerMilli
	}
	return short < 0
}

// lastValues returns the last sample of each window, unless it is a stale marker.
func (w *windows) lastValues() {
	w.locate(1)
	for _, s := range w.located.windows {
		if b := w.bits[s.hi-1]; b != model.StaleNaN {
			w.at, w.values = append(w.at, s.step), append(w.values, math.Float64frombits(b))
		}
	}
}

// callUpstream applies upstream's function to each window that is not empty.
func (w *windows) callUpstream() {
	points := slices.Grow((*w.points)[:0], len(w.times))
	for i, t := range w.times {
		points = append(points, upstream.FPoint{T: floorMillis(t), F: math.Float64frombits(w.bits[i])})
	}
	*w.points = points
	w.matrix[0].Histograms = nil
	w.locate(1)
	for _, s := range w.located.windows {
		w.matrix[0].Floats = points[s.lo:s.hi:s.hi]
		w.helper.Ts = w.start + int64(s.step)*w.step
		out, notes := w.fn(w.scalars, w.matrix, w.call.Args, &w.helper)
		w.notes.Merge(notes)
		w.helper.Out = out[:0]
		if len(out) > 0 {
			w.at, w.values = append(w.at, s.step), append(w.values, out[0].F)
		}
	}
}

// release drops all memory except the notes.
func (w *windows) release() {
	if w.points != nil && cap(*w.points) <= keptRows {
		pointLists.Put(w.points)
	}
	w.times, w.bits, w.points, w.matrix, w.resets, w.located, w.result = nil, nil, nil, nil, nil, located{}, result{}
	w.mixed.release()
}

// pointLists keeps the memory of points between queries.
var pointLists = sync.Pool{New: func() any { return new([]upstream.FPoint) }}

// addNotes says where rollups were used, and adds upstream's warning about the name of a metric that gave
// floats.
func (w *windows) addNotes() {
	if w.rolled != nil && w.rolled.Used() != "" {
		w.notes.Add(fmt.Errorf("%w: %s was computed from %s", annotations.PromQLInfo, w.what(), w.rolled.Used()))
	}
	if w.fn == nil || !w.anyFloat {
		return
	}
	if f := w.call.Func.Name; f != "rate" && f != "increase" {
		return
	}
	name := w.name()
	for _, suffix := range []string{"_total", "_sum", "_count", "_bucket"} {
		if strings.HasSuffix(name, suffix) {
			return
		}
	}
	w.notes.Add(annotations.NewPossibleNonCounterInfo(name, w.call.Args[0].PositionRange()))
}

// result is the values of a series or group at some of the steps, ascending.
type result struct {
	at     []int32
	values []float64
	// histograms is empty if all values are floats. Otherwise it has nil for those that are.
	histograms []*histogram.FloatHistogram
}

// reset empties the result and keeps its memory, but not the histograms.
func (r *result) reset() {
	clear(r.histograms)
	r.at, r.values, r.histograms = r.at[:0], r.values[:0], r.histograms[:0]
}

// add adds a value: the histogram, or the float if that is nil.
func (r *result) add(step int, f float64, h *histogram.FloatHistogram) {
	r.at, r.values, r.histograms = append(r.at, int32(step)), append(r.values, f), append(r.histograms, h)
}

// size returns the memory of the histograms, the largest without bounds of custom buckets, and the greatest
// number of those. Consecutive steps may share a histogram.
func (r *result) size() (all, largest, most int64) {
	var last *histogram.FloatHistogram
	var bounds lastBounds
	for _, h := range r.histograms {
		if h != last && h != nil {
			n := sizeOf(h)
			all, largest, most = all+n+bounds.sizeOf(h), max(largest, n), max(most, int64(len(h.CustomValues)))
		}
		last = h
	}
	return all, largest, most
}
