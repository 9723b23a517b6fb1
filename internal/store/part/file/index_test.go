package file

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sort"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
)

// TestHostileIndexEntries: entries that do not follow each other as pages do are refused before anybody looks
// for a rank between them.
func TestHostileIndexEntries(t *testing.T) {
	page := func(rank0, ranks uint32) Entry { return Entry{Rank0: rank0, Ranks: ranks} }
	const size = 1000
	for _, c := range []struct {
		name    string
		entries []Entry
		// dense: of sections that cover all ranks; rows: of those that leave some out and go on in the next
		// page.
		dense, rows bool
	}{
		{"one after the other", []Entry{page(0, 5), page(5, 2), page(7, 1)}, true, true},
		{"from a later rank on", []Entry{page(9, 5), page(14, 2)}, true, true},
		{"the same rank twice", []Entry{page(0, 5), page(4, 3), page(6, 1), page(6, 1)}, false, true},
		{"a gap", []Entry{page(0, 5), page(6, 2)}, false, true},
		{"two ranks back", []Entry{page(0, 5), page(3, 4)}, false, false},
		{"a page inside another", []Entry{page(0, 5), page(1, 2)}, false, false},
		{"the last rank there is", []Entry{page(1<<32-2, 2)}, true, true},
		{"beyond the last rank", []Entry{page(1<<32-2, 3)}, false, false},
	} {
		for _, s := range indexSections {
			if s.Form == PairEntries {
				continue
			}
			entries := append([]Entry(nil), c.entries...)
			off := int64(HeaderBytes)
			for i := range entries {
				entries[i].Addr = Addr{off, 10}
				off += 10
			}
			_, err := ReadIndexPage(nil, indexPageOf(s, entries), s, size)
			good := c.dense && !s.rows() || c.rows && s.rows()
			if good && err != nil || !good && !errors.Is(err, model.ErrCorrupt) {
				t.Errorf("%s: %s: %v", s, c.name, err)
			}
		}
	}
}

func indexPageOf(s *Section, entries []Entry) []byte {
	x := IndexWriter{Section: s}
	for i := range entries {
		x.Add(entries[i])
	}
	return x.Payload(nil)
}

// TestIndexDir: any entry of a page of any length is found, from anywhere, and the same entries come back one
// by one.
func TestIndexDir(t *testing.T) {
	for _, n := range []int{1, 2, 15, 16, 17, 31, 32, 33, 100, 160, 1000} {
		for _, s := range indexSections {
			rnd := rand.New(rand.NewPCG(uint64(n), uint64(s.Number)))
			entries, off, rank := make([]Entry, n), int64(HeaderBytes), uint32(7)
			for i := range entries {
				e := &entries[i]
				*e = Entry{Addr: Addr{off, 10 + rnd.Uint32N(1000)}}
				if off = e.end(); s.Form == PairEntries {
					e.Name, e.Value = []byte("name"), fmt.Appendf(nil, "%06d", i)
					continue
				}
				if e.Rank0, e.Ranks = rank, 1+rnd.Uint32N(3); s.Form == KeyEntries {
					e.Key = model.Key{Hi: rnd.Uint64(), Lo: rnd.Uint64()}
				}
				if rank += e.Ranks; s.rows() {
					e.Rows, e.Times = rnd.Uint64N(100), model.TimeRange{Min: rnd.Int64N(1000), Max: 1000}
					rank += rnd.Uint32N(3) - 1 // a rank that goes on, none, or one that is left out
				}
			}
			payload := indexPageOf(s, entries)
			if got, err := ReadIndexPage(nil, payload, s, off); err != nil || !reflect.DeepEqual(got, entries) {
				t.Fatalf("%s, %d entries: %v", s, n, err)
			}
			var d indexDir
			if err := d.decode(payload, s, off); err != nil {
				t.Fatal(err)
			}
			for range 300 {
				want := rnd.IntN(n + 1)
				found, err := d.search(func(e *Entry) bool { return want < n && e.Addr.Off >= entries[want].Addr.Off })
				if err != nil || found != (want < n) || d.at != min(want, n-1) || !reflect.DeepEqual(d.entry, entries[d.at]) {
					t.Fatalf("%s, %d entries: sought %d, at %d, found %v, %v", s, n, want, d.at, found, err)
				}
				to := rnd.IntN(n)
				if err := d.seek(to); err != nil || d.at != to || !reflect.DeepEqual(d.entry, entries[to]) {
					t.Fatalf("%s, %d entries: moved to %d, at %d, %v", s, n, to, d.at, err)
				}
			}
		}
	}
}

// TestHostileIndexRuns: a walk refuses runs with a wrong end and runs that do not follow each other. No
// search among them leaves the payload.
func TestHostileIndexRuns(t *testing.T) {
	entries := make([]Entry, 40)
	for i := range entries {
		entries[i] = Entry{Addr: Addr{int64(8 + 10*i), 10}, Rank0: uint32(i), Ranks: 1}
	}
	const size = 1000
	good := indexPageOf(indexLabels, entries)
	if _, err := ReadIndexPage(nil, good, indexLabels, size); err != nil {
		t.Fatal(err)
	}
	for at := 3; at < 3+3*4; at++ { // of the ends
		for x := 1; x < 256; x++ {
			b := slices.Clone(good)
			b[at] ^= byte(x)
			if _, err := ReadIndexPage(nil, b, indexLabels, size); !errors.Is(err, model.ErrCorrupt) {
				t.Fatalf("byte %d changed by %x: %v", at, x, err)
			}
			var d indexDir
			if err := d.decode(b, indexLabels, size); err != nil {
				continue
			}
			for rank := range uint32(len(entries)) {
				found, err := d.search(func(e *Entry) bool { return e.Last() >= rank })
				if err != nil && !errors.Is(err, model.ErrCorrupt) || err == nil && (!found || d.entry.Rank0 != rank) {
					t.Fatalf("byte %d changed by %x: rank %d: found %v, %v", at, x, rank, found, err)
				}
			}
		}
	}
	// More entries than bytes: nothing is made for them.
	forged := IndexWriter{Section: indexLabels, count: 1 << 20, ends: make([]byte, 4*(1<<16-1))}
	if _, err := ReadIndexPage(nil, forged.Payload(nil), indexLabels, size); !errors.Is(err, model.ErrCorrupt) {
		t.Errorf("a million entries in no byte: %v", err)
	}
	// The first entry of a run stands whole and could begin anywhere.
	back := slices.Clone(entries)
	for i := indexRun; i < len(back); i++ {
		back[i].Rank0 -= 2
	}
	x := IndexWriter{Section: indexLabels}
	for i := range back {
		x.Add(back[i])
	}
	if _, err := ReadIndexPage(nil, x.Payload(nil), indexLabels, size); !errors.Is(err, model.ErrCorrupt) {
		t.Errorf("a run that begins with ranks of the one before: %v", err)
	}
}

func TestHostileIndexPlaces(t *testing.T) {
	const size = 1000
	for _, s := range indexSections {
		for name, a := range map[string]Addr{
			"beyond the end":          {size, 1},
			"over the end":            {size - 9, 10},
			"longer than a page":      {8, MaxPageBytes + envelopeMax + 1},
			"an offset of 63 bits":    {1<<63 - 1, 10},
			"an offset that is below": {-1, 10},
		} {
			_, err := ReadIndexPage(nil, indexPageOf(s, []Entry{{Addr: a, Ranks: 1}}), s, size)
			if !errors.Is(err, model.ErrCorrupt) {
				t.Errorf("%s: %s: %v", s, name, err)
			}
		}
		good := indexPageOf(s, []Entry{{Addr: Addr{8, 10}, Ranks: 1}})
		if _, err := ReadIndexPage(nil, good, s, size); err != nil {
			t.Errorf("%s: %v", s, err)
		}
		for n := range good {
			if _, err := ReadIndexPage(nil, good[:n], s, size); !errors.Is(err, model.ErrCorrupt) {
				t.Errorf("%s: %d of %d bytes: %v", s, n, len(good), err)
			}
		}
		for _, other := range indexSections {
			if _, err := ReadIndexPage(nil, good, other, size); other != s && !errors.Is(err, model.ErrCorrupt) {
				t.Errorf("an index page of %s read as one of %s: %v", s, other, err)
			}
		}
	}
}

// memoryPages are pages by offset.
type memoryPages map[int64][]byte

func (m memoryPages) Page(_ context.Context, a Addr) ([]byte, error) { return m[a.Off], nil }

// indexed returns a walk over index pages of so many entries each.
func indexed(s *Section, entries []Entry, each int) Walk {
	f, pages := &footer{index: make([][]Entry, len(indexSections))}, memoryPages{}
	for i := 0; i < len(entries); i += each {
		x := IndexWriter{Section: s}
		for _, e := range entries[i:min(i+each, len(entries))] {
			x.Add(e)
		}
		pages[int64(i)] = x.Payload(nil)
		x.sealed(Addr{Off: int64(i), Len: 1})
		f.index[s.Number] = append(f.index[s.Number], x.pages...)
	}
	return Walk{Ctx: context.Background(), Reader: &Reader{footer: f, pages: pages, footerOff: 1 << 30}, Section: s}
}

// TestRankWalk: wherever a walk stands, it finds what looking at one entry after the other finds.
func TestRankWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom([]*Section{indexKeys, indexLabels, indexRows, indexUnits}).Draw(t, "section")
		n := rapid.IntRange(1, 120).Draw(t, "entries")
		entries, off, rank, key := make([]Entry, n), int64(HeaderBytes), uint32(0), uint64(0)
		for i := range entries {
			e := &entries[i]
			*e = Entry{Addr: Addr{off, 10}, Rank0: rank, Ranks: rapid.Uint32Range(1, 4).Draw(t, "ranks")}
			off, rank = e.end(), rank+e.Ranks
			switch {
			case s.Form == KeyEntries:
				key += rapid.Uint64Range(1, 5).Draw(t, "key")
				e.Key = model.Key{Hi: key}
			case s.rows():
				rank += rapid.Uint32Range(0, 2).Draw(t, "shared, next, or beyond") - 1
			}
		}
		w := indexed(s, entries, rapid.SampledFrom([]int{1, 5, 16, 40, 1000}).Draw(t, "entries of an index page"))
		w.Copies = rapid.Bool().Draw(t, "copies")
		same := func(what string, got *Entry, err error, want int) {
			if err != nil || (got == nil) != (want >= n) || got != nil && !reflect.DeepEqual(*got, entries[want]) {
				t.Fatalf("%s: got %+v, %v, want entry %d of %+v", what, got, err, want, entries)
			}
		}
		sought := uint32(0)
		for range 40 {
			if s.Form == KeyEntries && rapid.Bool().Draw(t, "by key") {
				k := model.Key{Hi: rapid.Uint64Range(0, key+3).Draw(t, "sought key")}
				want := max(0, sort.Search(n, func(i int) bool { return k.Less(entries[i].Key) })-1)
				e, err := w.Last(func(e *Entry) bool { return k.Less(e.Key) && e.Rank0 > 0 })
				same(fmt.Sprint("key ", k), e, err, want)
				continue
			}
			if sought += rapid.Uint32Range(0, 6).Draw(t, "on"); rapid.IntRange(0, 5).Draw(t, "anywhere") == 0 {
				sought = rapid.Uint32Range(0, rank+3).Draw(t, "sought")
			}
			at := sort.Search(n, func(i int) bool { return entries[i].Last() >= sought })
			e, err := w.Find(sought)
			same(fmt.Sprint("rank ", sought), e, err, at)
			for k := rapid.IntRange(0, 3).Draw(t, "followed"); k > 0 && at < n; k-- {
				at++
				e, err = w.Following()
				same(fmt.Sprint("behind rank ", sought), e, err, at)
			}
		}
	})
}

// TestHostileIndexBorder: a walk refuses an index page that does not follow the one before.
func TestHostileIndexBorder(t *testing.T) {
	for _, s := range []*Section{indexKeys, indexLabels, indexRows, indexUnits, indexMasks} {
		w := indexed(s, []Entry{{Addr: Addr{8, 10}, Rank0: 5, Ranks: 5}, {Addr: Addr{18, 10}, Rank0: 3, Ranks: 1}}, 1)
		w.Reader.footer.index[s.Number][1].Rank0 = 9
		if e, err := w.Find(9); err != nil || e.Rank0 != 5 {
			t.Fatal(e, err)
		}
		if e, err := w.Following(); !errors.Is(err, model.ErrCorrupt) {
			t.Errorf("%s: %+v, %v", s, e, err)
		}
	}
}

// indexSections has a section of each form.
var (
	indexKeys     = &Section{Number: 0, Kind: 0, Name: "keys", Form: KeyEntries}
	indexLabels   = &Section{Number: 1, Kind: 1, Name: "labels", Form: RankEntries}
	indexPairs    = &Section{Number: 2, Kind: 2, Name: "pairs", Form: PairEntries}
	indexRows     = &Section{Number: 3, Kind: RowKind, Family: 1, Name: "rows", Form: RowEntries}
	indexUnits    = &Section{Number: 4, Kind: RowKind, Family: 3, Name: "units", Form: UnitEntries}
	indexMasks    = &Section{Number: 5, Kind: 4, Name: "masks", Form: RankEntries}
	indexSections = Sections{indexKeys, indexLabels, indexPairs, indexRows, indexUnits, indexMasks}
)
