package window

import (
	"cmp"
	"slices"
	"sort"
)

// counter keeps its samples for rate_counter.
type counter struct {
	kept[counterSample]
	width int64
}

type counterSample struct {
	Sample
	cell int32
}

const counterSampleBytes = 32

// Add keeps a sample.
func (k *counter) Add(cell int32, s *Sample, charge Charge) error {
	return k.keep(counterSample{*s, cell}, counterSampleBytes, charge)
}

// Merge keeps the samples of another series.
func (k *counter) Merge(o Series, charge Charge) error {
	return k.merge(&o.(*counter).kept, charge)
}

// Values gives the rate of each window.
func (k *counter) Values(give Result) {
	k.gather()
	slices.SortFunc(k.samples, func(a, b counterSample) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Position, b.Position))
	})
	var resets []int // samples that are less than the one before
	for i := 1; i < len(k.samples); i++ {
		if k.samples[i].Value < k.samples[i-1].Value {
			resets = append(resets, i)
		}
	}
	from, to := 0, 0
	for step, first := range k.of.first {
		last := k.of.last[step]
		if last < first {
			continue
		}
		for ; to < len(k.samples) && k.samples[to].cell <= last; to++ {
		}
		for ; from < to && k.samples[from].cell < first; from++ {
		}
		if from < to {
			resets = resets[sort.SearchInts(resets, from+1):]
			give(step, k.rate(from, to, resets))
		}
	}
}

// rate returns the rate of samples [from, to), extrapolated to the width of the window as Loki does it.
// Differences of times count as milliseconds there although they are nanoseconds, but the width does not.
// One sample has no rate: 0. The range ends with the last sample, so that nothing is extrapolated beyond it.
func (k *counter) rate(from, to int, resets []int) float64 {
	if to-from < 2 {
		return 0
	}
	first, last := &k.samples[from], &k.samples[to-1]
	increase := last.Value - first.Value
	for _, i := range resets {
		if i >= to {
			break
		}
		increase += k.samples[i-1].Value
	}
	toStart := float64(k.width/1e6) / 1000
	sampled := float64(last.Time-first.Time) / 1000
	between := sampled / float64(to-from-1)
	if increase > 0 && first.Value >= 0 {
		if toZero := sampled * (first.Value / increase); toZero < toStart {
			toStart = toZero // a counter is not below zero
		}
	}
	extrapolated := sampled
	if threshold := between * 1.1; toStart < threshold {
		extrapolated += toStart
	} else {
		extrapolated += between / 2
	}
	return increase * (extrapolated / sampled) / seconds(k.width)
}
