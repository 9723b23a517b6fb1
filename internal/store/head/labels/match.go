package labels

import (
	"sort"
	"strings"
	"unsafe"

	"github.com/shaledb/shale/internal/model"
)

// Satisfies is matches, without a copy of each value: matchers do not keep what they are shown.
func Satisfies(l model.Labels, ms []model.Matcher) bool {
	for i := range ms {
		value := l.Get(ms[i].Name)
		if !ms[i].Match(unsafe.String(unsafe.SliceData(value), len(value))) {
			return false
		}
	}
	return true
}

// Near narrows the entries of a run, which are in the order of keys, down to those whose keys begin as those of all series do
// that the matchers select. With a million fresh label sets in memory, looking at each took half a second a query.
func Near(entries []Entry, seed model.KeySeed, s model.Signal, ms []model.Matcher) []Entry {
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
	from := sort.Search(len(entries), func(i int) bool { return entries[i].Key.Hi >= first })
	n := sort.Search(len(entries)-from, func(i int) bool { return entries[from+i].Key.Hi > first|below })
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
