package slots

import (
	"fmt"
	"math"
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// stretch is points that lie between two times, both included, or one point.
type stretch struct {
	from, to            int64
	step                int64 // of the slot; 0: a point
	count               int64
	sum, min, max, last float64
}

// Windows computes values of windows of one series after the other. The zero value is ready.
type Windows struct {
	all []stretch
	// reach is the greatest end of the stretches up to each.
	reach []int64
	used  left
}

// Gather takes the rows of a series, ascending. late says that they have points wherever there are any: then
// it returns a warning if points came late for slots of which only summaries are left, and else [ErrLate].
func (r *Windows) Gather(rows *model.Rows, late bool, what string) (warning string, err error) {
	r.all, r.reach = r.all[:0], r.reach[:0]
	point := -1 // the last point
	summed := map[int64]int64{}
	var odd, older left
	for i, t := range rows.Times {
		step, begin := slotOf(rows, i)
		var s model.Summary
		switch {
		case step == 0 && rows.Kind(i) != model.KindFloat:
			odd.add(1, floorMilli(t))
		case step == 0:
			if ms := floorMilli(t); point < 0 || r.all[point].from != ms {
				point = len(r.all)
				r.all = append(r.all, stretch{})
			}
			r.all[point] = pointAt(floorMilli(t), rows.Values[i])
		case rows.RollupStep(i) > 0:
			if at, ok := summed[step]; !ok || at != begin {
				older.add(step, begin)
			}
		case !model.ParseSummary(rows.Blob(i), &s):
			return "", fmt.Errorf("%w: the summary of a slot cannot be read", model.ErrCorrupt)
		default:
			if summed[step] = begin; s.Others {
				odd.add(step, begin)
			}
			r.add(&s, begin)
		}
	}
	switch {
	case odd.step > 0 && !late, older.step > 0 && !late:
		return "", ErrLate
	case odd.step > 0:
		return "", fmt.Errorf("%s needs points from %s: rollups sum up no histograms, and no imported points of longer slots", what, &odd)
	case older.step > 0:
		return "", fmt.Errorf("%s cannot use the rollups from %s: they were made while query.rollups was off", what, &older)
	}
	return r.order(late, what)
}

func pointAt(ms int64, bits uint64) stretch {
	if bits == model.StaleNaN {
		return stretch{from: ms, to: ms}
	}
	v := math.Float64frombits(bits)
	return stretch{from: ms, to: ms, count: 1, sum: v, min: v, max: v, last: v}
}

// add adds the stretches of a summary.
func (r *Windows) add(s *model.Summary, begin int64) {
	if s.HasFirst {
		r.all = append(r.all, stretch{begin, begin, s.Step, 1, s.First, s.First, s.First, s.First})
	}
	if s.Count > 0 {
		r.all = append(r.all, stretch{begin + 1, begin + s.Step*1000 - 1, s.Step, s.Count, s.Sum, s.Min, s.Max, s.Last})
	}
}

// order sorts the stretches and looks for points that came late.
func (r *Windows) order(late bool, what string) (warning string, err error) {
	slices.SortStableFunc(r.all, func(a, b stretch) int {
		if a.from != b.from {
			return int(min(1, max(-1, a.from-b.from)))
		}
		return int(a.to-a.from) - int(b.to-b.from)
	})
	out := r.all[:0]
	reach, slot := int64(0), int64(0) // the greatest end, and the slot that it is of
	for _, s := range r.all {
		switch {
		case s.count == 0:
			continue
		case len(out) == 0 || s.from > reach:
		case !late:
			return "", ErrLate
		case s.step > 0 && slot > 0 && s.step != slot:
			return "", fmt.Errorf("%s needs points, or windows that consist of slots: only rollups of %s and of %s are left of the same time", what, slotText(slot), slotText(s.step))
		case s.from == out[len(out)-1].from && s.to == out[len(out)-1].to:
			// The point of a slot's first int64econd came again: the one that came later counts.
			if s.step == 0 {
				out[len(out)-1] = s
			}
			continue
		default:
			warning = lateWarning
		}
		if len(out) == 0 || s.to > reach {
			reach, slot = s.to, s.step
		}
		out = append(out, s)
		r.reach = append(r.reach, reach)
	}
	r.all = out
	return warning, nil
}

// Grid is the ends of windows in milliseconds, and their width. A window is after its begin, up to its end.
type Grid struct {
	First, Step, Width int64
	Steps              int
}

// Compute calls emit with the value of a function over each window that is not empty. It refuses windows that
// do not consist of slots.
func (r *Windows) Compute(function string, g Grid, what string, emit func(step int, v float64)) error {
	lo, hi := 0, 0
	for i, t := 0, g.First; i < g.Steps; i, t = i+1, t+g.Step {
		for lo < len(r.all) && r.all[lo].from <= t-g.Width {
			lo++
		}
		for hi < len(r.all) && r.all[hi].from <= t {
			hi++
		}
		if lo > 0 && r.reach[lo-1] > t-g.Width || hi > 0 && r.reach[hi-1] > t {
			return r.cut(t-g.Width, t, what)
		}
		v, ok, err := r.value(function, r.all[min(lo, hi):hi], what)
		if err != nil {
			return err
		}
		if ok {
			emit(i, v)
		}
	}
	return nil
}

// cut returns the error for a window that cuts a slot.
func (r *Windows) cut(from, to int64, what string) error {
	var in left
	for _, s := range r.all {
		if s.step > 0 && (s.from <= from && s.to > from || s.from <= to && s.to > to) {
			in.add(s.step, s.from/(s.step*1000)*s.step*1000)
		}
	}
	return fmt.Errorf("%s has windows that do not consist of slots of %s, and only rollups are left of the time from %s: use a range, times and a step that are multiples of %s",
		what, slotText(in.step), &in, slotText(in.step))
}

// value computes a function over stretches.
func (r *Windows) value(name string, all []stretch, what string) (v float64, ok bool, err error) {
	var sum model.Adder
	var count int64
	var least, most, last float64
	var lastTo int64
	overflows := false
	for i := range all {
		s := &all[i]
		if s.count == 0 {
			continue
		}
		if s.step > 0 {
			r.used.add(s.step, s.from/(s.step*1000)*s.step*1000)
			overflows = overflows || !isFinite(s.sum) && isFinite(s.min) && isFinite(s.max) && s.sum == s.sum
		}
		if count == 0 {
			least, most = s.min, s.max
		}
		if count == 0 || s.to >= lastTo {
			last, lastTo = s.last, s.to
		}
		sum.Add(s.sum)
		least, most, count = model.Least(least, s.min), model.Greatest(most, s.max), count+s.count
	}
	if count == 0 {
		return 0, false, nil
	}
	switch name {
	case "count_over_time":
		return float64(count), true, nil
	case "min_over_time":
		return least, true, nil
	case "max_over_time":
		return most, true, nil
	case "last_over_time":
		return last, true, nil
	case "present_over_time":
		return 1, true, nil
	}
	v = sum.Sum()
	if name == "avg_over_time" {
		v = sum.Mean(float64(count))
	}
	if !isFinite(v) && v == v && isFinite(least) && isFinite(most) || overflows {
		return 0, false, fmt.Errorf("%s: the sum of its points is too great for a float, and rollups have no other", what)
	}
	return v, true, nil
}

// Used says which rollups were used; empty: none.
func (r *Windows) Used() string {
	if r.used.step == 0 {
		return ""
	}
	return "rollups of " + slotText(r.used.step) + " for the time from " + r.used.String()
}

func isFinite(v float64) bool { return math.Abs(v) <= math.MaxFloat64 }

// floorMilli cuts nanoseconds to the millisecond at or before them.
func floorMilli(ns int64) int64 {
	ms := ns / milli
	if ns%milli < 0 {
		ms--
	}
	return ms
}
