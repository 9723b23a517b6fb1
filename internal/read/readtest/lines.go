package readtest

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// Lines reads the chunks of one series, as read.TextSet returns them, and joins their rows: sorted by time,
// order and arrival, and of rows with equal time, line and metadata only the first. It holds and compares
// all of them.
func Lines(ctx context.Context, chunks []model.TextChunk, within model.TimeRange) ([]Line, error) {
	type row struct {
		Line
		order uint64
	}
	var all []row
	for _, c := range chunks {
		var rows model.TextRows
		if err := c.Page.ReadText(ctx, c.Index, model.WantLines|model.WantMetadata, &rows); err != nil {
			return nil, err
		}
		for i, at := range rows.Times {
			if within.Contains(at) {
				l := Line{Time: at, Text: string(rows.Line(i)), Metadata: slices.Clone(rows.MetadataAt(i))}
				all = append(all, row{l, c.Order})
			}
		}
	}
	for _, c := range chunks {
		c.Page.Release() // only now, because chunks may share pages
	}
	slices.SortStableFunc(all, func(a, b row) int { return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.order, b.order)) })
	var lines []Line
	seen := make(map[string]bool)
	for _, r := range all {
		if id := fmt.Sprintf("%d %q %q", r.Time, r.Text, r.Metadata); !seen[id] {
			seen[id] = true
			lines = append(lines, r.Line)
		}
	}
	return lines, nil
}
