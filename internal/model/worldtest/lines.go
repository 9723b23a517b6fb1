package worldtest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// LineShapes are the shapes of lines of applications: JSON, identifiers and dates of several forms, key-value
// pairs that repeat, requests, and odd bytes.
var LineShapes = []func(r Random, at int64) string{
	func(r Random, at int64) string {
		return fmt.Sprintf(`{"ts":%q,"msg":"request completed","trace_id":"%016x%016x","status":%d,"took":%d,"host":"10.%d.%d.7"}`,
			time.Unix(0, at).UTC().Format("2006-01-02T15:04:05.000Z"), r.Uint64(), r.Uint64(), 200+r.IntN(2)*303, r.IntN(1e6), r.IntN(256), r.IntN(256))
	},
	func(r Random, at int64) string {
		return fmt.Sprintf("%s pod-%s ID=%012X blk_%d", time.Unix(0, at).UTC().Format("02/Jan/2006:15:04:05"), fmt.Sprintf("x%dk%dq%d", r.IntN(99), r.IntN(99), r.IntN(99)), r.Uint64()>>16, int64(r.Uint64()>>1))
	},
	func(r Random, _ int64) string {
		return []string{"", "\xff\x00\n\"", "é 🙂", "n=" + fmt.Sprint(r.IntN(9)), strings.Repeat("long ", r.IntN(100))}[r.IntN(5)]
	},
	func(r Random, _ int64) string {
		return fmt.Sprintf("level=info trace_id=%016x%016x", r.Uint64(), r.Uint64())
	},
	func(r Random, _ int64) string {
		return fmt.Sprintf("level=info msg=%q n=%d", []string{"started", "needle found", "stopped \x00\xff"}[r.IntN(3)], r.IntN(5))
	},
	func(r Random, _ int64) string { return fmt.Sprintf("GET /api/v1/items/%d 200", r.IntN(10)) },
}

// Text returns the text of a line of any shape, mostly one of the last two, which repeat.
func Text(r Random, at int64) string {
	n := len(LineShapes)
	return LineShapes[min(r.IntN(2*n), n-1-r.IntN(2))](r, at)
}

// Metadata returns the metadata of a line: mostly none, and labels that repeat or do not.
func Metadata(r Random) model.Labels {
	switch r.IntN(10) {
	case 0:
		return model.LabelsOf("shard", fmt.Sprint(r.IntN(4)), "trace_id", fmt.Sprintf("%016x%016x", r.Uint64(), r.Uint64()))
	case 1:
		return model.LabelsOf("trace_id", fmt.Sprintf("%016x%016x", r.Uint64(), r.Uint64()))
	case 2, 3:
		return model.LabelsOf("level", []string{"info", "warn", ""}[r.IntN(3)], "pod", fmt.Sprint(r.IntN(3)))
	case 4:
		return model.LabelsOf(fmt.Sprint("n", r.IntN(20)), "x")
	}
	return nil
}

// Line returns a line of any shape. One in three is one of a few, so that lines of one time are often equal.
// One in eighteen is long, so that a single series fills pages.
func Line(r Random, at int64) Row {
	if r.IntN(3) == 0 {
		l := model.Line{Text: []byte([]string{"", "started"}[r.IntN(2)])}
		if r.IntN(2) == 0 {
			l.Metadata = model.LabelsOf("level", "info")
		}
		return LineRow(at, &l)
	}
	l := model.Line{Text: []byte(Text(r, at)), Metadata: Metadata(r)}
	switch r.IntN(24) {
	case 0:
		l.Text = []byte(strings.Repeat(fmt.Sprint("a long line ", r.IntN(4)), 10_000))
	case 1:
		// Not drawn from r: rapid need not shrink every byte.
		noise := rand.New(rand.NewPCG(r.Uint64(), 0))
		for range noise.IntN(200_000) {
			l.Text = append(l.Text, byte('a'+noise.IntN(16)))
		}
	}
	return LineRow(at, &l)
}

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
