package promql

import (
	"bytes"

	"github.com/prometheus/prometheus/model/histogram"

	"github.com/shaledb/shale/internal/model"
)

// hints derives what the engine wants to know of a histogram: whether its counter was reset since the
// histogram before it. The engine believes it and then does not compare the two, so only what is certain is
// said:
//
//   - A gauge has no resets, which is what its sender said and is stored.
//   - NotCounterReset is said if the sample right before, which was read with it, is a histogram of a counter and the
//     engine's own comparison of the two finds no reset. It is then what the engine would have found itself, once for
//     each window in which the pair stands.
//   - Everything else is UnknownCounterReset: the first sample that was read, one behind a float, a gauge or a stale
//     marker, and one where there was a reset. CounterReset is never said, as upstream never does when it reads: the
//     engine finds the reset by comparing, and would warn of a conflict when it adds up histograms of which one has it
//     and one has not.
type hints struct {
	// last is the point that current was made of: never a gauge or a stale marker. -1: none. As the engine
	// goes on point by point, current becomes previous.
	last              int
	current, previous histogram.FloatHistogram
	scratch           model.Histogram

	// index and known keep the answer, since a point may be asked for twice.
	index int
	known histogram.CounterResetHint
}

func (h *hints) reset() { h.last, h.index = -1, -1 }

// hint returns the reset hint of the current histogram, which is not stale.
func (d *decoder) hint() histogram.CounterResetHint {
	if d.h.Gauge {
		return histogram.GaugeType
	}
	if d.hints.index != d.index {
		d.hints.index, d.hints.known = d.index, d.deriveHint()
	}
	return d.hints.known
}

func (d *decoder) deriveHint() histogram.CounterResetHint {
	h := &d.hints
	before := d.blobs.histogramBefore(d.index)
	if before == nil {
		return histogram.UnknownCounterReset
	}
	goesOn := h.last >= 0 && h.last == d.index-1
	if bytes.Equal(before, d.blobs.blob(d.index)) {
		if goesOn {
			h.last = d.index
		}
		return histogram.NotCounterReset
	}
	if goesOn {
		h.previous, h.current = h.current, h.previous
	} else {
		err := h.scratch.Parse(before)
		if err == nil {
			err = checkHistogram(&h.scratch)
		}
		if err != nil || h.scratch.Gauge || h.scratch.Sum == model.StaleNaN {
			// Whoever stands on that point is told of an error.
			return histogram.UnknownCounterReset
		}
		d.fill(&h.previous, &h.scratch)
	}
	d.fill(&h.current, &d.h)
	h.last = d.index
	if h.current.DetectReset(&h.previous) {
		return histogram.UnknownCounterReset
	}
	return histogram.NotCounterReset
}
