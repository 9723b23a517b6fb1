package part

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/parttest"
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
var tiny = file.Sizes{PageBytes: 200, IndexBytes: 60, ListBytes: 8, Rows: 100, SeriesRows: 50, TextBytes: 200, SliceBytes: 150, FilterBytes: 400, GroupBytes: 500, TextRows: 40, Ties: 20, LeastNames: 3}

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
		parttest.Must(t, w.Series(all[i].tenant, all[i].key, l))
		parttest.Must(t, w.Rows(&model.SeriesRows{Samples: all[i].rows, Exemplars: all[i].exemplars}))
		parttest.Must(t, w.Text(context.Background(), []text.Series{text.OfRows(rowsOf(all[i].text))}, model.Always()))
	}
	m, size, err := w.Finish()
	parttest.Must(t, err)
	if int(size) != buf.Len() {
		t.Fatalf("size is %d, %d bytes were written", size, buf.Len())
	}
	r, err := Open(context.Background(), bytes.NewReader(buf.Bytes()), size)
	parttest.Must(t, err)
	if got := *r.Meta(); got.Series != m.Series || got.Samples != m.Samples || got.Exemplars != m.Exemplars || got.Range != m.Range || !slices.Equal(got.Tenants, m.Tenants) {
		t.Fatalf("meta read %+v\nwritten   %+v", got, m)
	}
	return r, buf.Bytes()
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
			one := oneSeries{tenant: "t" + strconv.Itoa(k), key: l.Key(testSeed, model.Metrics), labels: l, rows: worldtest.Floats(r, rows, r.IntN(len(worldtest.Courses)), r.IntN(len(worldtest.Clocks)+1))}
			if r.IntN(8) < histograms {
				worldtest.MixHistograms(r, &one.rows)
			}
			if r.IntN(8) < exemplars {
				one.exemplars = worldtest.Exemplars(r, r.IntN(20))
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
