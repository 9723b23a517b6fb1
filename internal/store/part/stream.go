package part

import (
	"context"

	"github.com/shaledb/shale/internal/model"
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
	Text() Text
	Err() error
}

// Stream walks the whole part, each page once.
func (r *Reader) Stream() Stream { return newStream(r.fileReader) }

func newStream(r *fileReader) *partStream { return &partStream{r: r, tenant: -1} }

type partStream struct {
	r      *fileReader
	tenant int
	keys   *KeyCursor
	labels *labelCursor
	// samples and exemplars are nil where the part has none.
	samples, exemplars *RowCursor
	text               *textStream
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
		s.samples, s.exemplars = newStreamCursor(ctx, s.r, model.Samples), newStreamCursor(ctx, s.r, model.Exemplars)
		s.text = newTextStream(s.r)
		s.keys, s.labels = newKeyStream(s.r), newLabelStream(s.r)
	}
	s.keys.pages.ctx, s.labels.pages.ctx = ctx, ctx
	for s.tenant < 0 || !s.keys.Next() {
		if s.err = s.keys.Err(); s.err != nil {
			return false
		}
		tenants := s.r.Meta().Tenants
		if s.tenant++; s.tenant >= len(tenants) {
			s.tenant = len(tenants)
			return false
		}
		s.keys.walk(&tenants[s.tenant])
	}
	rank := s.keys.Rank()
	if s.r.Meta().Labels {
		if s.err = s.labels.seek(rank); s.err != nil {
			return false
		}
	}
	s.rows.Reset()
	if s.samples != nil {
		s.err = s.samples.appendNext(ctx, rank, &s.rows.Samples)
	}
	if s.exemplars != nil && s.err == nil {
		s.err = s.exemplars.appendNext(ctx, rank, &s.rows.Exemplars)
	}
	if s.text != nil && s.err == nil {
		s.err = s.text.seek(ctx, rank)
	}
	return s.err == nil
}

func (s *partStream) Tenant() string { return s.r.Meta().Tenants[s.tenant].Name }

func (s *partStream) Key() model.Key { return s.keys.Key() }

func (s *partStream) Labels() model.Labels {
	if !s.r.Meta().Labels {
		return nil
	}
	return s.labels.labels()
}

func (s *partStream) Rows() *model.SeriesRows { return &s.rows }

func (s *partStream) Text() Text {
	if s.text == nil {
		return nil
	}
	if _, n := s.text.Extent(); n == 0 {
		return nil
	}
	return s.text
}

func (s *partStream) Err() error { return s.err }
