package promql

import (
	"github.com/prometheus/prometheus/model/labels"

	"github.com/shaledb/shale/internal/model"
)

// Matchers translates the engine's matchers. It passes on what the engine knows of a regular expression
// (the only values that it can match, a literal prefix), so that a source need not try every value.
func Matchers(ms []*labels.Matcher) []model.Matcher {
	out := make([]model.Matcher, 0, len(ms))
	for _, m := range ms {
		t := model.Matcher{Name: m.Name, Value: m.Value, Match: m.Matches, Standard: true}
		switch m.Type {
		case labels.MatchEqual:
			t.Op = model.MatchEqual
		case labels.MatchNotEqual:
			t.Op = model.MatchNotEqual
		case labels.MatchRegexp:
			t.Op = model.MatchRegexp
			t.Set = m.SetMatches()
			t.Prefix = m.Prefix()
		case labels.MatchNotRegexp:
			t.Op = model.MatchNotRegexp
			t.Set = m.SetMatches()
		}
		out = append(out, t)
	}
	return out
}
