package head

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/local"
)

// TestChurnWritesFewLabels: while a steady share of the series is replaced, the labels of each new series are
// written about as often as there are levels of merges, and those of all others once a window.
func TestChurnWritesFewLabels(t *testing.T) {
	for _, churn := range []int{100, 5000} { // 1 % and 50 % in each tick of 10 minutes
		t.Run(fmt.Sprint(churn), func(t *testing.T) { churned(t, churn, false) })
		t.Run(fmt.Sprint(churn, ", rows linger"), func(t *testing.T) { churned(t, churn, true) })
	}
}

// churned replaces some series in each tick. Rows that were shipped may linger for a tick.
func churned(t *testing.T, churn int, linger bool) {
	const n, ticks = 10_000, 50
	ctx, r := context.Background(), newRig(t, func(o *Options) {
		if linger {
			o.Linger = time.Hour
		}
	})
	seen := map[string]bool{}
	// wrote returns how many label sets were written since the last time, and how many there are.
	wrote := func() (sets, held int) {
		for _, p := range r.head.group(model.Metrics, local.Labels, local.Young) {
			held += int(p.Info.Series)
			if !seen[p.Info.File] {
				seen[p.Info.File] = true
				sets += int(p.Info.Series)
			}
		}
		return sets, held
	}
	total, most := 0, 0
	for tick := range ticks {
		r.head.endLingering(time.Now().Add(2 * time.Hour))
		if tick > 0 { // these are replaced
			r.push("a", churn*(tick-1), churn*tick, r.now, math.Float64frombits(model.StaleNaN))
		}
		r.push("a", churn*tick, churn*tick+n, r.now, float64(tick))
		r.must(r.head.Flush(ctx))
		for more := true; more; {
			sets, held := wrote()
			total, most = total+sets, max(most, held)
			var err error
			more, err = r.head.Work(ctx)
			r.must(err)
		}
		r.now += int64(knownTick)
		r.must(r.head.sweepKnown())
		r.head.afterTick()
	}
	fresh := n + churn*(ticks-1)
	t.Logf("%d series were new, and %d label sets were written; at most %d were there", fresh, total, most)
	if total > 3*fresh {
		t.Errorf("%d label sets were written, at most %d expected", total, 3*fresh)
	}
	if bound := 3*n + 14*churn; most > bound { // of the known series, and of those with rows in a window
		t.Errorf("%d label sets were there, at most %d expected", most, bound)
	}
}
