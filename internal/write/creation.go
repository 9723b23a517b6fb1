package write

import (
	"context"

	"github.com/shaledb/shale/internal/model"
)

// Creator is a [Head] that bounds how fast series are created. Series that are known are never held back.
type Creator interface {
	// Create asks for the creation of n series of a tenant that carry their labels and returns how many of them may be
	// created now. If that is fewer than n, the error says why; it is of class transient.
	Create(tenant string, n int) (allowed int, err error)
	// Await waits a moment for the reason to pass that Create gave, and reports whether it is worth asking again.
	Await(ctx context.Context, reason error) bool
}

// create asks whether the series of the batch that carry their labels may be created. If not all of them may, it marks
// those that may not, in s.later, and returns why.
func (p *Path) create(b *model.Batch, s *scratch) error {
	n := b.Labels.Len()
	if n == 0 || p.creator == nil {
		return nil
	}
	allowed, err := p.creator.Create(b.Tenant, n)
	if err == nil {
		return nil
	}
	s.later = append(s.later[:0], make([]bool, len(b.Keys))...)
	for _, series := range b.Labels.Series[min(max(allowed, 0), n):] {
		s.later[series] = true
	}
	return err
}

// pushSome makes those rows of a batch durable whose series are not marked in s.later, and takes them out of it. After an
// error the batch is as it was.
func (p *Path) pushSome(ctx context.Context, b *model.Batch, s *scratch, res *Result) error {
	now := p.Batch(b.Tenant, b.Signal)
	defer p.Recycle(now)
	now.Source = b.Source // for watchers
	label := 0
	for i, k := range b.Keys {
		hasLabels := label < b.Labels.Len() && b.Labels.Series[label] == uint32(i)
		if !s.later[i] {
			for _, f := range model.Families() {
				from := b.Columns(f)
				now.Columns(f).AppendRows(&from.Rows, int(from.Begin(i)), int(from.End(i)))
			}
			if hasLabels {
				now.Labels.Append(uint32(len(now.Keys)), b.Labels.At(label))
			}
			now.EndSeries(k)
			now.Origins = append(now.Origins, origin(b, i))
		}
		if hasLabels {
			label++
		}
	}
	if err := p.append(ctx, now, res); err != nil {
		return err
	}
	b.KeepRows(func(_ model.Family, series, _ int) bool { return s.later[series] })
	return nil
}
