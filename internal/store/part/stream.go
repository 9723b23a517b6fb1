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
func (r *Reader) Stream() Stream { return &partStream{r: r, tenant: -1} }

type partStream struct {
	r      *Reader
	tenant int
	keys   KeyCursor
	labels labelCursor
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
		s.samples, s.exemplars = s.all(ctx, model.Samples), s.all(ctx, model.Exemplars)
		if len(s.r.footer.index[textSection]) > 0 {
			s.text = &textStream{r: s.r, pages: s.walk(textSection)}
		}
		s.keys.pages = s.walk(keySection)
		s.labels.pages = s.walk(labelSection)
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
		s.samples.pages.ctx = ctx
		if d := &s.samples.samples; s.samples.open.Len > 0 && rank >= d.rank0 && rank-d.rank0 < uint32(len(d.counts))-1 {
			// Not the last rank of the page, so that its rows are all here.
			if err := d.appendRows(int(rank-d.rank0), s.samples.rg, &s.rows.Samples); err != nil {
				s.err = at(&pageEntry{addr: s.samples.open}, err)
			}
		} else {
			s.err = s.samples.AppendRows(rank, &s.rows.Samples)
		}
	}
	if s.exemplars != nil && s.err == nil {
		s.exemplars.pages.ctx = ctx
		s.err = s.exemplars.AppendRows(rank, &s.rows.Exemplars)
	}
	if s.text != nil && s.err == nil {
		s.err = s.text.seek(ctx, rank)
	}
	return s.err == nil
}

// all returns a cursor of all rows of a family, or nil if there are none.
func (s *partStream) all(ctx context.Context, f model.Family) *RowCursor {
	if len(s.r.footer.index[sectionOf(f)]) == 0 {
		return nil
	}
	c := s.r.RowsAt(ctx, f, model.TimeRange{Min: -1 << 63, Max: 1<<63 - 1})
	c.pages.copies = true
	return c
}

func (s *partStream) walk(sec section) rankWalk { return rankWalk{r: s.r, section: sec, copies: true} }

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
	if s.text == nil || s.text.count == 0 {
		return nil
	}
	return s.text
}

func (s *partStream) Err() error { return s.err }
