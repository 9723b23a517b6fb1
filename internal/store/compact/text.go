package compact

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/deletion"
	"github.com/shaledb/shale/internal/store/part"
)

// keptText is the text of a series without deleted rows.
type keptText struct {
	part.Text
	ranges []model.TimeRange // the kept times, ascending
}

// outside returns the times outside all ranges, ascending.
func outside(deleted []model.TimeRange) (kept []model.TimeRange) {
	deleted = slices.Clone(deleted)
	slices.SortFunc(deleted, func(a, b model.TimeRange) int { return cmp.Compare(a.Min, b.Min) })
	next := int64(math.MinInt64)
	for _, d := range deleted {
		if d.Min > next {
			kept = append(kept, model.TimeRange{Min: next, Max: d.Min - 1})
		}
		if d.Max == math.MaxInt64 {
			return kept
		}
		next = max(next, d.Max+1)
	}
	return append(kept, model.TimeRange{Min: next, Max: math.MaxInt64})
}

var _ part.BoundedText = (*keptText)(nil)

// Bounded marks the extent as an upper bound, which may count deleted rows: see [part.BoundedText].
func (t *keptText) Bounded() {}

// hasRows reports whether any row is left.
func (t *keptText) hasRows(ctx context.Context) (bool, error) {
	run := t.Run(ctx, model.Always())
	return run.Next(), run.Err()
}

func (t *keptText) Run(ctx context.Context, clip model.TimeRange) part.TextRun {
	return &keptRun{ctx: ctx, text: t.Text, ranges: t.ranges, clip: clip}
}

// filteredText is the text of a series without the lines that filters delete.
type filteredText struct {
	part.Text
	cuts deletion.Cuts
}

var _ part.BoundedText = (*filteredText)(nil)

// Bounded marks the extent as an upper bound.
func (t *filteredText) Bounded() {}

func (t *filteredText) Run(ctx context.Context, clip model.TimeRange) part.TextRun {
	return &filteredRun{TextRun: t.Text.Run(ctx, clip), ctx: ctx, cuts: t.cuts}
}

// filteredRun reads the lines of the pieces that a filter may concern. A piece without deleted lines stays as
// it is stored.
type filteredRun struct {
	part.TextRun
	ctx   context.Context
	cuts  deletion.Cuts
	piece *part.TextPiece
	err   error
}

func (r *filteredRun) Next() bool {
	for r.err == nil && r.TextRun.Next() {
		r.piece = r.TextRun.Piece()
		if !r.cuts.Filtered(r.piece.Times) {
			return true
		}
		rows, err := r.piece.Rows(r.ctx)
		if err != nil {
			r.err = err
			return false
		}
		left := model.TextRows{
			Times: slices.Clone(rows.Times), Bytes: rows.Bytes, Begin: rows.Begin, Ends: rows.Ends, Metadata: rows.Metadata, MetadataOf: slices.Clone(rows.MetadataOf),
		}
		if !r.cuts.Text(&left) {
			return true
		}
		if one := part.RunOfRows(&left); one.Next() {
			r.piece = one.Piece()
			return true
		}
	}
	return false
}

func (r *filteredRun) Piece() *part.TextPiece { return r.piece }

func (r *filteredRun) Err() error {
	if r.err != nil {
		return r.err
	}
	return r.TextRun.Err()
}

// keptRun walks one range after the other.
type keptRun struct {
	ctx    context.Context
	text   part.Text
	ranges []model.TimeRange // not begun yet
	clip   model.TimeRange
	run    part.TextRun // of the current range
}

func (r *keptRun) Next() bool {
	for {
		if r.run != nil && r.run.Next() {
			return true
		}
		if r.run != nil && r.run.Err() != nil || len(r.ranges) == 0 {
			return false
		}
		at := model.TimeRange{Min: max(r.clip.Min, r.ranges[0].Min), Max: min(r.clip.Max, r.ranges[0].Max)}
		r.ranges = r.ranges[1:]
		if at.Min <= at.Max {
			r.run = r.text.Run(r.ctx, at)
		}
	}
}

func (r *keptRun) Piece() *part.TextPiece { return r.run.Piece() }

func (r *keptRun) Err() error {
	if r.run == nil {
		return nil
	}
	return r.run.Err()
}
