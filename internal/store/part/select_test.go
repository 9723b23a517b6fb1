package part

import (
	"context"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/parttest"
	"github.com/shaledb/shale/internal/store/part/samples"
	"github.com/shaledb/shale/internal/store/part/series"
)

// drawMatcher draws a matcher as a language would build it, with its shortcuts where it has any.
func drawMatcher(t *rapid.T) model.Matcher {
	m := model.Matcher{
		Name: rapid.SampledFrom([]string{"__name__", "job", "id", "z\x00y", "absent", ""}).Draw(t, "label"),
		Op:   rapid.SampledFrom([]model.MatchOp{model.MatchEqual, model.MatchNotEqual, model.MatchRegexp, model.MatchNotRegexp}).Draw(t, "op"),
	}
	if m.Op == model.MatchEqual || m.Op == model.MatchNotEqual {
		m.Value = rapid.SampledFrom([]string{"", "up", "cpu_seconds_total", "a", "b", "ab", "1", "17", "\x00", "none"}).Draw(t, "value")
		equal := m.Op == model.MatchEqual
		value := m.Value
		m.Match = func(v string) bool { return (v == value) == equal }
		return m
	}
	m.Value = rapid.SampledFrom([]string{"", ".*", ".+", "a|b", "a|", "up|none", "1.*", "[0-9]+", "c.*total", "x|\x00|é", "^$", "a?b?"}).Draw(t, "regexp")
	re := regexp.MustCompile("^(?s:" + m.Value + ")$")
	want := m.Op == model.MatchRegexp
	m.Match = func(v string) bool { return re.MatchString(v) == want }
	if rapid.Bool().Draw(t, "shortcuts") {
		switch m.Value {
		case "a|b", "a|", "up|none", "x|\x00|é":
			m.Set = strings.Split(m.Value, "|")
		case "1.*":
			m.Prefix = "1"
		case "c.*total":
			m.Prefix = "c"
		}
	}
	return m
}

func satisfies(l model.Labels, ms []model.Matcher) bool {
	for i := range ms {
		if !ms[i].Match(string(l.Get(ms[i].Name))) {
			return false
		}
	}
	return true
}

func TestSelectAgainstBruteForce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		all := drawWorld(rt)
		for i := range all {
			all[i].rows.Reset()
		}
		r, _ := writeSized(t, all, testOptions(true, Fast), rapid.SampledFrom([]file.Sizes{formatSizes, tiny, tinyRuns}).Draw(rt, "sizes"))
		if rapid.Bool().Draw(rt, "lists are kept") {
			r = r.Bind(parttest.KeepLists(r.Pages()))
		}
		for range 10 {
			ms := rapid.SliceOfN(rapid.Custom(drawMatcher), 0, 4).Draw(rt, "matchers")
			tenant := rapid.SampledFrom(tenantNames(all)).Draw(rt, "tenant")
			checkSelect(t, r, all, tenant, ms)
		}
	})
}

// TestSelectListed asks for many values at once, in any order, of which some are there.
func TestSelectListed(t *testing.T) {
	racetest.SkipSerial(t)
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(rt, "series")
		var all []oneSeries
		for i := range n {
			l := model.LabelsOf("__name__", "m", "id", strconv.Itoa(i/2), "z", strconv.Itoa(i%3))
			if i%2 == 1 {
				l = model.LabelsOf("__name__", "n", "id", strconv.Itoa(i/2))
			}
			all = append(all, oneSeries{tenant: "t", key: l.Key(testSeed, model.Metrics), labels: l})
		}
		slices.SortFunc(all, func(a, b oneSeries) int { return a.key.Compare(b.key) })
		r, _ := writeSized(t, all, testOptions(true, Fast), rapid.SampledFrom([]file.Sizes{formatSizes, tiny, tinyRuns}).Draw(rt, "sizes"))
		for _, op := range []model.MatchOp{model.MatchRegexp, model.MatchNotRegexp} {
			numbers := rapid.SliceOfN(rapid.IntRange(0, n), 1, 200).Draw(rt, "ids")
			m := model.Matcher{Name: "id", Op: op, Set: make([]string, len(numbers))}
			for i, id := range numbers {
				m.Set[i] = strconv.Itoa(id)
			}
			m.Match = func(v string) bool { return slices.Contains(m.Set, v) == (op == model.MatchRegexp) }
			checkSelect(t, r, all, "t", []model.Matcher{m})
		}
	})
}

// TestListsAreKept: a pattern is matched against each value once, unless what it finds is too long to be
// kept.
func TestListsAreKept(t *testing.T) {
	racetest.SkipSerial(t)
	var all []oneSeries
	for i := range 80_000 {
		l := model.LabelsOf("__name__", "m", "i", strconv.Itoa(i), "odd", strconv.Itoa(i%2)+strconv.Itoa(i))
		all = append(all, oneSeries{tenant: "t", key: l.Key(1, model.Metrics), labels: l})
	}
	slices.SortFunc(all, func(a, b oneSeries) int { return a.key.Compare(b.key) })
	r, _ := writeSized(t, all, testOptions(true, Fast), formatSizes)
	kept := parttest.KeepLists(r.Pages())
	r = r.Bind(kept)
	for pattern, c := range map[string]struct{ series, lists int }{"7.*1": {1111, 1}, "1.*": {40_000, 0}} {
		asked := 0
		re := regexp.MustCompile("^(?:" + pattern + ")$")
		name := map[bool]string{true: "i", false: "odd"}[c.lists == 1]
		ms := []model.Matcher{{Name: name, Op: model.MatchRegexp, Value: pattern, Match: func(v string) bool { asked++; return re.MatchString(v) }}}
		clear(kept.Lists)
		var first file.Ranks
		for n := range 2 {
			got, err := r.Select(context.Background(), "t", ms)
			parttest.Must(t, err)
			if n == 0 {
				first = got
			}
			if len(got) != c.series || !slices.Equal(got, first) || len(kept.Lists) != c.lists {
				t.Errorf("%s: %d series, %d lists", pattern, len(got), len(kept.Lists))
			}
		}
		if again := asked > 100_000; again != (c.lists == 0) {
			t.Errorf("%s: asked of %d values", pattern, asked)
		}
	}
}

func checkSelect(t *testing.T, r *Reader, all []oneSeries, tenant string, ms []model.Matcher) {
	t.Helper()
	ctx := context.Background()
	var want file.Ranks
	var names []string
	values := map[string][]string{}
	for i := range all {
		if all[i].tenant != tenant || !satisfies(all[i].labels, ms) {
			continue
		}
		want = append(want, uint32(i))
		for n, v, rest, ok := all[i].labels.Next(); ok; n, v, rest, ok = rest.Next() {
			names = append(names, string(n))
			values[string(n)] = append(values[string(n)], string(v))
		}
	}
	got, err := r.Select(ctx, tenant, ms)
	parttest.Must(t, err)
	if !slices.Equal(got, want) {
		t.Fatalf("%+v: %v, should be %v", ms, got, want)
	}
	c := r.SeriesAt(ctx, tenant, true)
	for _, rank := range got {
		parttest.Must(t, c.Seek(rank))
		if string(c.Labels()) != string(all[rank].labels) || c.Key() != all[rank].key || c.Rank() != rank {
			t.Fatalf("rank %d: %s", rank, c.Labels())
		}
	}
	gotNames := collect(t, func(emit func([]byte) error) error { return r.LabelNames(ctx, tenant, ms, emit) })
	if slices.Sort(names); !slices.Equal(gotNames, slices.Compact(names)) {
		t.Fatalf("%+v: names %q, should be %q", ms, gotNames, slices.Compact(names))
	}
	for _, name := range append(gotNames, "absent", "") {
		gotValues := collect(t, func(emit func([]byte) error) error { return r.LabelValues(ctx, tenant, name, ms, emit) })
		if slices.Sort(values[name]); !slices.Equal(gotValues, slices.Compact(values[name])) {
			t.Fatalf("%+v: values of %q are %q, should be %q", ms, name, gotValues, slices.Compact(values[name]))
		}
	}
}

func collect(t *testing.T, walk func(emit func([]byte) error) error) []string {
	t.Helper()
	var out []string
	parttest.Must(t, walk(func(b []byte) error {
		out = append(out, string(b))
		return nil
	}))
	return out
}

// TestSelectManyPages makes postings of several pages and index pages, with lists that are cut.
func TestSelectManyPages(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 100,000 series")
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	var all []oneSeries
	for _, tenant := range []string{"a", "b", "c"} {
		n := 20000
		if tenant == "b" {
			n = 60000
		}
		for i := range n {
			l := model.LabelsOf("__name__", "m", "half", strconv.Itoa(rnd.IntN(2)), "id", strconv.Itoa(i), "text", strings.Repeat("x", 40)+strconv.Itoa(i%9000))
			all = append(all, oneSeries{tenant: tenant, key: l.Key(testSeed, model.Metrics), labels: l})
		}
	}
	all = sortSeries(all)
	r, _ := writeSized(t, all, testOptions(true, Fast), file.Sizes{PageBytes: file.PageBytes / 4, IndexBytes: 600, ListBytes: 2000, Rows: file.MaxPageRows, SeriesRows: samples.MaxSeriesRows})
	parttest.Must(t, Check(context.Background(), r))
	if n := len(r.Index(series.PostingSection)); n < 2 {
		t.Fatalf("only %d index pages of postings", n)
	}
	re := regexp.MustCompile("^x+17.*$")
	for _, tenant := range []string{"a", "b", "c"} {
		for _, ms := range [][]model.Matcher{
			{{Name: "half", Op: model.MatchEqual, Value: "1"}},
			{{Name: "half", Op: model.MatchNotEqual, Value: "1"}, {Name: "__name__", Op: model.MatchEqual, Value: "m"}},
			{{Name: "text", Op: model.MatchRegexp, Match: re.MatchString, Prefix: "xx"}, {Name: "half", Op: model.MatchEqual, Value: "0"}},
			{{Name: "id", Op: model.MatchEqual, Value: "19999"}},
		} {
			for i := range ms {
				setMatch(&ms[i])
			}
			var want file.Ranks
			for i := range all {
				if all[i].tenant == tenant && satisfies(all[i].labels, ms) {
					want = append(want, uint32(i))
				}
			}
			got, err := r.Select(context.Background(), tenant, ms)
			parttest.Must(t, err)
			if !slices.Equal(got, want) {
				t.Fatalf("%s %s%d: %d ranks, should be %d", tenant, ms[0].Name, ms[0].Op, len(got), len(want))
			}
		}
	}
}

func TestSelectNeedsLabels(t *testing.T) {
	r, _ := writePart(t, []oneSeries{{tenant: "a", key: model.Key{Lo: 1}}}, testOptions(false, Fast))
	if _, err := r.Select(context.Background(), "a", []model.Matcher{{Name: "x"}}); err == nil {
		t.Fatal("a part without labels answers a matcher")
	}
	if got, err := r.Select(context.Background(), "a", nil); err != nil || !slices.Equal(got, file.Ranks{0}) {
		t.Fatalf("%v, %v", got, err)
	}
}

// setMatch gives a matcher of a plain value its function.
func setMatch(m *model.Matcher) {
	if m.Match == nil {
		want := m.Op == model.MatchEqual
		m.Match = func(v string) bool { return (v == m.Value) == want }
	}
}
