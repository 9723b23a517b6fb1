package part

import (
	"context"
	"iter"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/samples"
	"github.com/shaledb/shale/internal/store/part/series"
	"github.com/shaledb/shale/internal/store/part/text"
)

// Stream walks series in the order of (tenant, key).
type Stream interface {
	// Next returns the next series, which is valid until the next call, or nil at the end. After an error it
	// returns the same error.
	Next(ctx context.Context) (*Series, error)
}

// Series is one series of a [Stream]. A merge reads it at every series of every input, so it has fields
// rather than methods: see BenchmarkMerge.
type Series struct {
	Tenant string
	Key    model.Key
	// Labels is nil where there are none.
	Labels model.Labels
	// Rows are in the order of the format; maybe none.
	Rows *model.SeriesRows
	// Text is nil if the series has none.
	Text text.Series
}

// All walks the rest of a stream. An error comes last, with no series.
func All(ctx context.Context, s Stream) iter.Seq2[*Series, error] {
	return func(yield func(*Series, error) bool) {
		for {
			next, err := s.Next(ctx)
			if next == nil && err == nil || !yield(next, err) || err != nil {
				return
			}
		}
	}
}

// Stream walks the whole part, each page once.
func (r *Reader) Stream() Stream { return newStream(r.Reader) }

func newStream(r *file.Reader) *partStream { return &partStream{r: r, tenant: -1} }

type partStream struct {
	r      *file.Reader
	tenant int
	keys   *series.KeyCursor
	labels *series.LabelCursor
	// samples and exemplars are nil where the part has none.
	samples, exemplars *samples.Cursor
	text               *text.Stream
	labelled           bool
	rows               model.SeriesRows
	series             Series
	err                error
}

func (s *partStream) Next(ctx context.Context) (*Series, error) {
	if s.err == nil && s.next(ctx) {
		return &s.series, nil
	}
	return nil, s.err
}

// next moves to the next series. It returns false at the end or on an error.
func (s *partStream) next(ctx context.Context) bool {
	if s.keys == nil {
		s.labelled, s.series.Rows = s.r.Meta().Labels, &s.rows
		s.samples, s.exemplars = samples.NewStreamCursor(ctx, s.r, model.Samples), samples.NewStreamCursor(ctx, s.r, model.Exemplars)
		s.text = text.NewStream(s.r)
		s.keys, s.labels = series.NewKeyStream(s.r), series.NewLabelStream(s.r)
	}
	s.keys.Pages.Ctx, s.labels.Pages.Ctx = ctx, ctx
	for s.tenant < 0 || !s.keys.Next() {
		if s.err = s.keys.Err(); s.err != nil {
			return false
		}
		tenants := s.r.Meta().Tenants
		if s.tenant++; s.tenant >= len(tenants) {
			s.tenant = len(tenants)
			return false
		}
		s.keys.EnterTenant(&tenants[s.tenant])
		s.series.Tenant = tenants[s.tenant].Name
	}
	s.series.Key = s.keys.Key()
	rank := s.keys.Rank()
	if s.labelled {
		if s.err = s.labels.Seek(rank); s.err != nil {
			return false
		}
		s.series.Labels = s.labels.Labels()
	}
	s.rows.Reset()
	if s.samples != nil {
		s.err = s.samples.AppendNext(ctx, rank, &s.rows.Samples)
	}
	if s.exemplars != nil && s.err == nil {
		s.err = s.exemplars.AppendNext(ctx, rank, &s.rows.Exemplars)
	}
	if s.text != nil && s.err == nil {
		s.err = s.text.Seek(ctx, rank)
		s.series.Text = nil
		if _, n := s.text.Extent(); n > 0 {
			s.series.Text = s.text
		}
	}
	return s.err == nil
}
