package part

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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
	fetched int
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
	p.fetched++
}

// TestVerdicts: whatever the order in which units are asked for, each page of filters is read once, and says of each unit what its
// filter says.
func TestVerdicts(t *testing.T) {
	var buf bytes.Buffer
	z := formatSizes
	z.text, z.filter, z.filters = 32<<10, 1<<10, 16<<10
	w := newWriter(&buf, logOptions(false, Dense), z)
	for s := range 8 {
		must(t, w.Series("t", model.Key{Lo: uint64(s)}, nil))
		must(t, w.Text(context.Background(), []Text{TextOfRows(jsonRows(20*z.text, int64(s)))}, anyTime))
	}
	r := finishText(t, w, &buf)
	for needle, some := range map[string]bool{"0123456789abcdef0123456789abcdef": false, "served from cache": true} {
		pages := &countedPages{Pages: r.pages, read: map[Addr]int{}, fail: map[Addr]bool{}}
		bound := r.Bind(pages)
		filter := &model.TextFilter{Clauses: []model.TextClause{{Any: []model.TextLiteral{{Value: needle}}}}}
		req := &model.Request{Range: anyTime, Quota: &model.Quota{Pool: &model.QueryPool{MaxBytes: 1 << 30}}, Cost: &model.Cost{}, TextFilter: filter}
		cursor := bound.TextAt(context.Background(), req, 0, unnamed)
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
		skipped, direct := 0, newTextSkip(filter)
		for _, c := range chunks {
			p := c.Page.(*textPage)
			filters[p.e.text.filter] = true
			payload, err := r.pages.Page(context.Background(), p.e.text.filter)
			must(t, err)
			var f filterPage
			must(t, f.open(payload))
			bits, err := f.at(p.e.text.number)
			must(t, err)
			want, err := direct.none(bits)
			must(t, err)
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
		if len(filters) < 2*verdictPages || some == (skipped > len(chunks)*9/10) || some != (pages.fetched == 0) {
			t.Errorf("%s: %d of %d units ruled out by %d pages, of which some were fetched together %d times", needle, skipped, len(chunks), len(filters), pages.fetched)
		}
	}

	// What cannot be read is an error of the units in question only.
	pages := &countedPages{Pages: r.pages, read: map[Addr]int{}, fail: map[Addr]bool{}}
	req := &model.Request{Range: anyTime, Quota: &model.Quota{Pool: &model.QueryPool{MaxBytes: 1 << 30}}, Cost: &model.Cost{},
		TextFilter: &model.TextFilter{Clauses: []model.TextClause{{Any: []model.TextLiteral{{Value: "0123456789abcdef0123456789abcdef"}}}}}}
	chunks, err := r.Bind(pages).TextAt(context.Background(), req, 0, unnamed).Chunks(context.Background(), 0, nil)
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

// TestVerdictsAreKept: a filter that is asked for again reads no page of filters, another one does; and what is kept says the same.
func TestVerdictsAreKept(t *testing.T) {
	var buf bytes.Buffer
	z := formatSizes
	z.text, z.filter, z.filters = 32<<10, 1<<10, 16<<10
	w := newWriter(&buf, logOptions(false, Dense), z)
	must(t, w.Series("t", model.Key{Lo: 1}, nil))
	must(t, w.Text(context.Background(), []Text{TextOfRows(jsonRows(100*z.text, 1))}, anyTime))
	r := finishText(t, w, &buf)
	pages := &countedPages{Pages: r.pages, read: map[Addr]int{}, fail: map[Addr]bool{}}
	bound := r.Bind(&keptLists{Pages: pages, lists: map[string][]byte{}})
	ask := func(recalled bool, needles ...string) (skipped []bool, read int) {
		filter := &model.TextFilter{}
		for _, n := range needles {
			filter.Clauses = append(filter.Clauses, model.TextClause{Any: []model.TextLiteral{{Value: n}}})
		}
		req := &model.Request{Range: anyTime, Quota: &model.Quota{Pool: &model.QueryPool{MaxBytes: 1 << 30}}, Cost: &model.Cost{}, TextFilter: filter}
		chunks, err := bound.TextAt(context.Background(), req, 0, unnamed).Chunks(context.Background(), 0, nil)
		must(t, err)
		filters := map[Addr]bool{}
		for _, c := range chunks {
			filters[c.Page.(*textPage).e.text.filter] = true
		}
		clear(pages.read)
		// What is recalled need not be fetched ahead.
		first := chunks[0].Page.(*textPage)
		if wanted, known, _ := first.verdicts.ahead(nil, first.e.text.filter, first.e.text.number); known != recalled || recalled != (len(wanted) == 0) {
			t.Errorf("%q: known %t, wanted %v", needles, known, wanted)
		}
		for _, c := range chunks {
			s, err := c.Page.Skip(context.Background())
			must(t, err)
			skipped = append(skipped, s)
		}
		for a := range filters {
			read += pages.read[a]
		}
		return skipped, read
	}
	const never = "0123456789abcdef0123456789abcdef"
	for _, needles := range [][]string{{never}, {"served from cache"}, {"served from cache", never}, {"fedcba9876543210fedcba9876543210"}} {
		first, read := ask(false, needles...)
		if read == 0 {
			t.Errorf("%q: no page of filters was read", needles)
		}
		again, read := ask(true, needles...)
		if read != 0 || !slices.Equal(first, again) {
			t.Errorf("%q: %d pages of filters were read again; %v, then %v", needles, read, first, again)
		}
	}
	// What could not be read is asked for again.
	const other = "aaaabbbbccccdddd1111222233334444"
	chunks, err := bound.TextAt(context.Background(), &model.Request{Range: anyTime, Quota: &model.Quota{Pool: &model.QueryPool{MaxBytes: 1 << 30}}, Cost: &model.Cost{},
		TextFilter: &model.TextFilter{Clauses: []model.TextClause{{Any: []model.TextLiteral{{Value: other}}}}}}, 0, unnamed).Chunks(context.Background(), 0, nil)
	must(t, err)
	pages.fail[chunks[0].Page.(*textPage).e.text.filter] = true
	if _, err := chunks[0].Page.Skip(context.Background()); !errors.Is(err, model.ErrTransient) {
		t.Fatalf("%v", err)
	}
	clear(pages.fail)
	if _, read := ask(false, other); read == 0 {
		t.Error("an error was kept")
	}
}
