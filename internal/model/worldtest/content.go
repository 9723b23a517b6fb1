package worldtest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// ID names the rows of one family of a series.
type ID struct {
	Tenant string
	Signal model.Signal
	Labels string
	Family model.Family
}

// Content is what a store must hold, or what a reader found: rows in ascending order of time. Exemplars and
// lines of one time are in the order of arrival.
type Content map[ID][]Row

// Push adds the rows of a batch.
func (c Content) Push(b *Batch) {
	for i := range b.Series {
		for _, r := range b.Series[i].Rows {
			c.Add(ID{Tenant: b.Tenant, Signal: b.Signal, Labels: string(b.Series[i].Labels)}, r)
		}
	}
}

// Add adds a row to a series by the rule of its family, which replaces that of id. Of two samples of one time
// the later one counts, unless only it is a stale marker. An exemplar or a line that is there stays once.
func (c Content) Add(id ID, r Row) {
	id.Family = r.Family()
	c[id] = add(c[id], r)
}

func add(rows []Row, r Row) []Row {
	end, _ := slices.BinarySearchFunc(rows, r.At+1, func(r Row, t int64) int { return cmp.Compare(r.At, t) })
	if end > 0 && rows[end-1].At == r.At && r.Family() == model.Samples {
		if !r.IsStale() || rows[end-1].IsStale() {
			rows[end-1] = r
		}
		return rows
	}
	for i := end - 1; i >= 0 && rows[i].At == r.At; i-- {
		if rows[i] == r {
			return rows
		}
	}
	return slices.Insert(rows, end, r)
}

// AddRows adds rows of samples or exemplars to a series.
func (c Content) AddRows(id ID, rows *model.Rows) {
	for i := range rows.Times {
		c.Add(id, RowAt(rows, i))
	}
}

// Where returns the rows that keep accepts.
func (c Content) Where(keep func(ID, Row) bool) Content {
	out := Content{}
	for id, rows := range c {
		for _, r := range rows {
			if keep(id, r) {
				out[id] = append(out[id], r)
			}
		}
	}
	return out
}

// Diff returns up to three differences between the content and what was read, or "".
func (c Content) Diff(got Content) string {
	var out []string
	for id, want := range c {
		if !slices.Equal(want, got[id]) {
			out = append(out, fmt.Sprintf("%s:\nwant %s\n got %s", id, want, got[id]))
		}
	}
	for id, rows := range got {
		if len(c[id]) == 0 && len(rows) > 0 {
			out = append(out, fmt.Sprintf("%s: should not be there: %s", id, rows))
		}
	}
	slices.Sort(out)
	return strings.Join(out[:min(len(out), 3)], "\n")
}

// String shows the series and the family.
func (id ID) String() string {
	return fmt.Sprintf("%s of %s %q %s", map[model.Family]string{model.Samples: "samples", model.Exemplars: "exemplars", model.Text: "lines"}[id.Family],
		id.Signal, id.Tenant, model.Labels(id.Labels))
}
