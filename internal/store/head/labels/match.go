package labels

import (
	"sort"
	"strings"
	"unsafe"

	"github.com/shaledb/shale/internal/model"
)

// Satisfies reports whether a label set satisfies all matchers. Values are not copied: matchers do not keep
// them.
func Satisfies(l model.Labels, ms []model.Matcher) bool {
	for i := range ms {
		value := l.Get(ms[i].Name)
		if !ms[i].Match(unsafe.String(unsafe.SliceData(value), len(value))) {
			return false
		}
	}
	return true
}

// Near narrows the entries of a run, which are in the order of keys, to a range of keys that holds all series
// that the matchers can select. Otherwise a query would look at every buffered label set, of which there may
// be a million.
func Near(entries []Entry, seed model.KeySeed, s model.Signal, ms []model.Matcher) []Entry {
	if s != model.Metrics {
		return entries
	}
	name, job, instance := equalTo(ms, model.NameLabel), equalTo(ms, "job"), equalTo(ms, "instance")
	// A dotted name without other labels has another form of key.
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

// equalTo returns the value that the matchers require of a label, or "" if they allow any.
func equalTo(ms []model.Matcher, name string) string {
	for i := range ms {
		if ms[i].Op == model.MatchEqual && ms[i].Name == name && ms[i].Match(ms[i].Value) {
			return ms[i].Value
		}
	}
	return ""
}
