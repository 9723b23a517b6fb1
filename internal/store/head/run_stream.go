package head

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part"
)

// runStream walks a run as merging wants it.
type runStream struct {
	r      *run
	tenant int
	at     [families]int // next row of each family
	rows   model.SeriesRows
	key    model.Key
	name   string
}

// Next gathers the rows of all families of the least key.
func (s *runStream) Next(context.Context) bool {
	for ; s.tenant < len(s.r.tenants); s.tenant, s.at = s.tenant+1, [families]int{} {
		t := &s.r.tenants[s.tenant]
		if !s.least(t) {
			continue
		}
		s.name = t.name
		s.rows.Reset()
		for _, f := range model.PointFamilies() {
			rows, at := &t.rows[f], s.at[f]
			if at < len(rows.keys) && rows.keys[at] == s.key {
				s.at[f] = rows.end(at)
				rows.appendTo(s.rows.Family(f), at, s.at[f], s.r.blobs)
			}
		}
		s.rows.Normalize()
		return true
	}
	return false
}

// least finds the least key that is left of a tenant, if there is one.
func (s *runStream) least(t *runTenant) bool {
	found := false
	for f := range t.rows {
		if keys := t.rows[f].keys[s.at[f]:]; len(keys) > 0 && (!found || keys[0].Less(s.key)) {
			s.key, found = keys[0], true
		}
	}
	return found
}

func (s *runStream) Tenant() string          { return s.name }
func (s *runStream) Key() model.Key          { return s.key }
func (s *runStream) Labels() model.Labels    { return nil }
func (s *runStream) Rows() *model.SeriesRows { return &s.rows }
func (s *runStream) Text() part.Text         { return nil }
func (s *runStream) Err() error              { return nil }
