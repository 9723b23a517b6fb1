package worldtest

import (
	"fmt"
	"math/rand/v2"

	"github.com/shaledb/shale/internal/model"
)

// JSONLines returns at least size bytes of lines of JSON with random identifiers, from a time on.
func JSONLines(size int, at int64) *model.TextRows {
	r := rand.New(rand.NewPCG(1, uint64(at)))
	rows := &model.TextRows{}
	for len(rows.Bytes) < size {
		at += r.Int64N(1e8)
		rows.Bytes = fmt.Appendf(rows.Bytes, `{"ts":"2026-03-01T%02d:%02d:%02d.%03dZ","level":"info","component":%q,"msg":%q,"trace_id":"%016x%016x","span_id":"%016x",`+
			`"method":%q,"path":"/api/v1/orders/%d","status":%d,"duration_ms":%d.%03d}`,
			r.IntN(24), r.IntN(60), r.IntN(60), r.IntN(1000), []string{"http.server", "db.pool", "auth.token"}[r.IntN(3)],
			[]string{"request completed", "served from cache", "order accepted", "slow query detected"}[r.IntN(4)],
			r.Uint64(), r.Uint64(), r.Uint64(), []string{"GET", "POST"}[r.IntN(2)], r.IntN(1e6), []int{200, 200, 200, 404, 503}[r.IntN(5)], r.IntN(1000), r.IntN(1000))
		rows.Times = append(rows.Times, at)
		rows.Ends = append(rows.Ends, uint32(len(rows.Bytes)))
	}
	return rows
}
