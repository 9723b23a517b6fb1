package write

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// Creator is a [Head] that limits how fast series are created. Known series are never held back.
type Creator interface {
	// Create asks to create n series of a tenant and returns how many of them may be created now. If
	// that is fewer than n, the error gives the reason; it is of class transient.
	Create(tenant string, n int) (allowed int, err error)
	// Await waits briefly for the reason that Create returned to pass. It reports whether a retry is
	// worthwhile.
	Await(ctx context.Context, reason error) bool
}

// Groups bounds the series of groups. Known series are never held back.
type Groups interface {
	// Over calls over with the index of each label set of the batch whose series may not be created, and
	// returns the reason; it is of class transient. Without one it never calls over.
	Over(ctx context.Context, b *model.Batch, over func(label int)) error
}

// create asks whether the new series of the batch, those that carry their labels, may be created. If
// some may not, it marks them in s.postponed and returns the reason.
func (p *Path) create(ctx context.Context, b *model.Batch, s *scratch) error {
	n := b.Labels.Len()
	if n == 0 {
		return nil
	}
	s.postponed = s.postponed[:0]
	var full error
	left := n
	if p.o.Groups != nil {
		full = p.o.Groups.Over(ctx, b, func(label int) {
			s.postpone(b, label)
			left--
		})
	}
	if left == 0 || p.creator == nil {
		return full
	}
	allowed, err := p.creator.Create(b.Tenant, left)
	if err == nil {
		return full
	}
	for label, series := range b.Labels.Series {
		if len(s.postponed) > 0 && s.postponed[series] {
			continue
		}
		if allowed--; allowed < 0 {
			s.postpone(b, label)
		}
	}
	return err
}

// postpone marks the series of a label set.
func (s *scratch) postpone(b *model.Batch, label int) {
	if len(s.postponed) == 0 {
		s.postponed = model.Sized(s.postponed, len(b.Keys))[:len(b.Keys)]
		clear(s.postponed)
	}
	s.postponed[b.Labels.Series[label]] = true
}

// pushAllowed makes the rows of the series that are not marked in s.postponed durable and removes them from
// the batch. After an error the batch is unchanged.
func (p *Path) pushAllowed(ctx context.Context, b *model.Batch, s *scratch, res *Result) error {
	if n := copyBytes(b); n > s.copied {
		if err := reserve(b, n-s.copied); err != nil {
			return p.noCopy(err)
		}
		s.copied = n
	}
	now := p.Batch(b.Tenant, b.Signal)
	defer p.Recycle(now)
	now.SizeAs(b)
	now.Source = b.Source // for watchers
	label := 0
	for i, k := range b.Keys {
		hasLabels := label < b.Labels.Len() && b.Labels.Series[label] == uint32(i)
		if !s.postponed[i] {
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
	b.KeepRows(func(_ model.Family, series, _ int) bool { return s.postponed[series] })
	return nil
}

// noCopy refuses a batch for now of which only a part may be stored, since there is no memory for that part.
// It may be stored in whole later, so it is not too large.
func (p *Path) noCopy(err error) error {
	var refused *Refused
	if errors.As(err, &refused) && refused.Status == http.StatusRequestEntityTooLarge {
		later := *refused
		later.Status, later.RetryAfter = http.StatusServiceUnavailable, 5*time.Second
		return &later
	}
	return err
}

// copyBytes returns the memory of a copy of a batch, with the origins of both.
func copyBytes(b *model.Batch) int {
	n := len(b.Keys)*(model.KeyBytes+4+4) + len(b.Labels.Bytes) + b.Labels.Len()*(4+4)
	for _, f := range model.Families() {
		c := b.Columns(f)
		n += 4*len(c.Ends) + (8+8)*c.Len() + 8*len(c.Starts) + len(c.Kinds) + len(c.Bytes)
	}
	return n
}
