package query

import (
	"context"
	"slices"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head/labels"
	"github.com/shaledb/shale/internal/store/head/local"
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
	part   *local.Part
	ranks  part.Selection
	series *part.SeriesCursor
}

// newPartSeries finds the series.
func newPartSeries(ctx context.Context, r *part.Reader, p *local.Part, req *model.Request) (*partSeries, error) {
	ranks, err := r.SelectRuns(ctx, req.Tenant, req.Matchers)
	return &partSeries{part: p, ranks: ranks, series: r.SeriesAt(ctx, req.Tenant, !req.Unlabelled)}, p.WrapError(err)
}

func (s *partSeries) next() (bool, error) {
	rank, ok := s.ranks.Next()
	if !ok {
		return false, nil
	}
	err := s.series.Seek(rank)
	return err == nil, s.part.WrapError(err)
}

func (s *partSeries) key() model.Key       { return s.series.Key() }
func (s *partSeries) labels() model.Labels { return s.series.Labels() }

// runSeries are the series of a label run.
type runSeries struct {
	entries  []labels.Entry
	matchers []model.Matcher
	at       *labels.Entry
}

func (s *runSeries) next() (bool, error) {
	for len(s.entries) > 0 {
		s.at, s.entries = &s.entries[0], s.entries[1:]
		if labels.Satisfies(s.at.Labels(), s.matchers) {
			return true, nil
		}
	}
	return false, nil
}

func (s *runSeries) key() model.Key       { return s.at.Key }
func (s *runSeries) labels() model.Labels { return s.at.Labels() }

// seriesUnion merges sources, each key once. There are about ten, so the least key is found by looking at
// each. Keys are kept with their sources, because asking a source for its key decodes it.
type seriesUnion struct {
	sources []positionedSource // oldest first; those whose next has returned true
	fresh   []seriesSource     // not started yet
	current bool
	key     model.Key
	labels  model.Labels
}

// positionedSource is a source with its current key.
type positionedSource struct {
	seriesSource
	current model.Key
}

func (u *seriesUnion) add(s seriesSource) { u.fresh = append(u.fresh, s) }

func (u *seriesUnion) next() (bool, error) {
	if err := u.advance(); err != nil {
		return false, err
	}
	for _, s := range u.fresh {
		if more, err := s.next(); err != nil {
			return false, err
		} else if more {
			u.sources = append(u.sources, positionedSource{s, s.key()})
		}
	}
	u.fresh = nil
	if u.current = len(u.sources) > 0; !u.current {
		return false, nil
	}
	least := &u.sources[0]
	for i := range u.sources[1:] {
		if s := &u.sources[i+1]; s.current.Less(least.current) {
			least = s
		}
	}
	u.key, u.labels = least.current, least.labels()
	return true, nil
}

// advance advances the sources that are at the current key and removes those that have ended.
func (u *seriesUnion) advance() error {
	ended := false
	for i := range u.sources {
		s := &u.sources[i]
		if !u.current || s.current != u.key {
			continue
		}
		more, err := s.next()
		if err != nil {
			return err
		}
		if !more {
			s.seriesSource, ended = nil, true
			continue
		}
		s.current = s.key()
	}
	if ended {
		u.sources = slices.DeleteFunc(u.sources, func(s positionedSource) bool { return s.seriesSource == nil })
	}
	return nil
}

// partKeys finds keys that come in ascending order in a data part.
type partKeys struct {
	part *local.Part
	keys *part.KeyCursor
}

func newPartKeys(ctx context.Context, r *part.Reader, lp *local.Part, tenant string) partKeys {
	return partKeys{part: lp, keys: r.Keys(ctx, tenant)}
}

// rank returns the rank of a key, or noRank.
func (p *partKeys) rank(k model.Key) (int64, error) {
	if p.keys.Find(k) {
		return int64(p.keys.Rank()), nil
	}
	if err := p.keys.Err(); err != nil {
		return noRank, p.part.WrapError(err)
	}
	return noRank, nil
}
