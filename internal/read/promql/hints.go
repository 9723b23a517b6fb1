package promql

import (
	"bytes"

	"github.com/prometheus/prometheus/model/histogram"

	"github.com/shaledb/shale/internal/model"
)

// hints derives the reset hint of a histogram: whether its counter was reset since the histogram before it.
// The engine trusts the hint and then does not compare the two, so a hint is given only if it is certain:
//
//   - GaugeType: the sender said that it is a gauge, which has no resets.
//   - NotCounterReset: the sample directly before was read with it, is a histogram of a counter, and the
//     engine's own comparison of the two finds no reset. The engine would have found the same, once for each
//     window with the pair.
//   - UnknownCounterReset: everything else. That is the first sample that was read, a sample after a float, a
//     gauge or a stale marker, and a sample with a reset. Like upstream's storage, this never gives
//     CounterReset: the engine finds the reset by comparing. It would warn of a conflict if it added
//     histograms of which only one has the hint.
type hints struct {
	// last is the point that current was made of, or -1; it is never a gauge or a stale marker. When the
	// engine moves on to the next point, current becomes previous.
	last              int
	current, previous histogram.FloatHistogram
	scratch           model.Histogram

	// index and known cache the result, because a point may be asked for twice.
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
	consecutive := h.last >= 0 && h.last == d.index-1
	if bytes.Equal(before, d.blobs.blob(d.index)) {
		if consecutive {
			h.last = d.index
		}
		return histogram.NotCounterReset
	}
	if consecutive {
		h.previous, h.current = h.current, h.previous
	} else {
		err := h.scratch.Parse(before)
		if err == nil {
			err = checkHistogram(&h.scratch)
		}
		if err != nil || h.scratch.Gauge || h.scratch.Sum == model.StaleNaN {
			// A read of that point itself reports the error.
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
