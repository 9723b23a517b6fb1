package part

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/store/part/parttest"
	"github.com/shaledb/shale/internal/store/part/text"
)

// spans are n rows of which each has a set of metadata of its own.
func spans(n int, line string) (rows []textRow) {
	for i := range n {
		rows = append(rows, textRow{int64(i), line, string(model.LabelsOf("span_id", fmt.Sprintf("%016x", i*7919), "trace_id", fmt.Sprintf("%032x", i*104729)))})
	}
	return rows
}

// TestUnitsOfMetadata: rows that are nearly all metadata make units as large as others, whatever their lines
// are.
func TestUnitsOfMetadata(t *testing.T) {
	long := slices.Concat(spans(9000, "")[:9000], []textRow{{t: 9000, line: string(bytes.Repeat([]byte("x"), text.UnitBytes))}})
	for i := range 5000 {
		long = append(long, textRow{int64(9001 + i), "", long[i].meta + string(model.LabelsOf("z", "z"))})
	}
	for name, rows := range map[string][]textRow{"empty": spans(30_000, ""), "short": spans(30_000, "x"), "one long": long} {
		size := 0
		for _, r := range rows {
			size += len(r.line) + len(r.meta)
		}
		r := writeText(t, []textSeries{{tenant: "t", labels: model.LabelsOf("a", "b"), rows: rows}}, logOptions(true, Fast), formatSizes)
		entries, err := r.Entries(context.Background(), nil, text.Section, 0)
		if parttest.Must(t, err); len(entries) > 2*size/text.UnitBytes+1 {
			t.Errorf("%s: %d units of %d bytes", name, len(entries), size)
		}
		checkText(t, r, [][][]textRow{{rows}}, model.Always())
	}
}

// pieces is a text that comes in pieces of so many rows.
type pieces struct {
	rows []textRow
	n    int
}

func (p *pieces) Extent() (model.TimeRange, uint64) {
	return model.TimeRange{Min: p.rows[0].t, Max: p.rows[len(p.rows)-1].t}, uint64(len(p.rows))
}

func (p *pieces) Run(_ context.Context, clip model.TimeRange) text.Run {
	return &piecesRun{rows: mergedText([][]textRow{p.rows}, clip), n: p.n}
}

type piecesRun struct {
	rows []textRow
	n    int
	text.Run
}

func (r *piecesRun) Next() bool {
	n := min(r.n, len(r.rows))
	r.Run = text.RunOfRows(rowsOf(r.rows[:n]))
	r.rows = r.rows[n:]
	return r.Run.Next()
}

func (r *piecesRun) Err() error { return nil }

// TestManyTies: rows of one time that are too many to remember are merged like others, and what was large is
// given up.
func TestManyTies(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	var inputs [][]textRow
	for range 3 {
		rows := []textRow{{t: 1, line: "a"}, {t: 5, line: fmt.Sprint(rnd.IntN(3))}}
		for range 4000 {
			rows = append(rows, textRow{t: 7, line: fmt.Sprint(rnd.IntN(6000)), meta: string(worldtest.Metadata(rnd))})
		}
		rows = append(rows, textRow{t: 8, line: "b"}, textRow{t: 9, line: fmt.Sprint(rnd.IntN(2))})
		inputs = append(inputs, mergedText([][]textRow{rows}, model.Always()))
	}
	for _, clip := range []model.TimeRange{model.Always(), {Min: 5, Max: 7}, {Min: 7, Max: 8}} {
		for _, ties := range []int{1500, 100_000} {
			z := formatSizes
			z.Ties = ties
			var buf bytes.Buffer
			w := newWriter(&buf, logOptions(false, Fast), z)
			parttest.Must(t, w.Series("t", model.Key{Lo: 1}, nil))
			parttest.Must(t, w.Text(context.Background(), []text.Series{&pieces{inputs[0], 100}, text.OfRows(rowsOf(inputs[1])), &pieces{inputs[2], 3333}}, clip))
			checkText(t, finishText(t, w, &buf), [][][]textRow{inputs}, clip)
		}
	}
}

// leaky is a text from which all rows are left out.
type leaky struct{ text.Series }

func (leaky) Bounded() {}
func (leaky) Run(context.Context, model.TimeRange) text.Run {
	return text.RunOfRows(&model.TextRows{})
}

func TestHasText(t *testing.T) {
	rows := text.OfRows(rowsOf([]textRow{{t: 5}, {t: 9}}))
	for _, c := range []struct {
		in   text.Series
		clip model.TimeRange
		want bool
	}{
		{rows, model.Always(), true}, {rows, model.TimeRange{Min: 5, Max: 5}, true}, {rows, model.TimeRange{Min: 6, Max: 8}, false},
		{rows, model.TimeRange{Min: 10, Max: 20}, false}, {leaky{rows}, model.Always(), false},
	} {
		if got, err := text.HasRows(context.Background(), []text.Series{c.in}, c.clip); err != nil || got != c.want {
			t.Errorf("%v: %t, %v", c.clip, got, err)
		}
	}
}
