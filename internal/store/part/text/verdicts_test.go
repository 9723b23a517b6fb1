package text

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/lines"
	"github.com/shaledb/shale/internal/store/part/parttest"
)

// countedPages counts how often each page is read, and fails those of which fail says so.
type countedPages struct {
	file.Pages
	mu      sync.Mutex
	read    map[file.Addr]int
	fetched [][]file.Addr
	fail    map[file.Addr]bool
}

func (p *countedPages) Page(ctx context.Context, a file.Addr) ([]byte, error) {
	p.mu.Lock()
	p.read[a]++
	fail := p.fail[a]
	p.mu.Unlock()
	if fail {
		return nil, fmt.Errorf("%w: no page at %d", model.ErrTransient, a.Off)
	}
	return p.Pages.Page(ctx, a)
}

func (p *countedPages) Fetch(_ context.Context, all []file.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fetched = append(p.fetched, slices.Clone(all))
}

// TestVerdicts: whatever the order in which units are asked for, each page of filters is read once, and says
// of each unit what its filter says.
func TestVerdicts(t *testing.T) {
	z := formatSizes
	z.TextBytes, z.SliceBytes, z.FilterBytes = 96<<10, 1<<10, 4<<10
	w := newPart(true, z)
	for s := range 8 {
		parttest.Must(t, w.Series())
		parttest.Must(t, w.Text(context.Background(), []Series{OfRows(worldtest.JSONLines(12*z.TextBytes, int64(s)))}, model.Always()))
	}
	r := w.finish(t)
	trace := regexp.MustCompile(`"trace_id":"([0-9a-f]{32})"`).FindSubmatch(worldtest.JSONLines(1000, 3).Bytes)[1]
	for needle, some := range map[string]bool{"0123456789abcdef0123456789abcdef": false, string(trace): false, "served from cache": true} {
		pages := &countedPages{Pages: r.Pages(), read: map[file.Addr]int{}, fail: map[file.Addr]bool{}}
		bound := r.Bind(pages)
		filter := &model.TextFilter{Clauses: []model.TextClause{{Any: []model.TextLiteral{{Value: needle}}}}}
		req := &model.Request{Range: model.Always(), Quota: &model.Quota{Pool: &model.QueryPool{MaxBytes: 1 << 30}}, Cost: &model.Cost{}, TextFilter: filter}
		cursor := bound.TextAt(context.Background(), req, nil, 0, unnamed)
		var chunks []model.TextChunk
		for rank := range uint32(8) {
			var err error
			chunks, err = cursor.Chunks(context.Background(), rank, chunks)
			parttest.Must(t, err)
		}
		rand.Shuffle(len(chunks), func(i, j int) { chunks[i], chunks[j] = chunks[j], chunks[i] })
		var asked sync.WaitGroup
		for g := range 4 {
			asked.Go(func() {
				for i := g; i < len(chunks); i += 4 {
					if _, err := chunks[i].Page.Skip(context.Background()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		asked.Wait()
		filters := map[file.Addr]bool{}
		skipped, direct, sliced := 0, newEvaluator(filter), false
		var whole wholeFilters
		for _, c := range chunks {
			p := c.Page.(*page)
			filters[p.e.Text.Filter] = true
			filter, err := whole.read(context.Background(), r.Pages(), &p.e)
			parttest.Must(t, err)
			sliced = sliced || whole.page.slices > 1
			want := direct.none(t, filter)
			if got, _ := p.Skip(context.Background()); got != want {
				t.Fatalf("%s: a unit is ruled out: %t, should be %t", needle, got, want)
			}
			if want {
				skipped++
			}
		}
		for a := range filters {
			if n := pages.read[a]; n != 1 {
				t.Errorf("%s: the page at %d was read %d times", needle, a.Off, n)
			}
		}
		together := slices.ContainsFunc(pages.fetched, func(all []file.Addr) bool { return len(all) > 1 && filters[all[0]] })
		if len(filters) < 2*verdictPages || some == (skipped > len(chunks)*9/10) || some == together {
			t.Errorf("%s: %d of %d units ruled out by %d pages, of which some were fetched together: %t", needle, skipped, len(chunks), len(filters), together)
		}
		if !sliced {
			t.Error("no page has slices")
		}
	}

	// What cannot be read is an error of the units in question only.
	pages := &countedPages{Pages: r.Pages(), read: map[file.Addr]int{}, fail: map[file.Addr]bool{}}
	req := &model.Request{Range: model.Always(), Quota: &model.Quota{Pool: &model.QueryPool{MaxBytes: 1 << 30}}, Cost: &model.Cost{},
		TextFilter: &model.TextFilter{Clauses: []model.TextClause{{Any: []model.TextLiteral{{Value: "0123456789abcdef0123456789abcdef"}}}}}}
	chunks, err := r.Bind(pages).TextAt(context.Background(), req, nil, 0, unnamed).Chunks(context.Background(), 0, nil)
	parttest.Must(t, err)
	bad := chunks[len(chunks)/2].Page.(*page).e.Text.Filter
	pages.fail[bad] = true
	for _, c := range chunks {
		_, err := c.Page.Skip(context.Background())
		if mine := c.Page.(*page).e.Text.Filter == bad; mine != errors.Is(err, model.ErrTransient) {
			t.Fatalf("%v", err)
		}
	}
}

// none asks a filter by itself.
func (s *evaluator) none(t *testing.T, filter []byte) bool {
	var f lines.Filter
	parttest.Must(t, f.Open(filter))
	for _, any := range s.clauses {
		if !slices.ContainsFunc(any, func(l lines.Literal) bool {
			for i, item := range l.Items {
				if !f.Has(l.Classes[i], item) {
					return false
				}
			}
			return true
		}) {
			return true
		}
	}
	return false
}

// TestVerdictsAreKept: a filter that is asked for again reads no page of filters, another one does; and what
// is kept says the same.
func TestVerdictsAreKept(t *testing.T) {
	z := formatSizes
	z.TextBytes, z.SliceBytes, z.FilterBytes = 96<<10, 1<<10, 16<<10
	w := newPart(true, z)
	parttest.Must(t, w.Series())
	parttest.Must(t, w.Text(context.Background(), []Series{OfRows(worldtest.JSONLines(40*z.TextBytes, 1))}, model.Always()))
	r := w.finish(t)
	pages := &countedPages{Pages: r.Pages(), read: map[file.Addr]int{}, fail: map[file.Addr]bool{}}
	bound := r.Bind(parttest.KeepLists(pages))
	quota := &model.Quota{Pool: &model.QueryPool{MaxBytes: 1 << 30}}
	request := func(needles ...string) *model.Request {
		req := &model.Request{Range: model.Always(), Quota: quota, Cost: &model.Cost{}}
		for _, n := range needles {
			if req.TextFilter == nil {
				req.TextFilter = &model.TextFilter{}
			}
			req.TextFilter.Clauses = append(req.TextFilter.Clauses, model.TextClause{Any: []model.TextLiteral{{Value: n}}})
		}
		return req
	}
	chunksOf := func(req *model.Request) []model.TextChunk {
		chunks, err := bound.TextAt(context.Background(), req, nil, 0, unnamed).Chunks(context.Background(), 0, nil)
		parttest.Must(t, err)
		return chunks
	}
	filters := map[file.Addr]bool{}
	units := chunksOf(request())
	for _, c := range units {
		filters[c.Page.(*page).e.Text.Filter] = true
	}
	// ask returns the units that may have lines, and how many pages of filters were read.
	ask := func(needles ...string) (left []file.Addr, read int) {
		clear(pages.read)
		req := request(needles...)
		for _, c := range chunksOf(req) {
			skip, err := c.Page.Skip(context.Background())
			parttest.Must(t, err)
			if !skip {
				left = append(left, c.Page.(*page).e.Addr)
			}
		}
		if all, skipped := req.Cost.TextPages.Load(), req.Cost.TextPagesSkipped.Load(); int(all) != len(units) || int(skipped) != len(units)-len(left) {
			t.Errorf("%q: %d units, %d skipped, should be %d and %d", needles, all, skipped, len(units), len(units)-len(left))
		}
		for a := range filters {
			read += pages.read[a]
		}
		return left, read
	}
	const never = "0123456789abcdef0123456789abcdef"
	for _, needles := range [][]string{{never}, {"served from cache"}, {"served from cache", never}, {"fedcba9876543210fedcba9876543210"}} {
		first, read := ask(needles...)
		if read != len(filters) {
			t.Errorf("%q: %d of %d pages of filters were read", needles, read, len(filters))
		}
		again, read := ask(needles...)
		if read != 0 || !slices.Equal(first, again) {
			t.Errorf("%q: %d pages of filters were read again; %v, then %v", needles, read, first, again)
		}
		// What is known is left out before anybody asks, and for nothing of it need filters be fetched.
		if chunks := chunksOf(request(needles...)); len(chunks) != len(first) {
			t.Errorf("%q: %d chunks, should be %d", needles, len(chunks), len(first))
		} else if len(chunks) > 0 {
			p := chunks[0].Page.(*page)
			if wanted, known, ruledOut := p.verdicts.appendReads(nil, p.e.Text.Filter, p.e.Text.Number); len(wanted) > 0 || !known || ruledOut {
				t.Errorf("%q: known %t, wanted %v", needles, known, wanted)
			}
		}
	}
	// What could not be read is asked for again.
	const other = "aaaabbbbccccdddd1111222233334444"
	chunks := chunksOf(request(other))
	pages.fail[chunks[0].Page.(*page).e.Text.Filter] = true
	if _, err := chunks[0].Page.Skip(context.Background()); !errors.Is(err, model.ErrTransient) {
		t.Fatalf("%v", err)
	}
	clear(pages.fail)
	if _, read := ask(other); read == 0 {
		t.Error("an error was kept")
	}
}

// fetchedLists has both: pages that can be fetched, and a place for lists.
type fetchedLists struct {
	*countedPages
	*parttest.KeptLists
}

func (p *fetchedLists) Page(ctx context.Context, a file.Addr) ([]byte, error) {
	return p.countedPages.Page(ctx, a)
}

// TestForeseen: what is ruled out is found out before anybody asks for units, or is not; the units that are
// left are the same, the cost is, and a slice that cannot be read is an error of the units in question only.
func TestForeseen(t *testing.T) {
	z := formatSizes
	z.TextBytes, z.SliceBytes, z.FilterBytes = 96<<10, 1<<10, 10<<10
	w := newPart(true, z)
	rows := worldtest.JSONLines(30*z.TextBytes, 1)
	var ranks file.Ranks
	for s := range 3 {
		parttest.Must(t, w.Series())
		parttest.Must(t, w.Text(context.Background(), []Series{OfRows(worldtest.JSONLines(30*z.TextBytes, int64(s)))}, model.Always()))
		ranks = append(ranks, uint32(s))
	}
	r := w.finish(t)
	trace := regexp.MustCompile(`"trace_id":"([0-9a-f]{32})"`).FindAllSubmatch(rows.Bytes, -1)
	const never = "0123456789abcdef0123456789abcdef"
	for needle, foreseen := range map[string]bool{
		never: true, string(trace[5][1]): true, string(trace[len(trace)-1][1]): true, "served from cache": false, `"trace_id":"0`: false,
	} {
		pages := &fetchedLists{&countedPages{Pages: r.Pages(), read: map[file.Addr]int{}, fail: map[file.Addr]bool{}}, parttest.KeepLists(nil)}
		bound := r.Bind(pages)
		left := func(foresee bool) (left []file.Addr, cost *model.Cost) {
			req := &model.Request{Range: model.Always(), Quota: &model.Quota{Pool: &model.QueryPool{MaxBytes: 1 << 30}}, Cost: &model.Cost{},
				TextFilter: &model.TextFilter{Clauses: []model.TextClause{{Any: []model.TextLiteral{{Value: needle}}}}}}
			var known *Verdicts
			if foresee {
				var err error
				known, err = bound.PrefetchChunks(context.Background(), ranks, req)
				parttest.Must(t, err)
			}
			c := bound.TextAt(context.Background(), req, known, 0, unnamed)
			for _, rank := range ranks {
				chunks, err := c.Chunks(context.Background(), rank, nil)
				parttest.Must(t, err)
				for _, chunk := range chunks {
					skip, err := chunk.Page.Skip(context.Background())
					parttest.Must(t, err)
					if !skip {
						left = append(left, chunk.Page.(*page).e.Addr)
					} else if foresee && known.allAsked {
						t.Fatalf("%s: a unit that is ruled out is left", needle)
					}
				}
			}
			if foresee && known.allAsked != foreseen {
				t.Errorf("%s: foreseen: %t", needle, known.allAsked)
			}
			return left, req.Cost
		}
		got, cost := left(true)
		want, plain := left(false)
		if !slices.Equal(got, want) {
			t.Errorf("%s: units at %v are left, should be %v", needle, got, want)
		}
		if a, b := cost.TextPages.Load(), plain.TextPages.Load(); a != b {
			t.Errorf("%s: %d units, should be %d", needle, a, b)
		}
		if a, b := cost.TextPagesSkipped.Load(), plain.TextPagesSkipped.Load(); a != b {
			t.Errorf("%s: %d units skipped, should be %d", needle, a, b)
		}
		if found := foreseen && needle != never; found && (len(want) == 0 || len(want) > 10) {
			t.Errorf("%s: %d units are left", needle, len(want))
		}
	}

	pages := &countedPages{Pages: r.Pages(), read: map[file.Addr]int{}, fail: map[file.Addr]bool{}}
	req := &model.Request{Range: model.Always(), Quota: &model.Quota{Pool: &model.QueryPool{MaxBytes: 1 << 30}}, Cost: &model.Cost{},
		TextFilter: &model.TextFilter{Clauses: []model.TextClause{{Any: []model.TextLiteral{{Value: never}}}}}}
	units, err := r.Bind(pages).TextAt(context.Background(), req, nil, 0, unnamed).Chunks(context.Background(), 1, nil)
	parttest.Must(t, err)
	bad := units[len(units)/2].Page.(*page).e.Text.Filter
	var head filterPage
	payload, err := r.Pages().Page(context.Background(), bad)
	parttest.Must(t, err)
	parttest.Must(t, head.decode(payload, bad))
	for i := range head.slices {
		pages.fail[head.slice(i)] = true
	}
	known, err := r.Bind(pages).PrefetchChunks(context.Background(), ranks, req)
	parttest.Must(t, err)
	failed := 0
	for _, rank := range ranks {
		chunks, err := r.Bind(pages).TextAt(context.Background(), req, known, 0, unnamed).Chunks(context.Background(), rank, nil)
		parttest.Must(t, err)
		for _, c := range chunks {
			_, err := c.Page.Skip(context.Background())
			if mine := c.Page.(*page).e.Text.Filter == bad; mine != errors.Is(err, model.ErrTransient) {
				t.Fatalf("%v", err)
			}
			if err != nil {
				failed++
			}
		}
	}
	if failed == 0 {
		t.Error("no unit has the slices that fail")
	}
}

// TestCheckOfTies: the check finds a duplicate row, however far apart the two are and in whichever block.
func TestCheckOfTies(t *testing.T) {
	lines := make([]string, 100)
	for i := range lines {
		lines[i] = fmt.Sprint(i)
	}
	rowsOf := func(lines []string) *model.TextRows {
		var rows model.TextRows
		for _, l := range lines {
			appendRow(&rows, 7, l, nil)
		}
		return &rows
	}
	var c Tally
	for _, block := range []int{1, 7, 99, 100, 1000} {
		parttest.Must(t, c.checkTies(context.Background(), OfRows(rowsOf(lines)), 7, block))
		for _, i := range []int{1, 50, 99} {
			twice := slices.Clone(lines)
			twice[i] = twice[(i-1)/2]
			if err := c.checkTies(context.Background(), OfRows(rowsOf(twice)), 7, block); !errors.Is(err, model.ErrCorrupt) {
				t.Errorf("row %d stands twice, in blocks of %d: %v", i, block, err)
			}
		}
	}
}

// TestManyNames: sets of many names are read back, and a writer does not keep their memory.
func TestManyNames(t *testing.T) {
	racetest.SkipSerial(t)
	var rows model.TextRows
	for i := range 200 {
		var pairs []string
		for k := range 1000 {
			pairs = append(pairs, fmt.Sprintf("n%06d", i*1000+k), "v")
		}
		appendRow(&rows, int64(i), "a line", model.LabelsOf(pairs...))
	}
	w := newPart(false, formatSizes)
	parttest.Must(t, w.Series())
	parttest.Must(t, w.Text(context.Background(), []Series{OfRows(&rows)}, model.Always()))
	parttest.Must(t, w.text.flushText())
	c := &w.text.units[0].coder.metadata
	if c.reset(); len(c.spare) > maxSpareColumns || cap(c.order) > 4*maxSpareColumns {
		t.Errorf("%d columns are kept, and room for %d", len(c.spare), cap(c.order))
	}
	s := NewStream(w.finish(t).Reader)
	parttest.Must(t, s.Seek(context.Background(), 0))
	n := 0
	for run := s.Run(context.Background(), model.Always()); run.Next(); {
		got, err := run.Piece().Rows(context.Background())
		parttest.Must(t, err)
		for k := range got.Times {
			if got.Times[k] != rows.Times[n] || string(got.Line(k)) != "a line" || string(got.MetadataAt(k)) != string(rows.MetadataAt(n)) {
				t.Fatalf("row %d came back as %q with %q", n, got.Line(k), got.MetadataAt(k))
			}
			n++
		}
	}
	if n != rows.Len() {
		t.Fatalf("%d rows of %d", n, rows.Len())
	}

	// A large column is not kept either.
	for i := range 4 {
		c.add(i, model.LabelsOf("big", string(bytes.Repeat([]byte("x"), 1<<20))))
	}
	c.reset()
	if size := len(c.spare); slices.ContainsFunc(c.spare, func(col *metadataColumn) bool { return col.size() > maxSpareBytes }) {
		t.Errorf("a large one is among %d columns", size)
	}
}

// TestFetchDoesNotWait: a prefetch does not wait for a reader of the page, which has asked for it already.
func TestFetchDoesNotWait(t *testing.T) {
	var rows model.TextRows
	for i := range 10 {
		appendRow(&rows, int64(i), "x", nil)
	}
	w := newPart(false, formatSizes)
	parttest.Must(t, w.Series())
	parttest.Must(t, w.Text(context.Background(), []Series{OfRows(&rows)}, model.Always()))
	r := w.finish(t)
	f := &fetched{Pages: r.Pages()}
	r = r.Bind(f)
	req := &model.Request{Range: model.Always(), Quota: &model.Quota{MaxBytes: 1 << 30, Pool: &model.QueryPool{MaxBytes: 1 << 30}}, Cost: &model.Cost{}}
	chunks, err := r.TextAt(context.Background(), req, nil, 0, unnamed).Chunks(context.Background(), 0, nil)
	parttest.Must(t, err)
	p := chunks[0].Page.(*page)
	p.mu.Lock()
	p.Prefetch(context.Background(), []model.TextPage{p}, model.WantLines)
	if len(f.wanted) > 0 {
		t.Errorf("%v of a page that is being read", f.wanted)
	}
	p.mu.Unlock()
	if p.Prefetch(context.Background(), []model.TextPage{p}, model.WantLines); len(f.wanted) != 2 {
		t.Errorf("%v of a page", f.wanted)
	}
}

// fetched are pages of which some are wanted before they are read.
type fetched struct {
	file.Pages
	wanted []file.Addr
}

func (f *fetched) Fetch(_ context.Context, all []file.Addr) { f.wanted = append(f.wanted, all...) }

// TestTiesAreReleased: what was large while a merge remembered rows of one time is given up.
func TestTiesAreReleased(t *testing.T) {
	for _, ties := range []int{1500, 100_000} {
		z := formatSizes
		z.Ties = ties
		w := newPart(false, z)
		parttest.Must(t, w.Series())
		var texts []Series
		for k := range 3 {
			var rows model.TextRows
			for i := range 4000 {
				appendRow(&rows, 7, fmt.Sprint(k*i), nil)
			}
			texts = append(texts, OfRows(&rows))
		}
		parttest.Must(t, w.Text(context.Background(), texts, model.Always()))
		if seen := &w.text.merge.seen; len(seen.rows) > 1024 || seen.most > 1024 {
			t.Errorf("there is still room for %d rows", seen.most)
		}
	}
}
