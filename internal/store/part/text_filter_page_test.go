package part

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
)

// TestFilterPages: of filters of any sizes, each has its items when it is asked through its page and the slice of the item, and comes
// out as it went in.
func TestFilterPages(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 3))
		var items []*filterItems
		var filters []byte
		var ends []uint32
		for range rapid.IntRange(1, 40).Draw(rt, "filters") {
			s := new(filterItems)
			for class := range itemClasses {
				// Around the length from which on a class is divided: 512 bytes.
				least := 4096 / itemBits[class]
				n := rapid.SampledFrom([]int{0, 1, 30, least - 1, least, least + 1, least + 40, 3 * least}).Draw(rt, "items")
				for range n {
					s.lists[class] = append(s.lists[class], rnd.Uint64())
				}
			}
			before := len(filters)
			filters = s.append(filters, rapid.SampledFrom([]int{100_000, 500_000, 10_000_000}).Draw(rt, "bytes of lines"))
			if len(filters) > before {
				items, ends = append(items, s), append(ends, uint32(len(filters)))
			}
		}
		begin, first := uint32(0), 0
		for len(ends) > 0 {
			n, count := together(filters, begin, ends, rapid.SampledFrom([]int{1, 1000, 10_000, sliceBytes}).Draw(rt, "slice"))
			if n == 0 {
				rt.Fatal("no filter makes a page")
			}
			stored, err := sealPage(nil, appendFilterPage(nil, filters, begin, ends[:n], count), codecNone)
			must(t, err)
			addr := Addr{Off: 77, Len: uint32(len(stored))}
			var parts [][]byte
			for i := range count {
				slice, err := sealPage(nil, appendSlice(nil, filters, begin, ends[:n], count, i), codecNone)
				must(t, err)
				stored = append(stored, slice...)
			}
			payload, err := DecodePage(stored[:addr.Len])
			must(t, err)
			var p filterPage
			must(t, p.open(payload, addr))
			for i := range count {
				a := p.slice(i)
				slice, err := DecodePage(stored[a.Off-addr.Off:][:a.Len])
				must(t, err)
				if len(slice) != p.length {
					rt.Fatalf("slice %d has %d bytes, should have %d", i, len(slice), p.length)
				}
				parts = append(parts, slice)
			}
			for i := range n {
				for class, list := range items[first+i].lists {
					for _, item := range list {
						var slice []byte
						if count > 0 {
							slice = parts[p.sliceOf(item)]
						}
						if !p.has(i, byte(class), item, slice) {
							rt.Fatalf("filter %d of %d lacks an item of class %d", i, n, class)
						}
					}
				}
				filter, err := p.appendFilter(nil, uint32(i), parts)
				must(t, err)
				if !bytes.Equal(filter, filters[begin:ends[i]]) {
					rt.Fatalf("filter %d of %d is another one", i, n)
				}
				begin = ends[i]
			}
			ends, first = ends[n:], first+n
		}
	})
}

// fetchedLists has both: pages that can be fetched, and a place for lists.
type fetchedLists struct {
	*countedPages
	keptLists
}

func (p *fetchedLists) Page(ctx context.Context, a Addr) ([]byte, error) {
	return p.countedPages.Page(ctx, a)
}

// TestForeseen: what is ruled out is found out before anybody asks for units, or is not; the units that are left are the same, the
// cost is, and a slice that cannot be read is an error of the units in question only.
func TestForeseen(t *testing.T) {
	var buf bytes.Buffer
	z := formatSizes
	z.text, z.slice, z.filters = 96<<10, 1<<10, 10<<10
	w := newWriter(&buf, logOptions(false, Dense), z)
	rows := jsonRows(30*z.text, 1)
	var ranks Ranks
	for s := range 3 {
		must(t, w.Series("t", model.Key{Lo: uint64(s)}, nil))
		must(t, w.Text(context.Background(), []Text{TextOfRows(jsonRows(30*z.text, int64(s)))}, anyTime))
		ranks = append(ranks, uint32(s))
	}
	r := finishText(t, w, &buf)
	trace := regexp.MustCompile(`"trace_id":"([0-9a-f]{32})"`).FindAllSubmatch(rows.Bytes, -1)
	const never = "0123456789abcdef0123456789abcdef"
	for needle, foreseen := range map[string]bool{
		never: true, string(trace[5][1]): true, string(trace[len(trace)-1][1]): true, "served from cache": false, `"trace_id":"0`: false,
	} {
		pages := &fetchedLists{&countedPages{Pages: r.pages, read: map[Addr]int{}, fail: map[Addr]bool{}}, keptLists{lists: map[string][]byte{}}}
		bound := r.Bind(pages)
		left := func(foresee bool) (left []Addr, cost *model.Cost) {
			req := &model.Request{Range: anyTime, Quota: &model.Quota{Pool: &model.QueryPool{MaxBytes: 1 << 30}}, Cost: &model.Cost{},
				TextFilter: &model.TextFilter{Clauses: []model.TextClause{{Any: []model.TextLiteral{{Value: needle}}}}}}
			var known *TextVerdicts
			if foresee {
				var err error
				known, err = bound.FetchText(context.Background(), ranks, req)
				must(t, err)
			}
			c := bound.TextAt(context.Background(), req, known, 0, unnamed)
			for _, rank := range ranks {
				chunks, err := c.Chunks(context.Background(), rank, nil)
				must(t, err)
				for _, chunk := range chunks {
					skip, err := chunk.Page.Skip(context.Background())
					must(t, err)
					if !skip {
						left = append(left, chunk.Page.(*textPage).e.addr)
					} else if foresee && known.foreseen {
						t.Fatalf("%s: a unit that is ruled out is left", needle)
					}
				}
			}
			if foresee && known.foreseen != foreseen {
				t.Errorf("%s: foreseen: %t", needle, known.foreseen)
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

	pages := &countedPages{Pages: r.pages, read: map[Addr]int{}, fail: map[Addr]bool{}}
	req := &model.Request{Range: anyTime, Quota: &model.Quota{Pool: &model.QueryPool{MaxBytes: 1 << 30}}, Cost: &model.Cost{},
		TextFilter: &model.TextFilter{Clauses: []model.TextClause{{Any: []model.TextLiteral{{Value: never}}}}}}
	units, err := r.Bind(pages).TextAt(context.Background(), req, nil, 0, unnamed).Chunks(context.Background(), 1, nil)
	must(t, err)
	bad := units[len(units)/2].Page.(*textPage).e.text.filter
	var head filterPage
	payload, err := r.pages.Page(context.Background(), bad)
	must(t, err)
	must(t, head.open(payload, bad))
	for i := range head.slices {
		pages.fail[head.slice(i)] = true
	}
	known, err := r.Bind(pages).FetchText(context.Background(), ranks, req)
	must(t, err)
	failed := 0
	for _, rank := range ranks {
		chunks, err := r.Bind(pages).TextAt(context.Background(), req, known, 0, unnamed).Chunks(context.Background(), rank, nil)
		must(t, err)
		for _, c := range chunks {
			_, err := c.Page.Skip(context.Background())
			if mine := c.Page.(*textPage).e.text.filter == bad; mine != errors.Is(err, model.ErrTransient) {
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
