package whisperimport

import (
	"math"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/graphite/policy"
)

// rows returns what is stored of a file, in the order of time: the points of the finest archive, and the
// rollups that its policy does not make of finer points. It counts the rollups.
func (f *file) rows(now int64) (r *model.Rows, rollups int) {
	r = &model.Rows{}
	for _, p := range f.archives[0].points {
		r.Append(p.at*1e9, p.bits, 0)
	}
	own := policy.Policy{Method: f.method, XFilesFactor: f.xff}
	for i := range f.archives {
		own.Archives = append(own.Archives, f.archives[i].Archive)
	}
	var made []float64
	for i := 1; i < len(f.archives); i++ {
		a := &f.archives[i]
		w, ok := own.Window(now-a.Retention(), now, now)
		made = made[:0]
		if ok && f.methodKnown {
			made = own.Slots(w, r, made)
		}
		before := r.Len()
		for _, p := range a.points {
			if n := (p.at - w.First) / a.Step; n < int64(len(made)) && same(made[n], p.bits) {
				continue
			}
			at, start := policy.Rollup(p.at, a.Step, i)
			r.Append(at, p.bits, start)
		}
		rollups += r.Len() - before
		r.Normalize()
	}
	return r, rollups
}

// same reports whether a value that the policy makes is that of the file. All NaNs mean that none is known.
func same(made float64, bits uint64) bool {
	return math.Float64bits(made) == bits || math.IsNaN(made) && math.IsNaN(math.Float64frombits(bits))
}
