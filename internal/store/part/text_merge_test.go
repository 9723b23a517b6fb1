package part

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/parttest"
	"github.com/shaledb/shale/internal/store/part/text"
)

// textRow is a row of text as a test sees it.
type textRow struct {
	t    int64
	line string
	meta string
}

// rowsOf makes columns of rows.
func rowsOf(rows []textRow) *model.TextRows {
	var out model.TextRows
	ids := map[string]uint32{}
	for _, r := range rows {
		out.Times = append(out.Times, r.t)
		out.Bytes = append(out.Bytes, r.line...)
		out.Ends = append(out.Ends, uint32(len(out.Bytes)))
		if r.meta != "" && ids[r.meta] == 0 {
			out.Metadata = append(out.Metadata, model.Labels(r.meta))
			ids[r.meta] = uint32(len(out.Metadata))
		}
		out.MetadataOf = append(out.MetadataOf, ids[r.meta])
	}
	if len(out.Metadata) == 0 {
		out.MetadataOf = nil
	}
	return &out
}

// appendRowsOf takes columns apart.
func appendRowsOf(dst []textRow, r *model.TextRows) []textRow {
	for i := range r.Times {
		dst = append(dst, textRow{r.Times[i], string(r.Line(i)), string(r.MetadataAt(i))})
	}
	return dst
}

// textOf reads all rows of a text within clip.
func textOf(t testing.TB, text text.Series, clip model.TimeRange) []textRow {
	t.Helper()
	if text == nil {
		return nil
	}
	var out []textRow
	run := text.Run(context.Background(), clip)
	for run.Next() {
		rows, err := run.Piece().Rows(context.Background())
		parttest.Must(t, err)
		if len(rows.Times) == 0 || rows.Times[0] != run.Piece().Times.Min {
			t.Fatalf("a piece of %v", run.Piece().Times)
		}
		out = appendRowsOf(out, rows)
	}
	parttest.Must(t, run.Err())
	return out
}

// mergedText is what the text of inputs, oldest first, should be.
func mergedText(inputs [][]textRow, clip model.TimeRange) []textRow {
	var all []textRow
	for _, in := range inputs {
		for _, r := range in {
			if clip.Contains(r.t) {
				all = append(all, r)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b textRow) int { return int(min(max(a.t-b.t, -1), 1)) })
	seen := map[textRow]bool{}
	return slices.DeleteFunc(all, func(r textRow) bool {
		was := seen[r]
		seen[r] = true
		return was
	})
}

// randomText makes n rows from a time on, merged with themselves.
func randomText(r *rand.Rand, at int64, n int, withMetadata bool) []textRow {
	var rows []textRow
	step := []int64{0, 1, 3, 1e9}[r.IntN(4)]
	for range n {
		row := textRow{t: at, line: worldtest.Text(r, at)}
		if withMetadata {
			row.meta = string(worldtest.Metadata(r))
		}
		rows = append(rows, row)
		if step > 0 {
			at += r.Int64N(step + 1)
		}
	}
	return mergedText([][]textRow{rows}, model.Always())
}

// textSeries are rows of text by series.
type textSeries struct {
	tenant string
	labels model.Labels
	rows   []textRow
}

func (s *textSeries) key() model.Key { return s.labels.Key(testSeed, model.Logs) }

func logOptions(labels bool, level Compression) WriterOptions {
	o := testOptions(labels, level)
	o.Signal = model.Logs
	return o
}

// writeText writes a part of text.
func writeText(t testing.TB, all []textSeries, o WriterOptions, z file.Sizes) *Reader {
	t.Helper()
	var buf bytes.Buffer
	w := newWriter(&buf, o, z)
	for i := range all {
		l := all[i].labels
		if !o.Labels {
			l = nil
		}
		parttest.Must(t, w.Series(all[i].tenant, all[i].key(), l))
		parttest.Must(t, w.Text(context.Background(), []text.Series{text.OfRows(rowsOf(all[i].rows))}, model.Always()))
	}
	return finishText(t, w, &buf)
}

func finishText(t testing.TB, w *Writer, buf *bytes.Buffer) *Reader {
	t.Helper()
	m, size, err := w.Finish()
	parttest.Must(t, err)
	r, err := Open(context.Background(), bytes.NewReader(buf.Bytes()), size)
	parttest.Must(t, err)
	if got := r.Meta(); got.Text != m.Text || got.TextBytes != m.TextBytes || got.Range != m.Range || !slices.Equal(got.Tenants, m.Tenants) {
		t.Fatalf("meta read %+v\nwritten   %+v", got, m)
	}
	parttest.Must(t, Check(context.Background(), r))
	return r
}

// drawSizes draws sizes of pages of text.
func drawSizes(t *rapid.T) file.Sizes {
	z := rapid.SampledFrom([]file.Sizes{tiny, tinyRuns}).Draw(t, "index pages")
	z.TextBytes = rapid.SampledFrom([]int{1, 50, 200, 1000, 20000}).Draw(t, "page")
	z.SliceBytes = rapid.SampledFrom([]int{1, 100, 1000}).Draw(t, "slice")
	z.FilterBytes = rapid.SampledFrom([]int{1, 300, 10_000}).Draw(t, "filters")
	z.Ties = rapid.SampledFrom([]int{1, 2, 7, 10_000}).Draw(t, "ties")
	z.TextRows = rapid.SampledFrom([]int{3, 40, 5000}).Draw(t, "rows of a unit")
	return z
}

func drawClip(t *rapid.T, at int64) model.TimeRange {
	if rapid.Bool().Draw(t, "whole") {
		return model.Always()
	}
	from := at + rapid.Int64Range(-10, 300).Draw(t, "from")
	return model.TimeRange{Min: from, Max: from + rapid.Int64Range(-1, 400).Draw(t, "span")}
}

// TestTextMergeAgainstModel merges the text of random series of random inputs, stored and in memory, with any
// sizes of pages and any clip, and again what came out of that.
func TestTextMergeAgainstModel(t *testing.T) {
	racetest.SkipSerial(t)
	rapid.Check(t, func(rt *rapid.T) {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 7))
		begin := []int64{0, 1700000000e9, math.MinInt64 + 50}[rnd.IntN(3)]
		n := rapid.IntRange(1, 5).Draw(rt, "series")
		var all []textSeries
		for i := range n {
			all = append(all, textSeries{tenant: fmt.Sprint("t", i/3), labels: model.LabelsOf("app", fmt.Sprint(i))})
		}
		slices.SortFunc(all, func(a, b textSeries) int {
			if a.tenant != b.tenant {
				return strings.Compare(a.tenant, b.tenant)
			}
			return a.key().Compare(b.key())
		})
		inputs := rapid.IntRange(1, 5).Draw(rt, "inputs")
		apart := rapid.Bool().Draw(rt, "apart")
		meta := rapid.Bool().Draw(rt, "metadata")
		rows := make([][][]textRow, n) // by series and input
		var streams []Stream
		for k := range inputs {
			from := begin
			if apart {
				from += int64(k) * 60
			}
			in := slices.Clone(all)
			for i := range in {
				count := rapid.SampledFrom([]int{0, 1, 3, 30, 200}).Draw(rt, "rows")
				in[i].rows = randomText(rnd, from+rnd.Int64N(3), count, meta)
				rows[i] = append(rows[i], in[i].rows)
			}
			level := rapid.SampledFrom([]Compression{Fast, Fast, Dense}).Draw(rt, "level")
			streams = append(streams, writeText(t, in, logOptions(false, level), drawSizes(rt)).Stream())
		}
		clip := drawClip(rt, begin)
		o := logOptions(false, rapid.SampledFrom([]Compression{Fast, Dense}).Draw(rt, "level"))
		o.Windows = rapid.SampledFrom([]file.Windows{{}, {Start: begin, Length: 7, Count: 20}}).Draw(rt, "windows")
		r := mergeText(t, streams, o, drawSizes(rt), clip)
		checkText(t, r, rows, clip)
		r = mergeText(t, []Stream{r.Stream()}, o, drawSizes(rt), model.Always())
		checkText(t, r, rows, clip)
	})
}

// mergeText merges streams into a part.
func mergeText(t testing.TB, streams []Stream, o WriterOptions, z file.Sizes, clips ...model.TimeRange) *Reader {
	t.Helper()
	var buf bytes.Buffer
	w := newWriter(&buf, o, z)
	parttest.Must(t, Merge(context.Background(), streams, func(tenant string, k model.Key, _ model.Labels, _ *model.SeriesRows, text []text.Series) error {
		if err := w.Series(tenant, k, nil); err != nil {
			return err
		}
		for _, clip := range clips {
			if err := w.Text(context.Background(), text, clip); err != nil {
				return err
			}
		}
		return nil
	}, MergeOptions{}))
	return finishText(t, w, &buf)
}

// checkText compares the text of each series of a part with what its inputs should give.
func checkText(t *testing.T, r *Reader, rows [][][]textRow, clip model.TimeRange) {
	t.Helper()
	stream := r.Stream()
	for i := range rows {
		s, err := stream.Next(context.Background())
		if s == nil {
			t.Fatalf("series %d is not there: %v", i, err)
		}
		want := mergedText(rows[i], clip)
		got := textOf(t, s.Text, model.Always())
		if !slices.Equal(got, want) {
			k := 0
			for k < min(len(got), len(want)) && got[k] == want[k] {
				k++
			}
			t.Fatalf("series %d: %d rows, should be %d; from %d on\ngot  %.300q\nwant %.300q", i, len(got), len(want), k,
				fmt.Sprint(got[k:]), fmt.Sprint(want[k:]))
		}
	}
}
