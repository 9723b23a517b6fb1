package head

import (
	"context"
	"slices"
	"sort"
	"strings"
	"unsafe"

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
func newPartSeries(ctx context.Context, r *part.Reader, p *localPart, req *model.Request) (*partSeries, int64, error) {
	ranks, err := r.Select(ctx, req.Tenant, req.Matchers)
	return &partSeries{part: p, ranks: ranks, series: r.SeriesAt(ctx, req.Tenant, !req.Unlabelled)}, 4 * int64(cap(ranks)), p.named(err)
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
	at       *labelEntry
}

func (s *runSeries) next() (bool, error) {
	for len(s.entries) > 0 {
		s.at, s.entries = &s.entries[0], s.entries[1:]
		if satisfies(s.at.labels(), s.matchers) {
			return true, nil
		}
	}
	return false, nil
}

func (s *runSeries) key() model.Key       { return s.at.key }
func (s *runSeries) labels() model.Labels { return s.at.labels() }

// satisfies is matches, without a copy of each value: matchers do not keep what they are shown.
func satisfies(l model.Labels, ms []model.Matcher) bool {
	for i := range ms {
		value := l.Get(ms[i].Name)
		if !ms[i].Match(unsafe.String(unsafe.SliceData(value), len(value))) {
			return false
		}
	}
	return true
}

// near narrows the entries of a run, which are in the order of keys, down to those whose keys begin as those of all series do
// that the matchers select. With a million fresh label sets in memory, looking at each took half a second a query.
func near(entries []labelEntry, seed model.KeySeed, s model.Signal, ms []model.Matcher) []labelEntry {
	if s != model.Metrics {
		return entries
	}
	name, job, instance := equalTo(ms, model.NameLabel), equalTo(ms, "job"), equalTo(ms, "instance")
	// The key of a dotted name that is the only label is made in another way.
	if name == "" || strings.IndexByte(name, '.') >= 0 {
		return entries
	}
	b, below := model.KeyBuilder{Seed: seed, Signal: s}, uint64(1)<<44-1
	b.Label([]byte(model.NameLabel), []byte(name))
	if job != "" {
		b.Label([]byte("job"), []byte(job))
		if below = 1<<32 - 1; instance != "" {
			b.Label([]byte("instance"), []byte(instance))
			below = 1<<16 - 1
		}
	}
	first := b.Key(nil).Hi &^ below
	from := sort.Search(len(entries), func(i int) bool { return entries[i].key.Hi >= first })
	n := sort.Search(len(entries)-from, func(i int) bool { return entries[from+i].key.Hi > first|below })
	return entries[from : from+n]
}

// equalTo returns the value that a label must have, "" if any.
func equalTo(ms []model.Matcher, name string) string {
	for i := range ms {
		if ms[i].Op == model.MatchEqual && ms[i].Name == name && ms[i].Match(ms[i].Value) {
			return ms[i].Value
		}
	}
	return ""
}

// seriesUnion merges sources, each key once. There are about ten, so the least key is found by looking at each. Keys are
// kept beside their sources, because asking a source for its key decodes it.
type seriesUnion struct {
	sources []standing     // oldest first; those whose next has returned true
	fresh   []seriesSource // not started yet
	current bool
	key     model.Key
	labels  model.Labels
}

// standing is a source with the key at which it stands.
type standing struct {
	seriesSource
	at model.Key
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
			u.sources = append(u.sources, standing{s, s.key()})
		}
	}
	u.fresh = nil
	if u.current = len(u.sources) > 0; !u.current {
		return false, nil
	}
	least := &u.sources[0]
	for i := range u.sources[1:] {
		if s := &u.sources[i+1]; s.at.Less(least.at) {
			least = s
		}
	}
	u.key, u.labels = least.at, least.labels()
	return true, nil
}

// advance moves on those sources that stand at the current key, and lets go those that have ended.
func (u *seriesUnion) advance() error {
	ended := false
	for i := range u.sources {
		s := &u.sources[i]
		if !u.current || s.at != u.key {
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
		s.at = s.key()
	}
	if ended {
		u.sources = slices.DeleteFunc(u.sources, func(s standing) bool { return s.seriesSource == nil })
	}
	return nil
}

// partKeys finds keys that come in ascending order in a data part.
type partKeys struct {
	part *localPart
	keys *part.KeyCursor
}

func newPartKeys(ctx context.Context, r *part.Reader, lp *localPart, tenant string) partKeys {
	return partKeys{part: lp, keys: r.Keys(ctx, tenant)}
}

// rank returns the rank of a key, or noRank.
func (p *partKeys) rank(k model.Key) (int64, error) {
	if p.keys.Find(k) {
		return int64(p.keys.Rank()), nil
	}
	if err := p.keys.Err(); err != nil {
		return noRank, p.part.named(err)
	}
	return noRank, nil
}

// seek returns the rows of a key, of those from at on.
func (r *runRows) seek(at int, k model.Key) (from, to int) {
	// Neighbours are near: look a little ahead before searching the rest.
	keys, i := r.keys, at
	for n := 0; i < len(keys) && keys[i].Less(k); n++ {
		if i++; n == 8 {
			i += sort.Search(len(keys)-i, func(j int) bool { return !keys[i+j].Less(k) })
		}
	}
	from = i
	for i < len(keys) && keys[i] == k {
		i++
	}
	return from, i
}
