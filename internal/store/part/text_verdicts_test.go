package part

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
)

// countedPages counts how often each page is read, and fails those of which fail says so.
type countedPages struct {
	Pages
	mu      sync.Mutex
	read    map[Addr]int
	fetched [][]Addr
	fail    map[Addr]bool
}

func (p *countedPages) Page(ctx context.Context, a Addr) ([]byte, error) {
	p.mu.Lock()
	p.read[a]++
	fail := p.fail[a]
	p.mu.Unlock()
	if fail {
		return nil, fmt.Errorf("%w: no page at %d", model.ErrTransient, a.Off)
	}
	return p.Pages.Page(ctx, a)
}

func (p *countedPages) Fetch(_ context.Context, all []Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fetched = append(p.fetched, slices.Clone(all))
}

// TestVerdicts: whatever the order in which units are asked for, each page of filters is read once, and says of each unit what its
// filter says.
func TestVerdicts(t *testing.T) {
	var buf bytes.Buffer
	z := formatSizes
	z.text, z.slice, z.filters = 96<<10, 1<<10, 4<<10
	w := newWriter(&buf, logOptions(false, Dense), z)
	for s := range 8 {
		must(t, w.Series("t", model.Key{Lo: uint64(s)}, nil))
		must(t, w.Text(context.Background(), []Text{TextOfRows(jsonRows(12*z.text, int64(s)))}, anyTime))
	}
	r := finishText(t, w, &buf)
	trace := regexp.MustCompile(`"trace_id":"([0-9a-f]{32})"`).FindSubmatch(jsonRows(1000, 3).Bytes)[1]
	for needle, some := range map[string]bool{"0123456789abcdef0123456789abcdef": false, string(trace): false, "served from cache": true} {
		pages := &countedPages{Pages: r.pages, read: map[Addr]int{}, fail: map[Addr]bool{}}
		bound := r.Bind(pages)
		filter := &model.TextFilter{Clauses: []model.TextClause{{Any: []model.TextLiteral{{Value: needle}}}}}
		req := &model.Request{Range: anyTime, Quota: &model.Quota{Pool: &model.QueryPool{MaxBytes: 1 << 30}}, Cost: &model.Cost{}, TextFilter: filter}
		cursor := bound.TextAt(context.Background(), req, nil, 0, unnamed)
		var chunks []model.TextChunk
		for rank := range uint32(8) {
			var err error
			chunks, err = cursor.Chunks(context.Background(), rank, chunks)
			must(t, err)
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
		filters := map[Addr]bool{}
		skipped, direct, sliced := 0, newTextSkip(filter), false
		var whole wholeFilters
		for _, c := range chunks {
			p := c.Page.(*textPage)
			filters[p.e.text.filter] = true
			filter, err := whole.of(context.Background(), r.pages, &p.e)
			must(t, err)
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
		together := slices.ContainsFunc(pages.fetched, func(all []Addr) bool { return len(all) > 1 && filters[all[0]] })
		if len(filters) < 2*verdictPages || some == (skipped > len(chunks)*9/10) || some == together {
			t.Errorf("%s: %d of %d units ruled out by %d pages, of which some were fetched together: %t", needle, skipped, len(chunks), len(filters), together)
		}
		if !sliced {
			t.Error("no page has slices")
		}
	}

	// What cannot be read is an error of the units in question only.
	pages := &countedPages{Pages: r.pages, read: map[Addr]int{}, fail: map[Addr]bool{}}
	req := &model.Request{Range: anyTime, Quota: &model.Quota{Pool: &model.QueryPool{MaxBytes: 1 << 30}}, Cost: &model.Cost{},
		TextFilter: &model.TextFilter{Clauses: []model.TextClause{{Any: []model.TextLiteral{{Value: "0123456789abcdef0123456789abcdef"}}}}}}
	chunks, err := r.Bind(pages).TextAt(context.Background(), req, nil, 0, unnamed).Chunks(context.Background(), 0, nil)
	must(t, err)
	bad := chunks[len(chunks)/2].Page.(*textPage).e.text.filter
	pages.fail[bad] = true
	for _, c := range chunks {
		_, err := c.Page.Skip(context.Background())
		if mine := c.Page.(*textPage).e.text.filter == bad; mine != errors.Is(err, model.ErrTransient) {
			t.Fatalf("%v", err)
		}
	}
}

// none asks a filter by itself.
func (s *textSkip) none(t *testing.T, filter []byte) bool {
	var f itemFilter
	must(t, f.open(filter))
	for _, any := range s.clauses {
		if !slices.ContainsFunc(any, func(l literalItems) bool {
			for i, item := range l.items {
				if !f.has(l.classes[i], item) {
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

// TestVerdictsAreKept: a filter that is asked for again reads no page of filters, another one does; and what is kept says the same.
func TestVerdictsAreKept(t *testing.T) {
	var buf bytes.Buffer
	z := formatSizes
	z.text, z.slice, z.filters = 96<<10, 1<<10, 16<<10
	w := newWriter(&buf, logOptions(false, Dense), z)
	must(t, w.Series("t", model.Key{Lo: 1}, nil))
	must(t, w.Text(context.Background(), []Text{TextOfRows(jsonRows(40*z.text, 1))}, anyTime))
	r := finishText(t, w, &buf)
	pages := &countedPages{Pages: r.pages, read: map[Addr]int{}, fail: map[Addr]bool{}}
	bound := r.Bind(&keptLists{Pages: pages, lists: map[string][]byte{}})
	quota := &model.Quota{Pool: &model.QueryPool{MaxBytes: 1 << 30}}
	request := func(needles ...string) *model.Request {
		req := &model.Request{Range: anyTime, Quota: quota, Cost: &model.Cost{}}
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
		must(t, err)
		return chunks
	}
	filters := map[Addr]bool{}
	units := chunksOf(request())
	for _, c := range units {
		filters[c.Page.(*textPage).e.text.filter] = true
	}
	// ask returns the units that may have lines, and how many pages of filters were read.
	ask := func(needles ...string) (left []Addr, read int) {
		clear(pages.read)
		req := request(needles...)
		for _, c := range chunksOf(req) {
			skip, err := c.Page.Skip(context.Background())
			must(t, err)
			if !skip {
				left = append(left, c.Page.(*textPage).e.addr)
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
			p := chunks[0].Page.(*textPage)
			if wanted, known, ruledOut := p.verdicts.ahead(nil, p.e.text.filter, p.e.text.number); len(wanted) > 0 || !known || ruledOut {
				t.Errorf("%q: known %t, wanted %v", needles, known, wanted)
			}
		}
	}
	// What could not be read is asked for again.
	const other = "aaaabbbbccccdddd1111222233334444"
	chunks := chunksOf(request(other))
	pages.fail[chunks[0].Page.(*textPage).e.text.filter] = true
	if _, err := chunks[0].Page.Skip(context.Background()); !errors.Is(err, model.ErrTransient) {
		t.Fatalf("%v", err)
	}
	clear(pages.fail)
	if _, read := ask(other); read == 0 {
		t.Error("an error was kept")
	}
}
