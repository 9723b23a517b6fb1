package promql

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
)

func TestLabelsOf(t *testing.T) {
	text := rapid.StringMatching(`[a-zé"\x00]{1,300}`)
	rapid.Check(t, func(t *rapid.T) {
		want := labels.FromMap(rapid.MapOfN(text, text, 0, 5).Draw(t, "labels"))
		var pairs []string
		want.Range(func(l labels.Label) { pairs = append(pairs, l.Name, l.Value) })
		bytes := slices.Clone(model.LabelsOf(pairs...))
		var b labels.ScratchBuilder
		got, err := labelsOf(&b, bytes)
		if err != nil {
			t.Fatal(err)
		}
		// The labels of a cursor are valid until it moves; those of a series are valid for the whole query.
		for i := range bytes {
			bytes[i] = 0xff
		}
		if _, err := labelsOf(&b, model.LabelsOf("other", "labels")); err != nil {
			t.Fatal(err)
		}
		if !labels.Equal(got, want) {
			t.Fatalf("%s, want %s", got, want)
		}
	})
}

func TestLabelsThatAreCut(t *testing.T) {
	whole := model.LabelsOf("__name__", "up", "job", strings.Repeat("x", 200))
	var b labels.ScratchBuilder
	cuts := 0
	for n := range len(whole) {
		if _, err := labelsOf(&b, whole[:n]); err != nil {
			cuts++
			if !errors.Is(err, model.ErrInvalid) && !errors.Is(err, model.ErrCorrupt) {
				t.Errorf("%d bytes: %v has no class", n, err)
			}
		}
	}
	if cuts < len(whole)-2 { // only the empty set and the end of the first pair are valid
		t.Errorf("%d of %d cuts were noticed", cuts, len(whole))
	}
}

func TestMatchers(t *testing.T) {
	values := []string{"", "a", "b", "ab", "abc", "b\n", "A"}
	for _, c := range []struct {
		typ   labels.MatchType
		value string
		op    model.MatchOp
	}{
		{labels.MatchEqual, "a", model.MatchEqual}, {labels.MatchEqual, "", model.MatchEqual}, {labels.MatchNotEqual, "a", model.MatchNotEqual},
		{labels.MatchRegexp, "a|b", model.MatchRegexp}, {labels.MatchRegexp, "ab.*", model.MatchRegexp}, {labels.MatchRegexp, ".*", model.MatchRegexp},
		{labels.MatchRegexp, "(?i)a", model.MatchRegexp}, {labels.MatchRegexp, "(?i)a|b", model.MatchRegexp}, {labels.MatchRegexp, "a?", model.MatchRegexp},
		{labels.MatchRegexp, "|a", model.MatchRegexp}, {labels.MatchRegexp, "b.", model.MatchRegexp},
		{labels.MatchNotRegexp, "a|b", model.MatchNotRegexp}, {labels.MatchNotRegexp, "ab.*", model.MatchNotRegexp},
	} {
		m := labels.MustNewMatcher(c.typ, "l", c.value)
		got := Matchers([]*labels.Matcher{m})[0]
		if got.Name != "l" || got.Op != c.op || got.Value != c.value {
			t.Errorf("%s became %+v", m, got)
		}
		for _, v := range values {
			want := m.Matches(v)
			if got.Match(v) != want {
				t.Errorf("%s: %q", m, v)
			}
			// Hints that spare a source work must not contradict the expression.
			positive := want == (c.op == model.MatchRegexp)
			if len(got.Set) > 0 && positive != slices.Contains(got.Set, v) {
				t.Errorf("%s: the set %q is wrong about %q", m, got.Set, v)
			}
			if c.op == model.MatchRegexp && want && !strings.HasPrefix(v, got.Prefix) {
				t.Errorf("%s: the prefix %q is wrong about %q", m, got.Prefix, v)
			}
		}
	}
}
