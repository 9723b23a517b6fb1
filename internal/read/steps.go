package read

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/shaledb/shale/internal/model"
)

// selectSteps is [Source.Select] for a request whose series are read from rollups of several steps. A block
// of rollups has only the series with its step, and it stands for the block of all of their rows. So the
// source is asked once for each step, and of each answer those series count that are read from that step.
func selectSteps(ctx context.Context, src Source, req *model.Request) (cursors []model.Cursor, err error) {
	if req.Rollup == nil || req.Rollup.Of == nil {
		return src.Select(ctx, req)
	}
	for _, step := range req.Rollup.Steps {
		one, rollup := *req, *req.Rollup
		rollup.Step, rollup.Of, rollup.Steps = step, nil, nil
		one.Rollup = &rollup
		found, err := src.Select(ctx, &one)
		for _, c := range found {
			cursors = append(cursors, &stepCursor{Cursor: c, of: req.Rollup.Of, step: step})
		}
		if err != nil {
			return nil, errors.Join(err, closeAll(cursors))
		}
	}
	return cursors, nil
}

// stepCursor passes over the series that are read from rollups of another step.
type stepCursor struct {
	model.Cursor
	of   func(model.Labels) (int64, error)
	step int64
	err  error
}

// Next is [model.Cursor.Next].
func (c *stepCursor) Next(ctx context.Context) bool {
	for c.err == nil && c.Cursor.Next(ctx) {
		l := c.Labels()
		if len(l) == 0 {
			c.err = fmt.Errorf("%w: series %s: a source lacks the labels that name its rollups", model.ErrCorrupt, c.Key())
			return false
		}
		var step int64
		if step, c.err = c.of(l); c.err == nil && step == c.step {
			return true
		}
	}
	return false
}

// Err is [model.Cursor.Err].
func (c *stepCursor) Err() error { return cmp.Or(c.err, c.Cursor.Err()) }
