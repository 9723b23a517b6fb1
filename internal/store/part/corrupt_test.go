package part

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/parttest"
	"github.com/shaledb/shale/internal/store/part/series"
)

// smallPart is a part with some of everything, in few bytes.
func smallPart(t testing.TB, level Compression) []byte {
	var all []oneSeries
	rnd := rand.New(rand.NewPCG(4, 2))
	for _, tenant := range []string{"", "acme"} {
		for i := range 12 { // courses 6*i: at 9, random values in 9 rows
			l := model.LabelsOf("__name__", "m", "i", string(rune('a'+i)), "even", []string{"yes", ""}[i%2])
			one := oneSeries{tenant: tenant, key: l.Key(testSeed, model.Metrics), labels: l, rows: worldtest.Floats(rnd, []int{0, 1, 1, 3, 9}[i%5], 6*i%len(worldtest.Courses), i%5)}
			if tenant == "acme" && i%3 == 0 {
				worldtest.MixHistograms(rnd, &one.rows)
				one.exemplars = worldtest.Exemplars(rnd, 2)
			}
			if i%4 == 1 {
				one.text = randomText(rnd, 1700000000e9+rnd.Int64N(3e9), 2*i, tenant == "acme")
			}
			all = append(all, one)
		}
	}
	o := testOptions(true, level)
	o.Windows = file.Windows{Start: 1700000000e9, Length: 1e9, Count: 7}
	o.Sources = []file.Source{{Node: "n1", Epoch: 1, SeqLo: 3, SeqHi: 9}, {Node: "n2", Epoch: 2, SeqLo: 4, SeqHi: 4}}
	_, b := writePart(t, sortSeries(all), o)
	return b
}

// TestEveryBitFlipIsFound changes each bit of a part in turn.
func TestEveryBitFlipIsFound(t *testing.T) {
	racetest.SkipSerial(t)
	_, treed := treedPart(t)
	for _, whole := range [][]byte{smallPart(t, Fast), smallPart(t, Dense), treed} {
		b := bytes.Clone(whole)
		for at := range whole {
			for bit := range 8 {
				b[at] ^= 1 << bit
				if err := openAndCheck(b); !errors.Is(err, model.ErrCorrupt) && !(errors.Is(err, model.ErrInvalid) && strings.Contains(err.Error(), "version")) {
					t.Fatalf("bit %d of byte %d of %d: %v", bit, at, len(b), err)
				}
				b[at] = whole[at]
			}
		}
		parttest.Must(t, openAndCheck(b))
	}
}

func openAndCheck(b []byte) error {
	r, err := Open(context.Background(), bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return err
	}
	return Check(context.Background(), r)
}

func TestCutShort(t *testing.T) {
	whole := smallPart(t, Fast)
	for n := range len(whole) {
		if err := openAndCheck(whole[:n]); !errors.Is(err, model.ErrCorrupt) {
			t.Fatalf("%d of %d bytes: %v", n, len(whole), err)
		}
		if err := openAndCheck(whole[n+1:]); !errors.Is(err, model.ErrCorrupt) {
			t.Fatalf("without the first %d of %d bytes: %v", n+1, len(whole), err)
		}
	}
}

// TestForgedPages puts random bytes, under valid checksums, where pages are, since a checksum proves only
// that the bytes are those that were written.
func TestForgedPages(t *testing.T) {
	racetest.SkipSerial(t)
	whole := smallPart(t, Fast)
	r, err := Open(context.Background(), bytes.NewReader(whole), int64(len(whole)))
	parttest.Must(t, err)
	rnd := rand.New(rand.NewPCG(7, 7))
	for range 20000 {
		f := &forger{Pages: r.Pages(), rnd: rnd, left: rnd.IntN(12)}
		forged := r.Bind(f)
		if err := Check(context.Background(), forged); err != nil && !errors.Is(err, model.ErrCorrupt) {
			t.Fatalf("%v", err)
		}
		_, err := forged.Select(context.Background(), "acme", []model.Matcher{{Name: "i", Op: model.MatchRegexp, Match: func(string) bool { return true }}, {Name: "even", Op: model.MatchEqual, Value: "yes"}})
		if err != nil && !errors.Is(err, model.ErrCorrupt) {
			t.Fatalf("%v", err)
		}
		if _, err := forged.Active(context.Background(), file.Ranks{0, 13}, model.TimeRange{Min: 1700000003e9, Max: 1700000003e9}); err != nil && !errors.Is(err, model.ErrCorrupt) {
			t.Fatalf("%v", err)
		}
	}
}

// TestForgedTenants: a page of keys that is not of one tenant, as the footer counts their series, is refused.
// A search for a key ends, and no tenant gets the ranks of another.
func TestForgedTenants(t *testing.T) {
	whole := smallPart(t, Fast)
	r, err := Open(context.Background(), bytes.NewReader(whole), int64(len(whole)))
	parttest.Must(t, err)
	tenants := r.Meta().Tenants
	series := tenants[0].Series
	for _, forged := range []uint32{1, series / 2, series - 1} {
		tenants[0].Series = forged
		for _, k := range []model.Key{{}, {Hi: 1 << 63}, {Hi: math.MaxUint64, Lo: math.MaxUint64}} {
			c := r.Keys(context.Background(), tenants[0].Name)
			if c.Find(k) || !errors.Is(c.Err(), model.ErrCorrupt) {
				t.Errorf("%d of %d series, key %v: %v", forged, series, k, c.Err())
			}
		}
	}
}

// TestForgedIndexOfKeys: an index page whose first entry claims ranks of the page before does not make
// the search for a key loop.
func TestForgedIndexOfKeys(t *testing.T) {
	var all []oneSeries
	for i := range 3000 {
		all = append(all, oneSeries{tenant: "t", key: model.Key{Hi: uint64(i) << 40, Lo: uint64(i)}, rows: model.Rows{Times: []int64{1}, Values: []uint64{1}}})
	}
	r, _ := writeSized(t, all, testOptions(false, Fast), tiny)
	pages := r.Index(series.KeySection)
	if len(pages) < 3 {
		t.Fatalf("%d index pages of keys", len(pages))
	}
	for back := uint32(1); back < 40; back++ {
		c := r.Bind(&indexForger{Pages: r.Pages(), at: pages[1].Addr, back: back}).Keys(context.Background(), "t")
		for i := range all {
			if !c.Find(all[i].key) && c.Err() == nil {
				t.Fatalf("key %d is not found, and nothing is said", i)
			}
		}
		if c.Err() != nil && !errors.Is(c.Err(), model.ErrCorrupt) {
			t.Error(c.Err())
		}
	}
}

// indexForger has the first entry of an index page of keys begin some ranks before.
type indexForger struct {
	file.Pages
	at   file.Addr
	back uint32
}

func (f *indexForger) Page(ctx context.Context, a file.Addr) ([]byte, error) {
	b, err := f.Pages.Page(ctx, a)
	if err != nil || a != f.at {
		return b, err
	}
	entries, err := file.ReadIndexPage(nil, b, series.KeySection, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	x := file.IndexWriter{Section: series.KeySection}
	for i := range entries {
		if i == 0 {
			entries[0].Rank0, entries[0].Ranks = entries[0].Rank0-f.back, entries[0].Ranks+f.back
		}
		x.Add(entries[i])
	}
	return x.Payload(nil), nil
}

// forger spoils one page after some good ones.
type forger struct {
	file.Pages
	rnd  *rand.Rand
	left int
}

func (f *forger) Page(ctx context.Context, a file.Addr) ([]byte, error) {
	b, err := f.Pages.Page(ctx, a)
	if f.left--; f.left == -1 && err == nil {
		b = bytes.Clone(b)
		for range 1 + f.rnd.IntN(3) {
			b[f.rnd.IntN(len(b))] = byte(f.rnd.Uint32())
		}
		if f.rnd.IntN(4) == 0 {
			b = b[:f.rnd.IntN(len(b))]
		}
	}
	return b, err
}

type failingReader struct{ err error }

func (f failingReader) ReadAt([]byte, int64) (int, error) { return 0, f.err }

func TestReadErrorsHaveAClass(t *testing.T) {
	if _, err := Open(context.Background(), failingReader{io.ErrUnexpectedEOF}, 1000); !errors.Is(err, model.ErrTransient) {
		t.Fatalf("%v", err)
	}
	if _, err := Open(context.Background(), bytes.NewReader(make([]byte, 100)), 1000); !errors.Is(err, model.ErrCorrupt) {
		t.Fatalf("%v", err)
	}
	if _, err := FilePages(bytes.NewReader(nil), nil).Page(context.Background(), file.Addr{Len: 1 << 31}); !errors.Is(err, model.ErrCorrupt) {
		t.Fatalf("%v", err)
	}
}

func TestWriterRefuses(t *testing.T) {
	l := model.LabelsOf("a", "b")
	k := model.Key{Hi: 5}
	for name, do := range map[string]func(w *Writer) error{
		"a key twice":     func(w *Writer) error { return errors.Join(w.Series("t", k, l), w.Series("t", k, l)) },
		"a lesser key":    func(w *Writer) error { return errors.Join(w.Series("t", k, l), w.Series("t", model.Key{Hi: 4}, l)) },
		"a lesser tenant": func(w *Writer) error { return errors.Join(w.Series("t", k, l), w.Series("s", k, l)) },
		"no labels":       func(w *Writer) error { return w.Series("t", k, nil) },
		"wrong labels":    func(w *Writer) error { return w.Series("t", k, model.Labels("nonsense")) },
		"huge labels": func(w *Writer) error {
			return w.Series("t", k, model.LabelsOf("a", strings.Repeat("b", model.MaxLabelBytes)))
		},
		"rows of no series": func(w *Writer) error {
			return w.Rows(&model.SeriesRows{Samples: model.Rows{Times: []int64{1}, Values: []uint64{1}}})
		},
		"disorder": func(w *Writer) error {
			return errors.Join(w.Series("t", k, l), w.Rows(&model.SeriesRows{Samples: model.Rows{Times: []int64{1, 1}, Values: []uint64{1, 2}}}))
		},
		"ragged columns": func(w *Writer) error {
			return errors.Join(w.Series("t", k, l), w.Rows(&model.SeriesRows{Samples: model.Rows{Times: []int64{1}}}))
		},
		"rows twice": func(w *Writer) error {
			r := &model.Rows{Times: []int64{1}, Values: []uint64{1}}
			return errors.Join(w.Series("t", k, l), w.Rows(&model.SeriesRows{Samples: *r}), w.Rows(&model.SeriesRows{Samples: *r}))
		},
		"series after Finish": func(w *Writer) error { _, _, err := w.Finish(); return errors.Join(err, w.Series("t", k, l)) },
	} {
		w := NewWriter(io.Discard, testOptions(true, Fast))
		if err := do(w); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		if _, _, err := w.Finish(); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%s: then Finish says %v", name, err)
		}
	}
}
