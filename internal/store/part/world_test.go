package part

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/text"
)

// oneSeries is a series as a test sees it.
type oneSeries struct {
	tenant string
	key    model.Key
	labels model.Labels
	rows   model.Rows

	exemplars model.Rows
	text      []textRow
}

const testSeed model.KeySeed = 0x5eed

// sortSeries brings series into the order of a part and drops those whose key is there already.
func sortSeries(all []oneSeries) []oneSeries {
	slices.SortStableFunc(all, func(a, b oneSeries) int {
		if a.tenant != b.tenant {
			return bytes.Compare([]byte(a.tenant), []byte(b.tenant))
		}
		return a.key.Compare(b.key)
	})
	return slices.CompactFunc(all, func(a, b oneSeries) bool { return a.tenant == b.tenant && a.key == b.key })
}

func testOptions(labels bool, level Compression) WriterOptions {
	return WriterOptions{Seed: testSeed, Signal: model.Metrics, Node: "n1", SeqLo: 3, SeqHi: 9, Level: level, Labels: labels, Created: 1700000000e9}
}

// writePart writes series, which must be in order, and opens the result.
func writePart(t testing.TB, all []oneSeries, o WriterOptions) (*Reader, []byte) {
	t.Helper()
	return writeSized(t, all, o, formatSizes)
}

// tiny pages make small worlds cross every border.
var tiny = file.Sizes{PageBytes: 200, IndexBytes: 60, ListBytes: 8, Rows: 100, SeriesRows: 50, TextBytes: 200, SliceBytes: 150, FilterBytes: 400, TextRows: 40, Ties: 20}

// tinyRuns are the same, but index pages have several runs.
var tinyRuns = func() file.Sizes {
	z := tiny
	z.IndexBytes = 600
	return z
}()

func writeSized(t testing.TB, all []oneSeries, o WriterOptions, z file.Sizes) (*Reader, []byte) {
	t.Helper()
	var buf bytes.Buffer
	w := newWriter(&buf, o, z)
	for i := range all {
		l := all[i].labels
		if !o.Labels {
			l = nil
		}
		must(t, w.Series(all[i].tenant, all[i].key, l))
		must(t, w.Rows(&model.SeriesRows{Samples: all[i].rows, Exemplars: all[i].exemplars}))
		must(t, w.Text(context.Background(), []text.Series{text.OfRows(rowsOf(all[i].text))}, anyTime))
	}
	m, size, err := w.Finish()
	must(t, err)
	if int(size) != buf.Len() {
		t.Fatalf("size is %d, %d bytes were written", size, buf.Len())
	}
	r, err := Open(context.Background(), bytes.NewReader(buf.Bytes()), size)
	must(t, err)
	if got := *r.Meta(); got.Series != m.Series || got.Samples != m.Samples || got.Exemplars != m.Exemplars || got.Range != m.Range || !slices.Equal(got.Tenants, m.Tenants) {
		t.Fatalf("meta read %+v\nwritten   %+v", got, m)
	}
	return r, buf.Bytes()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// sameRows compares bit for bit; unknown starts may be missing or zero.
func sameRows(a, b *model.Rows) bool {
	if !slices.Equal(a.Times, b.Times) {
		return false
	}
	for i := range a.Times {
		if a.Start(i) != b.Start(i) || !a.Same(i, b, i) {
			return false
		}
	}
	return true
}

var specials = []uint64{model.StaleNaN, 0, 1 << 63, math.Float64bits(math.Inf(1)), math.Float64bits(math.Inf(-1)), 0x7ff8000000000001,
	0xfff8000000000123, 1, math.Float64bits(math.MaxFloat64), math.Float64bits(1 << 53), math.Float64bits(0.1)}

// randomValue gives doubles of one of seven kinds.
func randomValue(r *rand.Rand, kind int, i int) uint64 {
	switch kind {
	case 0:
		return math.Float64bits(float64(r.IntN(100)))
	case 1:
		return math.Float64bits(float64(i * (1 + r.IntN(3))))
	case 2:
		return math.Float64bits(float64(r.IntN(200000)-100000) / 100)
	case 3:
		return r.Uint64()
	case 4:
		return math.Float64bits(r.NormFloat64())
	case 5:
		return specials[r.IntN(len(specials))]
	case 6:
		if r.IntN(20) == 0 {
			return specials[r.IntN(len(specials))]
		}
		return math.Float64bits(float64(1e6+i*100) / 1000)
	}
	return math.Float64bits(42)
}

const valueKinds = 8

// randomRows gives n rows, normalised, so there may be fewer.
func randomRows(r *rand.Rand, n, kind, clock int) model.Rows {
	var rows model.Rows
	at := []int64{0, 1700000000e9, -5e9, math.MinInt64}[r.IntN(4)]
	starts := r.IntN(4)
	for i := range n {
		switch {
		case i == 0:
		case clock == 0:
			at += 60e9
		case clock == 1:
			at += 15e9 + (r.Int64N(7)-3)*1e6
		case clock == 2:
			at += 1 + r.Int64N(1e12)
		default:
			at = int64(r.Uint64())
		}
		s := int64(0)
		if starts == 0 && i%3 > 0 {
			s = at - 1
		}
		if starts == 1 {
			s = 12345
		}
		rows.Append(at, randomValue(r, kind, i), s)
	}
	rows.Normalize()
	return rows
}

// randomExemplars gives up to n exemplars, normalised.
func randomExemplars(r *rand.Rand, n int) model.Rows {
	var rows model.Rows
	at := 1700000000e9 + r.Int64N(1e9)
	for range n {
		e := model.Exemplar{Value: randomValue(r, r.IntN(valueKinds), r.IntN(9)), Labels: model.LabelsOf("trace_id", strconv.FormatUint(r.Uint64(), 16))}
		switch r.IntN(5) {
		case 0:
			e.Labels = nil
		case 1:
			e.Labels = model.LabelsOf("a", strconv.Itoa(r.IntN(3)), "b", strings.Repeat("b", r.IntN(300)))
		}
		rows.AppendBlob(at, model.KindExemplar, model.AppendExemplar(nil, &e), 0)
		at += r.Int64N(3) * r.Int64N(1e9)
	}
	rows.NormalizeSet()
	return rows
}

// drawWorld draws some series of some tenants. Shapes come from rapid, rows and labels from a seed.
func drawWorld(t *rapid.T) []oneSeries {
	var all []oneSeries
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	tenants := rapid.SampledFrom([]int{1, 1, 2, 5}).Draw(t, "tenants")
	counts := []int{0, 1, 1, 2, 5, 7, 8, 9, 30, 120, 600}
	short := rapid.Bool().Draw(t, "short")
	exemplars := rapid.SampledFrom([]int{0, 0, 1, 4}).Draw(t, "exemplars")
	histograms := rapid.SampledFrom([]int{0, 1, 8}).Draw(t, "histograms")
	for k := range tenants {
		n := rapid.SampledFrom([]int{0, 1, 3, 20, 150, 700}).Draw(t, "series")
		for i := range n {
			pairs := []string{"__name__", []string{"up", "cpu_seconds_total", "m.a.b"}[r.IntN(3)]}
			if r.IntN(2) == 0 {
				pairs = append(pairs, "job", []string{"a", "b", "ab"}[r.IntN(3)])
			}
			if r.IntN(2) == 0 {
				pairs = append(pairs, "id", strconv.Itoa(i))
			}
			if r.IntN(8) == 0 {
				pairs = append(pairs, "z\x00y", []string{"\x00", "é", "x"}[r.IntN(3)])
			}
			if r.IntN(50) == 0 {
				pairs = nil
			}
			l := model.LabelsOf(pairs...)
			if l == nil {
				l = model.Labels{}
			}
			rows := counts[r.IntN(len(counts))]
			if short {
				rows = min(rows, 2)
			}
			one := oneSeries{tenant: "t" + strconv.Itoa(k), key: l.Key(testSeed, model.Metrics), labels: l, rows: randomRows(r, rows, r.IntN(valueKinds), r.IntN(4))}
			if r.IntN(8) < histograms {
				mixIn(r, &one.rows)
			}
			if r.IntN(8) < exemplars {
				one.exemplars = randomExemplars(r, r.IntN(20))
			}
			all = append(all, one)
		}
	}
	return sortSeries(all)
}

// tenantNames are those of the world and one that has nothing.
func tenantNames(all []oneSeries) []string {
	names := []string{"nobody"}
	for i := range all {
		names = append(names, all[i].tenant)
	}
	sort.Strings(names)
	return slices.Compact(names)
}
