package part

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/parttest"
	"github.com/shaledb/shale/internal/store/part/samples"
)

func TestLongAndExtremeSeries(t *testing.T) {
	racetest.SkipSerial(t)
	rnd := rand.New(rand.NewPCG(3, 3))
	long := func(course string) (rows model.Rows) {
		at := slices.IndexFunc(worldtest.Courses, func(c worldtest.Course) bool { return c.Name == course })
		next := worldtest.Courses[at].Begin(rnd)
		for i := range 100_000 {
			rows.Append(int64(i)*1e9+rnd.Int64N(1e9), next(i), 0)
		}
		return rows
	}
	ends := model.Rows{Times: []int64{math.MinInt64, -1, 0, 1, math.MaxInt64}, Values: worldtest.Specials[:5]}
	many := model.Rows{Times: []int64{math.MinInt64, math.MinInt64 + 1, -7, 0, 7, 8, 9, 10, math.MaxInt64 - 1, math.MaxInt64}, Values: worldtest.Specials[:10]}
	many.Starts = []int64{math.MinInt64, 0, 1, -1, math.MaxInt64, 5, 6, 7, 8, 9}
	var all []oneSeries
	for i, rows := range []model.Rows{ends, long("digits"), long("random"), many, long("counter"), long("specials"), long("constant"), {}, long("normal")} {
		all = append(all, oneSeries{tenant: "t", key: model.Key{Hi: uint64(i), Lo: uint64(i)}, rows: rows})
	}
	for _, level := range []Compression{Fast, Dense} {
		r, _ := writePart(t, all, testOptions(false, level))
		parttest.Must(t, Check(context.Background(), r))
		checkStream(t, r, all, false)
		if got := r.Meta().Range; got != model.Always() {
			t.Fatalf("range %v", got)
		}
		c := r.RowsAt(context.Background(), model.Samples, model.TimeRange{Min: 50_000e9, Max: 50_010e9})
		for i := len(all) - 1; i >= 0; i-- {
			var rows model.Rows
			parttest.Must(t, c.AppendRows(uint32(i), &rows))
			if n := rows.Len(); n != 0 && (n < 9 || n > 11) {
				t.Fatalf("series %d has %d rows in ten seconds", i, n)
			}
		}
	}
}

func TestManyTenants(t *testing.T) {
	var all []oneSeries
	for i := range 3000 {
		l := model.LabelsOf("__name__", "m", "i", fmt.Sprint(i))
		s := oneSeries{tenant: fmt.Sprintf("tenant-%05d-%016x", i, uint64(i+1)*0x9e3779b97f4a7c15), key: l.Key(testSeed, model.Metrics), labels: l}
		if i%3 > 0 {
			s.rows.Append(int64(i), uint64(i), 0)
		}
		all = append(all, s)
	}
	r, b := writePart(t, all, testOptions(true, Fast))
	if int64(len(b))-r.FooterOff() < file.GuessBytes {
		t.Fatalf("a footer of %d bytes is read at once", int64(len(b))-r.FooterOff())
	}
	parttest.Must(t, Check(context.Background(), r))
	checkStream(t, r, all, true)
	for _, i := range []int{0, 1, 1500, 2999} {
		ms := []model.Matcher{{Name: "i", Op: model.MatchEqual, Value: fmt.Sprint(i)}}
		got, err := r.Select(context.Background(), all[i].tenant, ms)
		parttest.Must(t, err)
		other, err := r.Select(context.Background(), all[(i+1)%3000].tenant, ms)
		parttest.Must(t, err)
		if !slices.Equal(got, file.Ranks{uint32(i)}) || len(other) != 0 {
			t.Fatalf("tenant %d: %v, its neighbour %v", i, got, other)
		}
	}
}

// countingPages serves only pages that are allowed, if any are named.
type countingPages struct {
	file.Pages
	allowed map[file.Addr]bool
}

func (c *countingPages) Page(ctx context.Context, a file.Addr) ([]byte, error) {
	if !c.allowed[a] {
		return nil, errors.New("a page that was not announced")
	}
	return c.Pages.Page(ctx, a)
}

func TestSamplePages(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		all := drawWorld(rt)
		r, _ := writeSized(t, all, testOptions(false, Fast), tiny)
		var ranks file.Ranks
		for i := range all {
			if rapid.IntRange(0, 3).Draw(rt, "take") == 0 {
				ranks = append(ranks, uint32(i))
			}
		}
		rg := rapid.SampledFrom([]model.TimeRange{model.Always(), {Min: 0, Max: 1700000000e9}, {Min: 1700001000e9, Max: 1700002000e9}}).Draw(rt, "range")
		pages, err := r.RankPages(context.Background(), nil, samples.SectionOf(model.Samples), ranks, &rg)
		parttest.Must(t, err)
		allowed := map[file.Addr]bool{}
		for i, a := range pages {
			if i > 0 && a.Off <= pages[i-1].Off {
				t.Fatalf("pages %v", pages)
			}
			allowed[a] = true
		}
		for i := range r.Index(samples.Section) {
			allowed[r.Index(samples.Section)[i].Addr] = true
		}
		c := r.Bind(&countingPages{r.Pages(), allowed}).RowsAt(context.Background(), model.Samples, rg)
		for _, rank := range ranks {
			var got model.Rows
			parttest.Must(t, c.AppendRows(rank, &got))
			n := 0
			for _, at := range all[rank].rows.Times {
				if rg.Contains(at) {
					n++
				}
			}
			if got.Len() != n {
				t.Fatalf("rank %d: %d rows of %d", rank, got.Len(), n)
			}
		}
	})
}

// TestFewCandidates holds Select to looking at the labels of few series rather than at all values of a label.
func TestFewCandidates(t *testing.T) {
	racetest.SkipSerial(t)
	var all []oneSeries
	for i := range 50_000 {
		name := "big"
		if i < 50 {
			name = "small"
		}
		l := model.LabelsOf("__name__", name, "pod", fmt.Sprintf("pod-%d-of-a-deployment-with-a-long-name", i))
		all = append(all, oneSeries{tenant: "t", key: l.Key(testSeed, model.Metrics), labels: l})
	}
	all = sortSeries(all)
	r, b := writePart(t, all, testOptions(true, Fast))
	var count atomic.Int64
	r = r.Bind(FilePages(bytes.NewReader(b), &count))
	ms := []model.Matcher{
		{Name: "__name__", Op: model.MatchEqual, Value: "small"},
		{Name: "pod", Op: model.MatchRegexp, Match: func(v string) bool { return len(v) > 5 && v[4] == '7' }},
		{Name: "pod", Op: model.MatchNotRegexp, Match: func(v string) bool { return v == "" || v[5] != '-' }},
	}
	for i := range ms {
		setMatch(&ms[i])
	}
	checkSelect(t, r, all, "t", ms)
	count.Store(0)
	_, err := r.Select(context.Background(), "t", ms)
	parttest.Must(t, err)
	if n := count.Load(); n > 8 {
		t.Fatalf("%d pages were read", n)
	}
	count.Store(0)
	values := collect(t, func(emit func([]byte) error) error {
		return r.LabelValues(context.Background(), "t", "pod", ms[:1], emit)
	})
	names := collect(t, func(emit func([]byte) error) error { return r.LabelNames(context.Background(), "t", ms[:1], emit) })
	if n := count.Load(); n > 16 || len(values) != 50 || len(names) != 2 {
		t.Fatalf("%d pages were read; %d values, %d names", n, len(values), len(names))
	}
	checkCharged(t, r, ms[:1])
}

// checkCharged: what a label list holds is charged before, and given back whatever the end. A list of series
// leaves its ranks charged.
func checkCharged(t *testing.T, r *Reader, ms []model.Matcher) {
	t.Helper()
	var held, most, limit int64
	r = r.Charged(func(n int64) error {
		if n > 0 && held+n > limit {
			return model.ErrLimit
		}
		held += n
		most = max(most, held)
		return nil
	})
	stop := errors.New("stop")
	for _, c := range []struct {
		limit int64
		emit  func([]byte) error
		want  error
	}{
		{1 << 20, func([]byte) error { return nil }, nil},
		{1 << 20, func([]byte) error { return stop }, stop},
		{2000, func([]byte) error { return nil }, model.ErrLimit},
		{0, func([]byte) error { return nil }, model.ErrLimit},
	} {
		held, most, limit = 0, 0, c.limit
		if err := r.LabelValues(context.Background(), "t", "pod", ms, c.emit); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Fatalf("with %d bytes: %v, should be %v", c.limit, err, c.want)
		}
		if held != 0 || c.limit == 1<<20 && most < 50*40 {
			t.Fatalf("with %d bytes: %d were held, %d still are", c.limit, most, held)
		}
	}
	// The last matchers look at every value of their label.
	every := model.Matcher{Name: "pod", Op: model.MatchRegexp, Value: ".+", Match: func(v string) bool { return v != "" }}
	for _, ms := range [][]model.Matcher{nil, ms, {every}} {
		held, most, limit = 0, 0, 1<<20
		ranks, err := r.Select(context.Background(), "t", ms)
		if err != nil || held != RankBytes*int64(len(ranks)) || most < held || len(ranks) == 0 {
			t.Fatalf("%d ranks leave %d bytes charged, at most there were %d: %v", len(ranks), held, most, err)
		}
		for _, limit = range []int64{0, held / 2, held - 1, most - 1} {
			held = 0
			if ranks, err := r.Select(context.Background(), "t", ms); !errors.Is(err, model.ErrLimit) || ranks != nil || held != 0 {
				t.Fatalf("with %d bytes: %d ranks, %v; %d bytes are still charged", limit, len(ranks), err, held)
			}
		}
		held, most, limit = 0, 0, 1<<20
		s, err := r.SelectRuns(context.Background(), "t", ms)
		if err != nil || held != s.Bytes() || held == 0 || ms == nil && held > 8 {
			t.Fatalf("%d bytes of runs leave %d charged: %v", s.Bytes(), held, err)
		}
		for _, limit = range []int64{0, held - 1, most - 1} {
			held = 0
			if s, err := r.SelectRuns(context.Background(), "t", ms); !errors.Is(err, model.ErrLimit) || s.Bytes() != 0 || held != 0 {
				t.Fatalf("with %d bytes: %d bytes of runs, %v; %d bytes are still charged", limit, s.Bytes(), err, held)
			}
		}
		for _, want := range ranks {
			if got, ok := s.Next(); !ok || got != want {
				t.Fatalf("the next rank is %d, %t, want %d", got, ok, want)
			}
		}
		if got, ok := s.Next(); ok || s.Bytes() != 0 {
			t.Fatalf("rank %d comes after the last one", got)
		}
	}
}

func TestConcurrentReaders(t *testing.T) {
	all := avalanche(50, 10, 20)
	r, _ := writePart(t, all, testOptions(true, Dense))
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(g), 0))
			c, s := r.RowsAt(context.Background(), model.Samples, model.Always()), r.SeriesAt(context.Background(), "t", true)
			for range 300 {
				rank := uint32(rnd.IntN(len(all)))
				var rows model.Rows
				if err := errors.Join(c.AppendRows(rank, &rows), s.Seek(rank)); err != nil || !worldtest.SameRows(&rows, &all[rank].rows) || s.Key() != all[rank].key {
					t.Errorf("rank %d: %v", rank, err)
					return
				}
			}
			ms := []model.Matcher{{Name: "series_id", Op: model.MatchEqual, Value: fmt.Sprint(g)}}
			if got, err := r.Select(context.Background(), "t", ms); err != nil || len(got) != 50 {
				t.Errorf("%d ranks: %v", len(got), err)
			}
		})
	}
	wg.Wait()
}

type failingWriter struct{ left int }

func (w *failingWriter) Write(b []byte) (int, error) {
	if w.left -= len(b); w.left < 0 {
		return 0, errors.New("no space left on device")
	}
	return len(b), nil
}

func TestWriteErrorsAreTransientAndStick(t *testing.T) {
	all := avalanche(10, 10, 200)
	for left := 0; left < 15000; left += 100 {
		w := NewWriter(&failingWriter{left}, testOptions(true, Fast))
		var err error
		for i := range all {
			err = errors.Join(w.Series("t", all[i].key, all[i].labels), w.Rows(&model.SeriesRows{Samples: all[i].rows}))
			if err != nil {
				break
			}
		}
		if _, _, finish := w.Finish(); !errors.Is(finish, model.ErrTransient) || err != nil && !errors.Is(err, model.ErrTransient) {
			t.Fatalf("after %d bytes: %v, %v", left, err, finish)
		}
	}
}

// TestReadAllocations: reading ascending ranks allocates by page, not by series.
func TestReadAllocations(t *testing.T) {
	alloctest.Counts(t)
	all := avalanche(2000, 10, 20)
	r, _ := writePart(t, all, testOptions(true, Fast))
	samples, series := r.RowsAt(context.Background(), model.Samples, model.Always()), r.SeriesAt(context.Background(), "t", true)
	var rows model.Rows
	read := func() {
		for rank := range uint32(len(all)) {
			rows.Reset()
			if samples.AppendRows(rank, &rows) != nil || series.Seek(rank) != nil || rows.Len() != 20 {
				t.Fatal("reading failed")
			}
		}
	}
	alloctest.AtMost(t, 100, 3, read)
}

// TestWriteAllocations: writing more series of the same labels allocates nothing.
func TestWriteAllocations(t *testing.T) {
	alloctest.Counts(t)
	all := avalanche(2000, 10, 20)
	for _, labels := range []bool{false, true} {
		w := NewWriter(discard{}, testOptions(labels, Fast))
		next := 0
		write := func() {
			for range 5000 {
				l := all[next].labels
				if !labels {
					l = nil
				}
				if w.Series("t", all[next].key, l) != nil || w.Rows(&model.SeriesRows{Samples: all[next].rows}) != nil {
					t.Fatal("writing failed")
				}
				next++
			}
		}
		write()
		alloctest.AtMost(t, 30, 1, write)
	}
}
