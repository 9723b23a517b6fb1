package archive

import (
	"math"
	"slices"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
)

// withRollups returns the blocks of a request for rollups: each block of rows, or its rollups in its place,
// and the rollups whose rows are gone. All are of one view of the catalogue, so no row is missing or there
// twice.
func (a *Archive) withRollups(req *model.Request) []catalog.Block {
	blocks, rollups, deletions := a.o.Catalog.WithRollups(withCrossing(req, int64(24*time.Hour)), req.Signal, req.Tenant)
	blocks = slices.DeleteFunc(blocks, func(b catalog.Block) bool { return !b.Range.Overlaps(req.Range) })
	want := req.Rollup
	found := make([]catalog.Block, 0, len(blocks))
	instead := make(map[string]int, len(rollups)) // the index of the rollups of a block
	left := make(map[string]bool)                 // the blocks of which rollups of the wanted step are left
	for i := range rollups {
		if b := &rollups[i]; want.Others && b.Alone && b.Resolution == want.Step && b.Policies == want.Policies {
			left[b.Base] = true
		}
	}
	for i := range rollups {
		switch b := &rollups[i]; {
		case !b.Range.Overlaps(withCrossing(req, b.Resolution)):
		case b.Alone && (b.Resolution == want.Step || b.Policies != want.Policies || want.Step == 0 || want.Others && !left[b.Base]):
			found = append(found, *b)
		case !b.Alone && !want.Raw && b.Resolution == want.Step && b.Policies == want.Policies:
			instead[b.Base] = i
		}
	}
	shared := sharingDays(blocks, len(instead) > 0)
	for i := range blocks {
		b := &blocks[i]
		at, has := instead[b.ID]
		if has && !shared[i] && len(deletions.Applying(b, req.Tenant)) == 0 {
			found = append(found, rollups[at])
		} else {
			found = append(found, *b)
		}
	}
	return found
}

// withCrossing returns the range of a request for rollups with all of the slot that crosses its end, if that
// is wanted. Slots of any step divide the days of UTC.
func withCrossing(req *model.Request, step int64) model.TimeRange {
	r := req.Range
	if step <= 0 || !req.Rollup.Crossing || r.Min > r.Max {
		return r
	}
	rest := r.Max % step
	if rest < 0 {
		rest += step
	}
	if more := step - 1 - rest; r.Max <= math.MaxInt64-more {
		r.Max += more
	}
	return r
}

// requestOf returns the request of one of the blocks of a request.
func requestOf(req *model.Request, b *catalog.Block) *model.Request {
	if req.Rollup == nil || !req.Rollup.Crossing || b.Resolution == 0 {
		return req
	}
	one := *req
	one.Range = withCrossing(req, b.Resolution)
	return &one
}

// sharingDays says of each block whether any other may have rows of its series and days. Neither has all rows
// of a slot then. The blocks are in the order of their first times.
func sharingDays(blocks []catalog.Block, wanted bool) []bool {
	shared := make([]bool, len(blocks))
	for i := range blocks {
		for k := i + 1; wanted && k < len(blocks) && blocks[i].ReachesDayOf(&blocks[k]); k++ {
			if blocks[i].SharesDay(&blocks[k]) {
				shared[i], shared[k] = true, true
			}
		}
	}
	return shared
}
