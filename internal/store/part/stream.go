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
	Err() error
}

// Stream walks the whole part, each page once.
func (r *Reader) Stream() Stream { return &partStream{r: r, tenant: -1} }

type partStream struct {
	r      *Reader
	tenant int
	keys   KeyCursor
	labels labelCursor
	// families are nil before the first series and for families of which the part has no row.
	families []*RowCursor
	rows     model.SeriesRows
	err      error
}

func (s *partStream) Next(ctx context.Context) bool {
	if s.err != nil {
		return false
	}
	if s.families == nil {
		for _, f := range model.Families() {
			var c *RowCursor
			if len(s.r.footer.index[sectionOf(f)]) > 0 {
				c = s.r.RowsAt(ctx, f, model.TimeRange{Min: -1 << 63, Max: 1<<63 - 1})
			}
			s.families = append(s.families, c)
		}
		s.keys.pages = rankWalk{r: s.r, section: keySection}
		s.labels.pages = rankWalk{r: s.r, section: labelSection}
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
	for i, f := range model.Families() {
		if c := s.families[i]; c != nil {
			c.pages.ctx = ctx
			if s.err = c.AppendRows(rank, s.rows.Family(f)); s.err != nil {
				return false
			}
		}
	}
	return true
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

func (s *partStream) Err() error { return s.err }
