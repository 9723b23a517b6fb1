package part

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/samples"
	"github.com/shaledb/shale/internal/store/part/series"
	"github.com/shaledb/shale/internal/store/part/text"
)

// Stream walks series in the order of (tenant, key). What it returns is valid until Next.
type Stream interface {
	// Next moves to the next series. It returns false at the end or on an error.
	Next(ctx context.Context) bool
	Tenant() string
	Key() model.Key
	// Labels returns nil where there are none.
	Labels() model.Labels
	// Rows returns the rows of the series, in the order of the format; maybe none.
	Rows() *model.SeriesRows
	// Text returns the text of the series, or nil if it has none.
	Text() text.Series
	Err() error
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
	rows               model.SeriesRows
	begun              bool
	err                error
}

func (s *partStream) Next(ctx context.Context) bool {
	if s.err != nil {
		return false
	}
	if !s.begun {
		s.begun = true
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
	}
	rank := s.keys.Rank()
	if s.r.Meta().Labels {
		if s.err = s.labels.Seek(rank); s.err != nil {
			return false
		}
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
	}
	return s.err == nil
}

func (s *partStream) Tenant() string { return s.r.Meta().Tenants[s.tenant].Name }

func (s *partStream) Key() model.Key { return s.keys.Key() }

func (s *partStream) Labels() model.Labels {
	if !s.r.Meta().Labels {
		return nil
	}
	return s.labels.Labels()
}

func (s *partStream) Rows() *model.SeriesRows { return &s.rows }

func (s *partStream) Text() text.Series {
	if s.text == nil {
		return nil
	}
	if _, n := s.text.Extent(); n == 0 {
		return nil
	}
	return s.text
}

func (s *partStream) Err() error { return s.err }
