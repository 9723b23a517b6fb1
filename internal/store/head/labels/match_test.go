package labels

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
)

// TestNear: among the entries that are near are all that the matchers select.
func TestNear(t *testing.T) {
	values := []string{"", "up", "down", "a.b.c", "a.b.d", "x"}
	rapid.Check(t, func(t *rapid.T) {
		seed := model.KeySeed(rapid.Uint64().Draw(t, "seed"))
		signal := rapid.SampledFrom([]model.Signal{model.Metrics, model.Metrics, model.Logs}).Draw(t, "signal")
		names := []string{"__name__", "job", "instance", "z", "service_name"}
		var entries []Entry
		for range rapid.IntRange(0, 60).Draw(t, "series") {
			var pairs []string
			for _, n := range names {
				pairs = append(pairs, n, rapid.SampledFrom(values).Draw(t, n))
			}
			l := model.LabelsOf(pairs...)
			entries = append(entries, Entry{Key: l.Key(seed, signal), text: string(l)})
		}
		slices.SortFunc(entries, func(a, b Entry) int { return a.Key.Compare(b.Key) })
		var ms []model.Matcher
		for _, n := range names {
			want := rapid.SampledFrom(values).Draw(t, "wanted "+n)
			switch rapid.IntRange(0, 3).Draw(t, "op") {
			case 0, 1:
				ms = append(ms, model.Matcher{Name: n, Value: want, Match: func(v string) bool { return v == want }})
			case 2:
				ms = append(ms, model.Matcher{Name: n, Op: model.MatchNotEqual, Value: want, Match: func(v string) bool { return v != want }})
			}
		}
		refused := func(e Entry) bool {
			if a, b := Satisfies(e.Labels(), ms), matches(e.Labels(), ms); a != b {
				t.Fatalf("%s: %v, should be %v", e.Labels(), a, b)
			}
			return !Satisfies(e.Labels(), ms)
		}
		got := slices.DeleteFunc(slices.Clone(Near(entries, seed, signal, ms)), refused)
		want := slices.DeleteFunc(slices.Clone(entries), refused)
		if len(got) != len(want) {
			t.Fatalf("%d series, should be %d, of %+v", len(got), len(want), ms)
		}
	})
}

// matches reports whether a label set satisfies all matchers.
func matches(l model.Labels, ms []model.Matcher) bool {
	for i := range ms {
		if !ms[i].Match(string(l.Get(ms[i].Name))) {
			return false
		}
	}
	return true
}
