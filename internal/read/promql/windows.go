package promql

import (
	"math"
	"slices"
	"strings"
	"sync"

	upstream "github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/shaledb/shale/internal/model"
)

// windows computes what a function gives for one series at each step, or what a selector gives.
type windows struct {
	*node
	call   upstream.FunctionCall // nil: a selector
	notes  annotations.Annotations
	times  []int64 // nanoseconds
	bits   []uint64
	points *[]upstream.FPoint // the same for upstream's functions
	resets []int32            // points that are less than those before them
	matrix upstream.Matrix
	helper upstream.EvalNodeHelper

	// The answer: values at some of the steps, ascending.
	at     []int32
	values []float64
}

func newWindows(n *node) *windows {
	w := &windows{node: n, matrix: make(upstream.Matrix, 1)}
	if n.call != nil {
		w.call = n.function()
		w.helper.Out = make(upstream.Vector, 0, 1)
		w.points = pointLists.Get().(*[]upstream.FPoint)
	}
	return w
}

// compute fills at and values from rows that are ascending, and changes these. It returns errNotTaken of what only upstream
// computes: other values than floats, and start timestamps.
func (w *windows) compute(rows *model.Rows) error {
	for _, k := range rows.Kinds {
		if k != model.KindFloat {
			return errNotTaken
		}
	}
	if w.noStarts && slices.ContainsFunc(rows.Starts, func(t int64) bool { return t != 0 }) {
		return errNotTaken
	}
	w.at, w.values = w.at[:0], w.values[:0]
	w.times, w.bits = w.clean(rows.Times, rows.Values)
	switch {
	case w.call == nil:
		w.last()
	case w.ownRate():
		w.rates()
	default:
		w.calls()
	}
	return nil
}

// clean leaves, of rows in one millisecond, the last, and to functions no markers of staleness. Usually all rows stay.
func (w *windows) clean(times []int64, bits []uint64) ([]int64, []uint64) {
	n := 0
	for i, t := range times {
		if n > 0 && t-times[n-1] < nanosPerMilli && floorMillis(t) == floorMillis(times[n-1]) {
			n--
		}
		times[n], bits[n] = t, bits[i]
		n++
	}
	times, bits = times[:n], bits[:n]
	if w.call == nil || !slices.Contains(bits, model.StaleNaN) {
		return times, bits
	}
	n = 0
	for i, v := range bits {
		if v != model.StaleNaN {
			times[n], bits[n] = times[i], v
			n++
		}
	}
	return times[:n], bits[:n]
}

// until returns the first nanosecond that does not lie in the millisecond t or before it.
func until(t millis) int64 {
	if t >= math.MaxInt64/nanosPerMilli {
		return math.MaxInt64
	}
	if t < math.MinInt64/nanosPerMilli {
		return math.MinInt64
	}
	return (t + 1) * nanosPerMilli
}

// last gives the last sample of each window, unless it is a marker of staleness.
func (w *windows) last() {
	hi := 0
	for i, t := 0, w.start-w.offset; i < w.steps(); i, t = i+1, t+w.step {
		end, begin := until(t), until(t-w.span)
		for hi < len(w.times) && w.times[hi] < end {
			hi++
		}
		if hi == 0 || w.times[hi-1] < begin || w.bits[hi-1] == model.StaleNaN {
			continue
		}
		w.at, w.values = append(w.at, int32(i)), append(w.values, math.Float64frombits(w.bits[hi-1]))
	}
}

// calls gives what the function does of each window that is not empty.
func (w *windows) calls() {
	points, lo, hi := slices.Grow((*w.points)[:0], len(w.times)), 0, 0
	for i, t := range w.times {
		points = append(points, upstream.FPoint{T: floorMillis(t), F: math.Float64frombits(w.bits[i])})
	}
	*w.points = points
	for i, t := 0, w.start; i < w.steps(); i, t = i+1, t+w.step {
		maxt := t - w.offset
		for hi < len(points) && points[hi].T <= maxt {
			hi++
		}
		for lo < hi && points[lo].T <= maxt-w.span {
			lo++
		}
		if lo == hi {
			continue
		}
		w.matrix[0].Floats = points[lo:hi:hi]
		w.helper.Ts = t
		out, notes := w.call(nil, w.matrix, w.node.call.Args, &w.helper)
		w.notes.Merge(notes)
		w.helper.Out = out[:0]
		if len(out) > 0 {
			w.at, w.values = append(w.at, int32(i)), append(w.values, out[0].F)
		}
	}
}

// release gives up all memory but the notes.
func (w *windows) release() {
	if w.points != nil && cap(*w.points) <= keptRows {
		pointLists.Put(w.points)
	}
	w.times, w.bits, w.points, w.matrix, w.resets, w.at, w.values = nil, nil, nil, nil, nil, nil, nil
}

// pointLists keeps the memory of points between queries.
var pointLists = sync.Pool{New: func() any { return new([]upstream.FPoint) }}

// note adds what upstream has to say of the name of a metric that has given values.
func (w *windows) note() {
	if w.call == nil {
		return
	}
	if f := w.node.call.Func.Name; f != "rate" && f != "increase" {
		return
	}
	name := w.name()
	for _, suffix := range []string{"_total", "_sum", "_count", "_bucket"} {
		if strings.HasSuffix(name, suffix) {
			return
		}
	}
	w.notes.Add(annotations.NewPossibleNonCounterInfo(name, w.node.call.Args[0].PositionRange()))
}
