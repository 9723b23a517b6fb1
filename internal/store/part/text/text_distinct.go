package text

import "github.com/shaledb/shale/internal/model"

// RunOfRows is a walk over one piece: rows in memory of which no two are equal, and which must not change
// until it has ended.
func RunOfRows(r *model.TextRows) Run {
	run := &memoryRun{piece: Piece{rows: *r, distinct: true}}
	if n := len(r.Times); n > 0 {
		run.piece.Times = model.TimeRange{Min: r.Times[0], Max: r.Times[n-1]}
	}
	return run
}
