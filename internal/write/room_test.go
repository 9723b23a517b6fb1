package write

import (
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/shaledb/shale/internal/model"
)

// TestRoomGrowsByLess: arrays double, and grow by less where there is no memory to double them.
func TestRoomGrowsByLess(t *testing.T) {
	full := errors.New("full")
	for _, most := range []int64{3 << 20, 6 << 20, 7 << 20} {
		var b model.Batch
		var r Room
		reserved := int64(0)
		r.Start(&b, 20, 20, func(n int64) error {
			if reserved+n > most {
				return full
			}
			reserved += n
			return nil
		})
		sizes := 0
		for {
			n, series := cap(b.Samples.Times), cap(b.Keys)
			if err := errors.Join(r.MoreSeries(0), r.MoreRows(model.Samples, 1, 0)); err != nil {
				break
			}
			b.AddSample(model.Key{}, 1, 2)
			if cap(b.Samples.Times) != n || cap(b.Keys) != series {
				sizes++
			}
		}
		if used := 40 * int64(len(b.Keys)); used < most*3/4 || used > most || sizes > 60 {
			t.Errorf("of %d bytes %d are used, in arrays of %d sizes", most, used, sizes)
		}
	}
}

// TestRefusalCountsOnce: a request that asks for less when memory is refused counts as refused once.
func TestRefusalCountsOnce(t *testing.T) {
	p := newPath(&store{}, Limits{MaxInflightBytes: 1000})
	for range 2 {
		g, err := p.Admit(t.Context(), "a", 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int64{4000, 3000, 2000, 995} {
			var refused *Refused
			if err := g.Grow(n); !errors.As(err, &refused) {
				t.Errorf("%d bytes: %v", n, err)
			}
		}
		g.Release()
	}
	if n := testutil.ToFloat64(p.metrics.refusedRequests.WithLabelValues("limits.inflight-bytes")); n != 2 {
		t.Errorf("%v requests count as refused, want 2", n)
	}
}
