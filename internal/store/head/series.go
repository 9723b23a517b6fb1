package head

import (
	"context"
	"sort"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part"
)

// seriesSource walks series that satisfy the matchers, in the order of keys.
type seriesSource interface {
	next() (bool, error)
	key() model.Key
	labels() model.Labels
}

// partSeries are the series of a label part.
type partSeries struct {
	part   *localPart
	ranks  part.Ranks
	series *part.SeriesCursor
}

// newPartSeries finds the series, and returns the bytes that their list takes.
func newPartSeries(ctx context.Context, p *localPart, req *model.Request) (*partSeries, int64, error) {
	r := p.countedFor(req)
	ranks, err := r.Select(ctx, req.Tenant, req.Matchers)
	return &partSeries{part: p, ranks: ranks, series: r.SeriesAt(ctx, req.Tenant)}, 4 * int64(cap(ranks)), p.named(err)
}

func (s *partSeries) next() (bool, error) {
	if len(s.ranks) == 0 {
		return false, nil
	}
	err := s.series.Seek(s.ranks[0])
	s.ranks = s.ranks[1:]
	return err == nil, s.part.named(err)
}

func (s *partSeries) key() model.Key       { return s.series.Key() }
func (s *partSeries) labels() model.Labels { return s.series.Labels() }

// runSeries are the series of a label run.
type runSeries struct {
	entries  []labelEntry
	matchers []model.Matcher
	at       labelEntry
}

func (s *runSeries) next() (bool, error) {
	for len(s.entries) > 0 {
		s.at, s.entries = s.entries[0], s.entries[1:]
		if matches(s.at.labels, s.matchers) {
			return true, nil
		}
	}
	return false, nil
}

func (s *runSeries) key() model.Key       { return s.at.key }
func (s *runSeries) labels() model.Labels { return s.at.labels }

// seriesUnion merges sources, each key once. There are about ten, so the least key is found by looking at each.
type seriesUnion struct {
	sources []seriesSource // oldest first; those whose next has returned true
	fresh   []seriesSource // not started yet
	current bool
	key     model.Key
	labels  model.Labels
}

func (u *seriesUnion) add(s seriesSource) { u.fresh = append(u.fresh, s) }

func (u *seriesUnion) next() (bool, error) {
	kept := u.sources[:0]
	for _, s := range u.sources {
		if u.current && s.key() == u.key {
			if more, err := s.next(); err != nil {
				return false, err
			} else if !more {
				continue
			}
		}
		kept = append(kept, s)
	}
	u.sources = kept
	for _, s := range u.fresh {
		if more, err := s.next(); err != nil {
			return false, err
		} else if more {
			u.sources = append(u.sources, s)
		}
	}
	u.fresh = nil
	if u.current = len(u.sources) > 0; !u.current {
		return false, nil
	}
	least := u.sources[0]
	for _, s := range u.sources[1:] {
		if s.key().Less(least.key()) {
			least = s
		}
	}
	u.key, u.labels = least.key(), least.labels()
	return true, nil
}

// partRows are the rows of one family of a data part.
type partRows struct {
	part  *localPart
	keys  *part.KeyCursor
	rows  *part.RowCursor
	valid bool
}

func newPartRows(ctx context.Context, lp *localPart, req *model.Request, f model.Family) *partRows {
	r := lp.countedFor(req)
	p := &partRows{part: lp, keys: r.Keys(ctx, req.Tenant), rows: r.RowsAt(ctx, f, req.Range)}
	p.valid = p.keys.Next()
	return p
}

func (p *partRows) appendRows(k model.Key, dst *model.Rows) error {
	if p.valid && p.keys.Key().Less(k) {
		p.valid = p.keys.SeekGE(k)
	}
	if !p.valid {
		return p.part.named(p.keys.Err())
	}
	if p.keys.Key() != k {
		return nil
	}
	return p.part.named(p.rows.AppendRows(p.keys.Rank(), dst))
}

// bufferedRows are the rows of one family of a run.
type bufferedRows struct {
	rows  *runRows
	blobs blobs
	at    int
	rg    model.TimeRange
}

func (r *bufferedRows) appendRows(k model.Key, dst *model.Rows) error {
	// Neighbours are near: look a little ahead before searching the rest.
	keys, i := r.rows.keys, r.at
	for n := 0; i < len(keys) && keys[i].Less(k); n++ {
		if i++; n == 8 {
			i += sort.Search(len(keys)-i, func(j int) bool { return !keys[i+j].Less(k) })
		}
	}
	for ; i < len(keys) && keys[i] == k; i++ {
		if r.rg.Contains(r.rows.times[i]) {
			r.rows.appendTo(dst, i, i+1, r.blobs)
		}
	}
	r.at = i
	return nil
}
