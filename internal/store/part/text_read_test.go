package part

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/lines"
	"github.com/shaledb/shale/internal/store/part/parttest"
	"github.com/shaledb/shale/internal/store/part/text"
)

func unnamed(err error) error { return err }

// readChunks reads the chunks of a series one after the other.
func readChunks(t testing.TB, chunks []model.TextChunk, rg model.TimeRange, want model.TextWant) (rows []textRow) {
	t.Helper()
	var got, end model.TextRows
	for i, c := range chunks {
		from, err := c.Page.(textEnder).ReadTextEnd(context.Background(), c.Index, want, func(times []int64) int { return len(times) * ((i + 2) % 4) / 3 }, &end)
		parttest.Must(t, err)
		parttest.Must(t, c.Page.ReadText(context.Background(), c.Index, want, &got))
		if !slices.Equal(end.Times, got.Times) {
			t.Fatalf("times %v of the end, should be %v", end.Times, got.Times)
		}
		for k := range got.Ends {
			if want&model.WantLines == 0 {
				break
			}
			if line := end.Line(k); k >= from && !bytes.Equal(line, got.Line(k)) || k < from && len(line) > 0 {
				t.Fatalf("line %d, read from %d on, is %q; should be %q", k, from, line, got.Line(k))
			}
		}
		if got.Len() != c.Rows || c.Rows == 0 || got.Times[0] != c.Min || got.Times[c.Rows-1] != c.Max || i > 0 && chunks[i-1].Max > c.Min {
			t.Fatalf("chunk %+v of times %v", c, got.Times)
		}
		bytes := int64(0)
		for k, at := range got.Times {
			r := textRow{t: at}
			switch {
			case want&model.WantLines != 0:
				r.line = string(got.Line(k))
				bytes += int64(len(r.line))
			case want&model.WantLengths != 0:
				length := lengthOf(&got, k)
				r.line = fmt.Sprint(length)
				bytes += length
			}
			if want&model.WantMetadata != 0 {
				r.meta = string(got.MetadataAt(k))
			}
			if rg.Contains(at) {
				rows = append(rows, r)
			}
		}
		if want&(model.WantLines|model.WantLengths) != 0 && bytes != c.Bytes {
			t.Fatalf("%d bytes of %d", bytes, c.Bytes)
		}
	}
	return rows
}

// lengthOf returns the length of line k.
func lengthOf(r *model.TextRows, k int) int64 {
	begin := r.Begin
	if k > 0 {
		begin = r.Ends[k-1]
	}
	return int64(r.Ends[k]) - int64(begin)
}

// TestChunks reads random series of random parts: what is wanted of their rows comes, and all memory is given
// back.
func TestChunks(t *testing.T) {
	racetest.SkipSerial(t)
	rapid.Check(t, func(rt *rapid.T) {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 9))
		var all []textSeries
		for i := range rapid.IntRange(1, 12).Draw(rt, "series") {
			n := rapid.SampledFrom([]int{0, 0, 1, 3, 40, 300}).Draw(rt, "rows")
			all = append(all, textSeries{tenant: "t", labels: model.LabelsOf("app", fmt.Sprint(i)), rows: randomText(rnd, rnd.Int64N(50), n, i%2 == 0)})
		}
		slices.SortFunc(all, func(a, b textSeries) int { return a.key().Compare(b.key()) })
		r := writeText(t, all, logOptions(true, rapid.SampledFrom([]Compression{Fast, Dense}).Draw(rt, "level")), drawSizes(rt))
		req := &model.Request{Range: drawClip(rt, 0), Quota: &model.Quota{MaxBytes: 1 << 30, Pool: &model.QueryPool{MaxBytes: 1 << 30}}, Cost: &model.Cost{}}
		needle := rapid.SampledFrom([]string{"", "items/7", "trace_id=", "nowhere", "0123456789abcdef0123456789abcdef"}).Draw(rt, "needle")
		if needle != "" {
			req.TextFilter = &model.TextFilter{Clauses: []model.TextClause{{Any: []model.TextLiteral{{Value: needle}}}}}
		}
		var known *text.Verdicts
		if rapid.Bool().Draw(rt, "foreseen") {
			ranks := make(file.Ranks, len(all))
			for i := range ranks {
				ranks[i] = uint32(i)
			}
			var err error
			known, err = r.PrefetchChunks(context.Background(), ranks, req)
			parttest.Must(t, err)
		}
		c := r.TextAt(context.Background(), req, known, 7, unnamed)
		wants := []model.TextWant{0, model.WantNoMore, model.WantLengths, model.WantLengths | model.WantNoMore, model.WantLines, model.WantMetadata, model.WantLines | model.WantMetadata}
		want, later := rapid.SampledFrom(wants).Draw(rt, "want"), rapid.SampledFrom(wants).Draw(rt, "want later")
		for rank := range all {
			if rnd.IntN(4) == 0 {
				continue
			}
			chunks, err := c.Chunks(context.Background(), uint32(rank), nil)
			parttest.Must(t, err)
			expected, got := wanted(all[rank].rows, req.Range, want), readChunks(t, chunks, req.Range, want)
			if len(got) < len(expected) && needle != "" {
				// Units that are known to be ruled out, since their filter stands in a page that was asked
				// before, are left out.
				lacks := func(r textRow) bool { return !strings.Contains(r.line, needle) }
				expected = slices.DeleteFunc(wanted(all[rank].rows, req.Range, want|model.WantLines), lacks)
				got = slices.DeleteFunc(readChunks(t, chunks, req.Range, want|model.WantLines), lacks)
			}
			if !slices.Equal(got, expected) {
				rt.Fatalf("rank %d: %d rows, should be %d", rank, len(got), len(expected))
			}
			if needle == "" && !slices.Equal(readChunks(t, chunks, req.Range, later), wanted(all[rank].rows, req.Range, later)) {
				rt.Fatalf("rank %d: other rows are read after %d with %d", rank, want, later)
			}
			for _, chunk := range chunks {
				skip, err := chunk.Page.Skip(context.Background())
				parttest.Must(t, err)
				rows := readChunks(t, []model.TextChunk{chunk}, model.Always(), model.WantLines)
				if skip && slices.ContainsFunc(rows, func(r textRow) bool { return strings.Contains(r.line, needle) }) {
					rt.Fatalf("a page with %q is skipped", needle)
				}
				chunk.Page.Release()
			}
		}
		if left := req.Quota.Charged(); left != (model.Charge{}) {
			rt.Fatalf("still charged: %+v", left)
		}
	})
}

func wanted(rows []textRow, rg model.TimeRange, want model.TextWant) (out []textRow) {
	for _, r := range rows {
		switch {
		case want&model.WantLines != 0:
		case want&model.WantLengths != 0:
			r.line = fmt.Sprint(len(r.line))
		default:
			r.line = ""
		}
		if want&model.WantMetadata == 0 {
			r.meta = ""
		}
		if rg.Contains(r.t) {
			out = append(out, r)
		}
	}
	return out
}

// TestLongLines: lines of any length up to the most, and of any bytes, come back; longer ones are refused.
func TestLongLines(t *testing.T) {
	racetest.SkipSerial(t)
	rnd := rand.New(rand.NewPCG(6, 6))
	random := make([]byte, 256<<10)
	for i := range random {
		random[i] = byte(rnd.Uint32())
	}
	rows := []textRow{{t: 1}, {t: 2, line: string(random)}, {t: 2, line: strings.Repeat("x", 256<<10)}, {t: 3, line: "\n"}, {t: 4, line: strings.Repeat("ab 12 ", 200_000)},
		{t: 5, line: strings.Repeat("9", text.MaxLineBytes)}, {t: 6, line: "end", meta: string(model.LabelsOf("big", strings.Repeat("m", 200_000)))}}
	for _, level := range []Compression{Fast, Dense} {
		r := writeText(t, []textSeries{{tenant: "t", labels: model.LabelsOf("a", "b"), rows: rows}}, logOptions(true, level), formatSizes)
		s, err := r.Stream().Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if got := textOf(t, s.Text, model.Always()); !slices.Equal(got, rows) {
			t.Fatalf("%d rows of %d, or other ones", len(got), len(rows))
		}
	}
	w := NewWriter(discard{}, logOptions(false, Fast))
	parttest.Must(t, w.Series("t", model.Key{Lo: 1}, nil))
	long := rowsOf([]textRow{{line: strings.Repeat("x", text.MaxLineBytes+1)}})
	if err := w.Text(context.Background(), []text.Series{text.OfRows(long)}, model.Always()); !errors.Is(err, model.ErrInvalid) {
		t.Fatalf("a line that is too long: %v", err)
	}
}

// TestUnitsAreCopied: what needs no merging is copied as it is stored, with its filter.
func TestUnitsAreCopied(t *testing.T) {
	rnd := rand.New(rand.NewPCG(2, 8))
	l := model.LabelsOf("app", "a")
	var inputs []Stream
	var stored [][]byte
	var rows [][]textRow
	at := int64(1700000000e9)
	for range 3 {
		var in []textRow
		for size := 0; size < 3*text.UnitBytes; {
			at += rnd.Int64N(1e9)
			line := fmt.Sprintf("level=info trace_id=%016x%016x n=%d", rnd.Uint64(), rnd.Uint64(), rnd.IntN(1e6))
			size += len(line)
			in = append(in, textRow{t: at, line: line})
		}
		rows = append(rows, in)
		r := writeText(t, []textSeries{{tenant: "t", labels: l, rows: in}}, logOptions(false, Fast), formatSizes)
		inputs = append(inputs, r.Stream())
		entries, err := r.Entries(context.Background(), nil, text.Section, 0)
		parttest.Must(t, err)
		for _, e := range entries {
			page, err := r.Read(context.Background(), e.Text.Lines.Off, int64(e.Text.Lines.Len))
			parttest.Must(t, err)
			stored = append(stored, page)
		}
	}
	r := mergeText(t, inputs, logOptions(false, Dense), formatSizes, model.Always())
	checkText(t, r, [][][]textRow{rows}, model.Always())
	entries, err := r.Entries(context.Background(), nil, text.Section, 0)
	parttest.Must(t, err)
	if len(entries) != len(stored) {
		t.Fatalf("%d units of %d", len(entries), len(stored))
	}
	for i, e := range entries {
		page, err := r.Read(context.Background(), e.Text.Lines.Off, int64(e.Text.Lines.Len))
		parttest.Must(t, err)
		if !bytes.Equal(page, stored[i]) || page[0] != lines.Codec || e.Text.Filter.Len == 0 {
			t.Fatalf("unit %d is not the one that was copied", i)
		}
	}
}

// TestQuotaOfText: a query that may not hold a page gets an error of its limit, and keeps nothing.
func TestQuotaOfText(t *testing.T) {
	rows := randomText(rand.New(rand.NewPCG(1, 1)), 0, 500, true)
	r := writeText(t, []textSeries{{tenant: "t", labels: model.LabelsOf("a", "b"), rows: rows}}, logOptions(true, Dense), formatSizes)
	for limit := int64(1000); limit < 60_000; limit += 1000 {
		req := &model.Request{Range: model.Always(), Quota: &model.Quota{MaxBytes: limit, Pool: &model.QueryPool{MaxBytes: 1 << 30}}, Cost: &model.Cost{}}
		chunks, err := r.TextAt(context.Background(), req, nil, 0, unnamed).Chunks(context.Background(), 0, nil)
		parttest.Must(t, err)
		var dst model.TextRows
		err = chunks[0].Page.ReadText(context.Background(), 0, model.WantLines|model.WantMetadata, &dst)
		if err != nil && !errors.Is(err, model.ErrLimit) {
			t.Fatal(err)
		}
		if err == nil && limit < 30_000 {
			t.Fatalf("%d rows within %d bytes", len(rows), limit)
		}
		chunks[0].Page.Release()
		if left := req.Quota.Charged(); left != (model.Charge{}) {
			t.Fatalf("still charged: %+v", left)
		}
	}
}

// textEnder is a page that can be read from its end.
type textEnder interface {
	ReadTextEnd(ctx context.Context, index int, want model.TextWant, first func(times []int64) int, dst *model.TextRows) (int, error)
}

// TestSharedPages reads pages and releases them from several goroutines at once. Each has the columns that it
// wants, whatever the others do with the memory of the page.
func TestSharedPages(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	var all []textSeries
	for i := range 6 {
		all = append(all, textSeries{tenant: "t", labels: model.LabelsOf("app", fmt.Sprint(i)), rows: randomText(rnd, 5, 200, true)})
	}
	slices.SortFunc(all, func(a, b textSeries) int { return a.key().Compare(b.key()) })
	z := tiny
	z.TextBytes, z.TextRows = 20_000, 5000
	r := writeText(t, all, logOptions(true, Fast), z)
	req := &model.Request{Range: model.Always(), Quota: &model.Quota{MaxBytes: 1 << 30}, Cost: &model.Cost{}}
	c := r.TextAt(context.Background(), req, nil, 7, unnamed)
	chunks := make([][]model.TextChunk, len(all))
	for rank := range all {
		var err error
		chunks[rank], err = c.Chunks(context.Background(), uint32(rank), nil)
		parttest.Must(t, err)
	}
	wants := []model.TextWant{model.WantNoMore, model.WantLengths, model.WantLengths | model.WantNoMore, model.WantLines, model.WantMetadata | model.WantNoMore}
	var readers sync.WaitGroup
	for g := range 4 {
		readers.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(g), 4))
			for range 300 {
				rank, want := rnd.IntN(len(all)), wants[rnd.IntN(len(wants))]
				if got := readChunks(t, chunks[rank], req.Range, want); !slices.Equal(got, wanted(all[rank].rows, req.Range, want)) {
					t.Errorf("rank %d: other rows are read with %d", rank, want)
				}
				if rnd.IntN(2) == 0 {
					chunks[rank][0].Page.Release()
				}
			}
		})
	}
	readers.Wait()
	for _, of := range chunks {
		for _, c := range of {
			c.Page.Release()
		}
	}
	if left := req.Quota.Charged(); left != (model.Charge{}) {
		t.Errorf("still charged: %+v", left)
	}
}
