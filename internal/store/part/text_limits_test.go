package part

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/shaledb/shale/internal/model"
)

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// spans are n rows of which each has a set of metadata of its own.
func spans(n int, line string) (rows []textRow) {
	for i := range n {
		rows = append(rows, textRow{int64(i), line, string(model.LabelsOf("span_id", fmt.Sprintf("%016x", i*7919), "trace_id", fmt.Sprintf("%032x", i*104729)))})
	}
	return rows
}

// TestUnitsOfMetadata: rows that are nearly all metadata make units as large as others, whatever their lines are.
func TestUnitsOfMetadata(t *testing.T) {
	long := slices.Concat(spans(9000, "")[:9000], []textRow{{t: 9000, line: string(bytes.Repeat([]byte("x"), unitBytes))}})
	for i := range 5000 {
		long = append(long, textRow{int64(9001 + i), "", long[i].meta + string(model.LabelsOf("z", "z"))})
	}
	for name, rows := range map[string][]textRow{"empty": spans(30_000, ""), "short": spans(30_000, "x"), "one long": long} {
		size := 0
		for _, r := range rows {
			size += len(r.line) + len(r.meta)
		}
		r := writeText(t, []textSeries{{tenant: "t", labels: model.LabelsOf("a", "b"), rows: rows}}, logOptions(true, Fast), formatSizes)
		entries, err := r.Entries(context.Background(), nil, textSection, 0)
		if must(t, err); len(entries) > 2*size/unitBytes+1 {
			t.Errorf("%s: %d units of %d bytes", name, len(entries), size)
		}
		checkText(t, r, [][][]textRow{{rows}}, anyTime)
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

func (p *pieces) Run(_ context.Context, clip model.TimeRange) TextRun {
	return &piecesRun{rows: mergedText([][]textRow{p.rows}, clip), n: p.n}
}

type piecesRun struct {
	rows []textRow
	n    int
	TextRun
}

func (r *piecesRun) Next() bool {
	n := min(r.n, len(r.rows))
	r.TextRun = RunOfRows(rowsOf(r.rows[:n]))
	r.rows = r.rows[n:]
	return r.TextRun.Next()
}

func (r *piecesRun) Err() error { return nil }

// TestManyTies: rows of one time that are too many to remember are merged like others, and what was large is given up.
func TestManyTies(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	var inputs [][]textRow
	for range 3 {
		rows := []textRow{{t: 1, line: "a"}, {t: 5, line: fmt.Sprint(rnd.IntN(3))}}
		for range 4000 {
			rows = append(rows, textRow{t: 7, line: fmt.Sprint(rnd.IntN(6000)), meta: randomMetadata(rnd)})
		}
		rows = append(rows, textRow{t: 8, line: "b"}, textRow{t: 9, line: fmt.Sprint(rnd.IntN(2))})
		inputs = append(inputs, mergedText([][]textRow{rows}, anyTime))
	}
	for _, clip := range []model.TimeRange{anyTime, {Min: 5, Max: 7}, {Min: 7, Max: 8}} {
		for _, ties := range []int{1500, 100_000} {
			z := formatSizes
			z.ties = ties
			var buf bytes.Buffer
			w := newWriter(&buf, logOptions(false, Fast), z)
			must(t, w.Series("t", model.Key{Lo: 1}, nil))
			must(t, w.Text(context.Background(), []Text{&pieces{inputs[0], 100}, TextOfRows(rowsOf(inputs[1])), &pieces{inputs[2], 3333}}, clip))
			if seen := &w.text.merge.seen; len(seen.rows) > 1024 || seen.most > 1024 {
				t.Errorf("there is still room for %d rows", seen.most)
			}
			checkText(t, finishText(t, w, &buf), [][][]textRow{inputs}, clip)
		}
	}
}

// TestCheckOfTies: a row that stands twice is found, however far apart and in however many blocks.
func TestCheckOfTies(t *testing.T) {
	var rows []textRow
	for i := range 100 {
		rows = append(rows, textRow{t: 7, line: fmt.Sprint(i)})
	}
	var c textTally
	for _, block := range []int{1, 7, 99, 100, 1000} {
		must(t, c.checkTies(context.Background(), TextOfRows(rowsOf(rows)), 7, block))
		for _, i := range []int{1, 50, 99} {
			twice := slices.Clone(rows)
			twice[i] = twice[(i-1)/2]
			if err := c.checkTies(context.Background(), TextOfRows(rowsOf(twice)), 7, block); !errors.Is(err, model.ErrCorrupt) {
				t.Errorf("row %d stands twice, in blocks of %d: %v", i, block, err)
			}
		}
	}
}

// forgedLines is a page of lines that says to have so many bytes, and so many values, all equal.
func forgedLines(t *testing.T, raw, visits, fragments int, lengths, next int64) []byte {
	t.Helper()
	var c intCoder
	column := func(b []byte, x int64, n int) []byte {
		xs := make([]int64, n)
		for i := range xs {
			xs[i] = x
		}
		return c.append(b, xs)
	}
	soft := binary.AppendUvarint([]byte{1, fieldEnd}, uint64(visits))
	soft = binary.AppendUvarint(soft, uint64(fragments))
	soft = column(soft, lengths, fragments)
	soft = column(soft, 0, fragments)
	soft = column(soft, next, visits)
	page := append(binary.AppendUvarint([]byte{codecLines}, uint64(raw)), 0)
	page, err := sealPage(page, soft, codecZstd)
	must(t, err)
	return binary.LittleEndian.AppendUint32(page, checksum(page))
}

// TestForgedLines: a page of a few bytes does not make its reader allocate much more than a page may have.
func TestForgedLines(t *testing.T) {
	for _, raw := range []int{maxPageBytes, maxFieldBytes} {
		visits := raw/minFieldBytes + maxUnitRows
		for _, fragments := range []int{1, 2, 500, visits} {
			for _, length := range []int64{0, 1, 1 << 20} {
				page := forgedLines(t, raw, visits, fragments, length, 0)
				var err error
				n := allocated(func() { _, err = DecodePage(page) })
				if !errors.Is(err, model.ErrCorrupt) || n > 20<<20 {
					t.Errorf("%d bytes of which each of %d values is one of %d fragments of %d: %d bytes allocated, %v", raw, visits, fragments, length, n, err)
				}
			}
		}
	}
}

// forgedNames is a page of one row whose metadata has n names.
func forgedNames(n int) []byte {
	var c intCoder
	p := binary.AppendUvarint([]byte{byte(model.Text), textMetadata}, 1)
	for _, x := range []int64{1, 5, 0} {
		p = c.append(p, []int64{x})
	}
	p = c.append(binary.AppendUvarint(p, 1), []int64{1})
	p = binary.AppendUvarint(p, uint64(n))
	for i := range n {
		p = c.append(appendBytes(p, fmt.Sprintf("%05x", i)), []int64{1})
		p = append(c.append(append(p, metadataPlain), []int64{1}), 'v')
	}
	return p
}

// TestForgedNames: a page cannot have more names than a set of the greatest length has; those it has are charged before they are
// decoded.
func TestForgedNames(t *testing.T) {
	for _, c := range []struct {
		names int
		ok    bool
		most  uint64
	}{{1000, true, 1 << 20}, {maxTextNames, true, 40 << 20}, {maxTextNames + 1, false, 1 << 20}, {900_000, false, 1 << 20}} {
		page := forgedNames(c.names)
		var u textUnit
		var err error
		if n := allocated(func() { err = u.open(page) }); n > c.most || c.ok != (err == nil) || !c.ok && !errors.Is(err, model.ErrCorrupt) {
			t.Errorf("%d names: %d bytes allocated, %v", c.names, n, err)
		}
	}
	page := forgedNames(maxTextNames)
	limit := fmt.Errorf("%w: enough", model.ErrLimit)
	u := textUnit{sets: metadataDecoder{charge: func(int64) error { return limit }}}
	var err error
	if n := allocated(func() { err = u.open(page) }); !errors.Is(err, limit) || n > 1<<20 {
		t.Errorf("%d bytes allocated, %v", n, err)
	}
	sum := int64(0)
	u = textUnit{sets: metadataDecoder{charge: func(n int64) error { sum += n; return nil }}}
	if must(t, u.open(page)); sum < int64(len(u.metadata[0])) || sum > 2*int64(len(u.metadata[0])) {
		t.Errorf("%d bytes are charged for a set of %d", sum, len(u.metadata[0]))
	}
}

// TestManyNames: sets of many names come back, and a writer does not keep what they took.
func TestManyNames(t *testing.T) {
	var rows []textRow
	for i := range 200 {
		var pairs []string
		for k := range 1000 {
			pairs = append(pairs, fmt.Sprintf("n%06d", i*1000+k), "v")
		}
		rows = append(rows, textRow{t: int64(i), line: "a line", meta: string(model.LabelsOf(pairs...))})
	}
	var buf bytes.Buffer
	w := newWriter(&buf, logOptions(false, Fast), formatSizes)
	must(t, w.Series("t", model.Key{Lo: 1}, nil))
	must(t, w.Text(context.Background(), []Text{TextOfRows(rowsOf(rows))}, anyTime))
	must(t, w.text.flushText())
	c := &w.text.units[0].coder.metadata
	if c.reset(); len(c.spare) > maxSpareColumns || cap(c.order) > 4*maxSpareColumns {
		t.Errorf("%d columns are kept, and room for %d", len(c.spare), cap(c.order))
	}
	checkText(t, finishText(t, w, &buf), [][][]textRow{{rows}}, anyTime)

	// A large column is not kept either.
	for i := range 4 {
		c.add(i, model.LabelsOf("big", string(bytes.Repeat([]byte("x"), 1<<20))))
	}
	c.reset()
	if size := len(c.spare); slices.ContainsFunc(c.spare, func(col *metadataColumn) bool { return col.size() > maxSpareBytes }) {
		t.Errorf("a large one is among %d columns", size)
	}
}

// fetched are pages of which some are wanted before they are read.
type fetched struct {
	Pages
	wanted []Addr
}

func (f *fetched) Fetch(_ context.Context, all []Addr) { f.wanted = append(f.wanted, all...) }

// TestFetchDoesNotWait for who reads a page: he has asked for it already.
func TestFetchDoesNotWait(t *testing.T) {
	r := writeText(t, []textSeries{{tenant: "t", labels: model.LabelsOf("a", "b"), rows: spans(10, "x")}}, logOptions(true, Fast), formatSizes)
	f := &fetched{Pages: r.pages}
	r.pages = f
	req := &model.Request{Range: anyTime, Quota: &model.Quota{MaxBytes: 1 << 30, Pool: &model.QueryPool{MaxBytes: 1 << 30}}, Cost: &model.Cost{}}
	chunks, err := r.TextAt(context.Background(), req, nil, 0, unnamed).Chunks(context.Background(), 0, nil)
	must(t, err)
	p := chunks[0].Page.(*textPage)
	p.mu.Lock()
	p.FetchText(context.Background(), []model.TextPage{p}, model.WantLines)
	if len(f.wanted) > 0 {
		t.Errorf("%v of a page that is being read", f.wanted)
	}
	p.mu.Unlock()
	if p.FetchText(context.Background(), []model.TextPage{p}, model.WantLines); len(f.wanted) != 2 {
		t.Errorf("%v of a page", f.wanted)
	}
}

// leaky is a text from which all rows are left out.
type leaky struct{ Text }

func (leaky) Bounded() {}
func (leaky) Run(context.Context, model.TimeRange) TextRun {
	return RunOfRows(&model.TextRows{})
}

func TestHasText(t *testing.T) {
	text := TextOfRows(rowsOf([]textRow{{t: 5}, {t: 9}}))
	for _, c := range []struct {
		text Text
		clip model.TimeRange
		want bool
	}{
		{text, anyTime, true}, {text, model.TimeRange{Min: 5, Max: 5}, true}, {text, model.TimeRange{Min: 6, Max: 8}, false},
		{text, model.TimeRange{Min: 10, Max: 20}, false}, {leaky{text}, anyTime, false},
	} {
		if got, err := HasText(context.Background(), []Text{c.text}, c.clip); err != nil || got != c.want {
			t.Errorf("%v: %t, %v", c.clip, got, err)
		}
	}
}
