package worldtest

import "github.com/shaledb/shale/internal/model"

// Series is a series with rows of any families, in the order of arrival.
type Series struct {
	Labels model.Labels
	Rows   []Row
}

// Batch is one push.
type Batch struct {
	Tenant string
	Signal model.Signal
	Series []Series
}

// BuildLabels gives the write path the labels of series i.
func (b *Batch) BuildLabels(i int, to *model.LabelsBuilder) {
	for n, v, rest, ok := b.Series[i].Labels.Next(); ok; n, v, rest, ok = rest.Next() {
		to.Add(n, v)
	}
}

// AppendTo appends the rows to a batch of the write path, with b as the source of its labels.
func (b *Batch) AppendTo(to *model.Batch, seed model.KeySeed) {
	to.Source = b
	for i := range b.Series {
		for _, r := range b.Series[i].Rows {
			r.AppendTo(&to.Columns(r.Family()).Rows)
		}
		to.EndSeries(b.Series[i].Labels.Key(seed, b.Signal))
	}
}

// Pushes describe random batches.
type Pushes struct {
	Tenants []string
	Labels  []model.Labels
	// Series is the most series of a batch, and Rows the most samples or lines of a series.
	Series, Rows int
	// Time draws the time of a row.
	Time func() int64
}

// Batch returns a random batch. Series may come more than once, and without rows.
func (p *Pushes) Batch(r Random, signal model.Signal) *Batch {
	b := &Batch{Tenant: p.Tenants[r.IntN(len(p.Tenants))], Signal: signal}
	for range 1 + r.IntN(p.Series) {
		s := Series{Labels: p.Labels[r.IntN(len(p.Labels))]}
		for range r.IntN(p.Rows + 1) {
			if signal == model.Logs {
				s.Rows = append(s.Rows, Line(r, p.Time()))
			} else {
				s.Rows = append(s.Rows, Sample(r, p.Time()))
			}
		}
		for range max(0, r.IntN(5)-2) {
			if signal == model.Metrics {
				s.Rows = append(s.Rows, Exemplar(r, p.Time()))
			}
		}
		b.Series = append(b.Series, s)
	}
	return b
}

// Sample returns a float, a histogram, or a stale marker of either, with or without a start.
func Sample(r Random, at int64) Row {
	var x Row
	switch r.IntN(8) {
	case 0, 1:
		x = HistogramRow(at, Histogram(r))
	case 2:
		h := &model.Histogram{Float: r.IntN(2) == 0}
		if r.IntN(2) == 0 {
			h = Histogram(r) // a stale marker may have buckets, too
		}
		h.Sum = model.StaleNaN
		x = HistogramRow(at, h)
	case 3, 4:
		x = Float(at, Specials[r.IntN(len(Specials))])
	case 5:
		x = Float(at, Value(r, r.IntN(100)))
	default:
		x = Float(at, Courses[0].Begin(r)(0)) // equal values
	}
	switch r.IntN(8) {
	case 0, 1:
		x.Start = at - r.Int64N(2)*1e9 - r.Int64N(1000)
	case 2:
		x.Start = 5
	}
	return x
}
