package archive

import (
	"slices"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
)

// blocks returns the blocks that may hold rows of a request, without those whose retention group has expired.
func (a *Archive) blocks(req *model.Request) []catalog.Block {
	if req.Rollup != nil {
		return a.withRollups(req)
	}
	blocks := a.o.Catalog.Overlapping(req.Range, req.Signal, req.Tenant)
	if req.Horizon == nil {
		return blocks
	}
	return slices.DeleteFunc(blocks, func(b catalog.Block) bool {
		before, ok := req.Horizon.Group(b.Group)
		return ok && b.Range.Max < before
	})
}

// horizonOf returns what hides expired rows of a block, or nil if none of its rows has expired. The series of
// a block whose retention group is known need not be looked at.
func horizonOf(b *catalog.Block, req *model.Request) *model.Horizon {
	from := max(b.Range.Min, req.Range.Min)
	if !req.Horizon.MayHide(from) {
		return nil
	}
	before, ok := req.Horizon.Group(b.Group)
	switch {
	case !ok:
		return req.Horizon
	case from >= before:
		return nil
	}
	return &model.Horizon{Latest: before, Before: func(model.Labels) int64 { return before }}
}
