package write

import (
	"context"
	"errors"
	"math"
	"net/http"

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
// the batch. After an error the batch still has all rows that the result does not count.
func (p *Path) pushAllowed(ctx context.Context, b *model.Batch, s *scratch, res *Result) error {
	most := math.MaxInt
	if n := copyBytes(b); n > s.copied {
		switch err := reserve(b, n-s.copied); {
		case isTooLarge(err):
			most = portionBytes // batch and copy can never fit together
		case err != nil:
			return err
		default:
			s.copied = n
		}
	}
	var at place
	for at.series < len(b.Keys) {
		next, err := p.pushPortion(ctx, b, s, at, most, res)
		if err != nil {
			if at != (place{}) {
				b.KeepRows(at.keep(s))
			}
			return err
		}
		at = next
	}
	b.KeepRows(at.keep(s))
	return nil
}

// portionBytes is how much of a batch is copied at a time where there is no memory for a copy of all of it.
// That little is reserved nowhere.
const portionBytes = 256 << 10

// isTooLarge reports whether memory is refused that can never be free.
func isTooLarge(err error) bool {
	var refused *Refused
	return errors.As(err, &refused) && refused.Status == http.StatusRequestEntityTooLarge
}

// place is a place in a batch: all rows of the series before it, and those before rows, by family, of the
// series itself. label is the number of its labels, if it has some.
type place struct {
	series, label int
	rows          [3]uint32
}

// keep returns which rows are kept once the allowed ones before the place are durable.
func (at place) keep(s *scratch) func(f model.Family, series, row int) bool {
	return func(f model.Family, series, row int) bool {
		return s.postponed[series] || series > at.series || series == at.series && row >= int(at.rows[f-model.Samples])
	}
}

// pushPortion makes allowed rows from a place on durable, until they take most bytes. It returns the place
// after them.
func (p *Path) pushPortion(ctx context.Context, b *model.Batch, s *scratch, at place, most int, res *Result) (place, error) {
	now := p.Batch(b.Tenant, b.Signal)
	defer p.Recycle(now)
	if most == math.MaxInt {
		now.SizeAs(b)
	}
	now.Source = b.Source // for watchers
	for at.series < len(b.Keys) && copyBytes(now) < most {
		i := at.series
		hasLabels := at.label < b.Labels.Len() && b.Labels.Series[at.label] == uint32(i)
		ended := true
		if !s.postponed[i] {
			ended = at.copyRows(now, b, most)
			if hasLabels {
				now.Labels.Append(uint32(len(now.Keys)), b.Labels.At(at.label))
			}
			now.EndSeries(b.Keys[i])
			now.Origins = append(now.Origins, origin(b, i))
		}
		if !ended {
			break
		}
		if hasLabels {
			at.label++
		}
		at.series, at.rows = i+1, [3]uint32{}
	}
	return at, p.append(ctx, now, res)
}

// copyRows copies rows of the series at a place until the copy takes most bytes, and moves the place. It
// reports whether these were the last rows of the series.
func (at *place) copyRows(to, b *model.Batch, most int) (ended bool) {
	for n, f := range model.Families() {
		from := b.Columns(f)
		end := from.End(at.series)
		for j := max(from.Begin(at.series), at.rows[n]); j < end; {
			if copyBytes(to) >= most {
				return false
			}
			stop := end
			if most < math.MaxInt {
				stop = j + 1
			}
			to.Columns(f).AppendRows(&from.Rows, int(j), int(stop))
			j = stop
			at.rows[n] = stop
		}
	}
	return true
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
