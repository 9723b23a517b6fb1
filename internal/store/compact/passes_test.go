package compact

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/part"
)

// TestPasses has the outputs of each cell be in one pass, and no pass of several cells be above the budget.
func TestPasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		costs := rapid.SliceOfN(rapid.Int64Range(1, 100), 1, 40).Draw(t, "costs")
		budget := rapid.Int64Range(1, 300).Draw(t, "budget")
		var all []*cellOutput
		var cells []int64 // the cost of each
		for i, cost := range costs {
			begins := i == 0 || rapid.IntRange(0, 3).Draw(t, "begins") > 0
			if all = append(all, &cellOutput{begins: begins}); begins {
				cells = append(cells, 0)
			}
			cells[len(cells)-1] += cost
		}
		var seen []*cellOutput
		done, last := 0, int64(0) // cells, and the cost of the pass before
		for _, p := range passes(all, costs, budget) {
			sum, n := int64(0), 0
			for i, out := range p {
				if sum += costs[len(seen)+i]; out.begins {
					n++
				}
			}
			if n == 0 || !p[0].begins || sum > budget && n > 1 {
				t.Fatalf("a pass of %d cells that cost %d", n, sum)
			}
			if len(seen) > 0 && last+cells[done] <= budget {
				t.Fatalf("the pass before cell %d costs %d, there was room", done, last)
			}
			seen, done, last = append(seen, p...), done+n, sum
		}
		if !slices.Equal(seen, all) {
			t.Fatalf("%d of %d outputs", len(seen), len(all))
		}
	})
}

// TestCellCost counts the two greatest tenants of each input, as far as they have rows of the cell.
func TestCellCost(t *testing.T) {
	r := model.TimeRange{Min: 10, Max: 19}
	in, out := model.TimeRange{Min: 0, Max: 10}, model.TimeRange{Min: 20, Max: 30}
	var c cellCost
	c.count(r, []part.Tenant{{Series: 5, Range: in}, {Series: 1000, Range: out}, {Series: 7, Range: in}, {Series: 6, Range: in}})
	c.count(r, []part.Tenant{{Series: 100, Range: in}})
	if want := (cellCost{series: 113, tenants: 4}); c != want {
		t.Errorf("%+v, should be %+v", c, want)
	}
	if got, want := c.bytes(3), int64(cellBytes+113*cellSeriesBytes+3*cellTenantBytes); got != want {
		t.Errorf("%d bytes, should be %d", got, want)
	}
}

// TestPassesMakeTheSame merges the same blocks within different budgets: the number of passes differs, and
// the blocks are the same, byte for byte.
func TestPassesMakeTheSame(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.now = dayZero + 9*int64(day)
	for n := range int64(4) {
		s := w.shipment()
		for _, tenant := range []string{"a", "b", "c"} {
			for i := range 5 {
				for d := n; d < n+4; d++ {
					at := dayZero + d*int64(day) + int64(i)*int64(time.Hour)
					s.addFloat(tenant, labelsOf(i), at, math.Float64bits(float64(n)))
					s.addFloat(tenant, labelsOf(i), at+n+1, math.Float64bits(float64(d)))
					// The first and the last instant of a day.
					s.addFloat(tenant, labelsOf(i), dayZero+d*int64(day), model.StaleNaN)
					s.addFloat(tenant, labelsOf(i), lastOf(dayZero+d*int64(day)), uint64(n))
					s.addExemplar(tenant, labelsOf(i), at, fmt.Sprint(n))
				}
			}
		}
		s.ship(t)
	}
	var first [][]byte
	for budget, want := range map[int64]int{64 << 20: 1, 5 << 19: 4, minBytes: 7} {
		comp := w.compactor(t, w.open(t), func(o *Options) { o.MemoryBytes = budget; o.maxSeries = 4; o.BigTenantShare = 1e-9 })
		live := comp.o.Catalog.(*catalog.Catalog).Live()
		sortByOrder(live)
		m := comp.newMerge(ctx, &job{inputs: live, cells: dayCells(rangeOf(live), w.now, w.now)}, nil)
		costs, err := m.weigh(minBytes)
		if err != nil {
			t.Fatal(err)
		}
		days := 0
		for _, p := range passes(m.all, costs, budget) {
			if rangeOfCells(p).Overlaps(rangeOf(live)) {
				days++
			}
		}
		if days != want {
			t.Errorf("%d bytes: %d passes with rows, should be %d", budget, days, want)
		}
		m = comp.newMerge(ctx, m.job, nil)
		if err := m.merge(); err != nil {
			t.Fatal(err)
		}
		var made [][]byte
		for _, b := range m.blocks {
			data, err := w.bucket.Get(ctx, catalog.ObjectName(b.ID))
			if err != nil {
				t.Fatal(err)
			}
			made = append(made, data)
		}
		for _, done := range m.uploads {
			done()
		}
		slices.SortFunc(made, bytes.Compare)
		if first == nil {
			first = made
		}
		if !slices.EqualFunc(first, made, bytes.Equal) || len(made) != 42 {
			t.Errorf("%d bytes: %d blocks, and %d were made first", budget, len(made), len(first))
		}
		if len(m.open) != 0 {
			t.Errorf("%d files are open", len(m.open))
		}
	}
}

// TestCellsMustCover refuses a merge that has no cell for some rows, and blocks with rows that they do not
// announce: no pass would take them.
func TestCellsMustCover(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.now = dayZero
	w.shipMany(t, dayZero-1, map[string]int{"a": 1})
	comp := w.compactor(t, w.c, nil)
	if _, err := comp.run(ctx, &job{inputs: w.c.Live(), cells: oneDay(dayZero)}, nil); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("got %v", err)
	}
	w.check(t, w.c)
	var rows model.SeriesRows
	rows.Samples.Append(5, 0, 0)
	rows.Samples.Append(9, 0, 0)
	for r, want := range map[model.TimeRange]error{{Min: 5, Max: 9}: nil, {Min: 6, Max: 9}: model.ErrCorrupt, {Min: 5, Max: 8}: model.ErrCorrupt} {
		text := part.TextOfRows(&model.TextRows{Times: []int64{5, 9}, Ends: []uint32{0, 0}})
		for _, err := range []error{checkTimes(r, &rows, nil), checkTimes(r, &model.SeriesRows{}, text)} {
			if !errors.Is(err, want) {
				t.Errorf("%v: %v", r, err)
			}
		}
	}
}

// TestPeak merges late blocks of 50,000 series that span 20 days within little memory. With all days open at
// one time it takes about a hundred megabytes.
func TestPeak(t *testing.T) {
	if testing.Short() || underRace {
		t.Skip("it writes two million rows, and the race detector has memory of its own")
	}
	const series, days, budget, bound = 50_000, 20, 4 << 20, 64 << 20
	d := newOnDisk(t)
	all := inOrder(model.Metrics, wideSeries(series))
	var r model.SeriesRows
	for n := range 2 {
		d.ship(t, n, model.Metrics, all, func(pw *part.Writer, i int) error {
			r.Reset()
			for at := range int64(days) {
				r.Samples.Append(dayZero+at*int64(day)+int64(n)*int64(time.Hour), math.Float64bits(float64(i)), 0)
			}
			return pw.Rows(&r)
		})
	}
	_, made := d.mergeDays(t, days, budget, bound)
	total := 0
	for _, b := range made {
		if _, ok := inOneDay(b.Range); !ok || b.Series != series {
			t.Errorf("block of %d series, times %v", b.Series, b.Range)
		}
		total += int(b.Samples)
	}
	if len(made) != days || total != 2*series*days {
		t.Errorf("%d blocks of %d rows", len(made), total)
	}
}

// wideSeries are series that have two labels each that no other has.
func wideSeries(n int) (all []model.Labels) {
	for i := range n {
		h := uint64(i+1) * 0x9e3779b97f4a7c15
		all = append(all, model.LabelsOf("__name__", fmt.Sprint("metric_", i%100), "cluster", "one", "job", "node", "namespace", fmt.Sprint(i%50),
			"pod", fmt.Sprintf("service-%08x-%05d", h>>32, i), "uid", fmt.Sprintf("%016x-%016x", h, h*h)))
	}
	return all
}
