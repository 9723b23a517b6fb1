package tsdbtest

import (
	"context"
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/test/promqltest"
)

var duration = flag.Duration("duration", 20*time.Second, "how long to compare")

// tally counts the comparisons, so that a generator that no longer tests enough is noticed.
type tally struct {
	worlds, samples, answers, empty int
}

// TestDifferential writes the same samples to Shale and to the storage of Prometheus and compares all
// queries. A failure names the seed and a file to repeat it.
func TestDifferential(t *testing.T) {
	engine := newEngine(t)
	var n tally
	for begin, first := time.Now(), true; first || !t.Failed() && time.Since(begin) < *duration; first = false {
		rapid.Check(t, func(rt *rapid.T) { differential(t, rt, engine, &n) })
	}
	t.Logf("%d worlds with %d samples, %d answers of which %d were empty", n.worlds, n.samples, n.answers, n.empty)
	if n.worlds == 0 || n.samples < 10*n.worlds || n.empty > n.answers*3/4 {
		t.Error("what is compared is too dull")
	}
}

func differential(t *testing.T, rt *rapid.T, engine *promql.Engine, n *tally) {
	w := drawWorld(rt)
	theirs := openOracle(rt)
	defer theirs.close(rt)
	for _, b := range w.resolved {
		push(rt, theirs, w.labels, b)
	}
	store := promqltest.OpenStore(t)
	ours := promqltest.NewStorage(store, nil)
	defer func() {
		if err := store.Close(); err != nil {
			rt.Error(err)
		}
	}()
	for _, b := range w.batches {
		push(rt, ours, w.labels, b)
		move(rt, store)
		n.samples += len(b)
	}
	compare(rt, w, ours, theirs)
	for range 10 {
		question := rapid.SampledFrom(questions).Draw(rt, "question")
		start := w.begin + (w.end-w.begin)*rapid.Int64Range(0, 8).Draw(rt, "eighths")/8 + rapid.Int64Range(-5000, 30_000).Draw(rt, "start")
		span, step := rapid.Int64Range(0, 200_000).Draw(rt, "span"), rapid.Int64Range(1000, 30_000).Draw(rt, "step")
		from, until := time.UnixMilli(start), time.UnixMilli(start+span)
		want := ask(rt, engine, theirs, question, from, until, time.Duration(step)*time.Millisecond)
		got := ask(rt, engine, ours, question, from, until, time.Duration(step)*time.Millisecond)
		if !slices.Equal(got, want) {
			rt.Fatalf("%s from %d to %d by %d\n%s", question, start, start+span, step, different(got, want))
		}
		if n.answers++; len(want) == 0 {
			n.empty++
		}
	}
	n.worlds++
}

// move moves rows to a random stage, or leaves them.
func move(t *rapid.T, s *promqltest.Store) {
	var err error
	switch rapid.IntRange(0, 7).Draw(t, "move") {
	case 0:
		err = s.Flush()
	case 1:
		err = s.Ship()
	case 2:
		err = s.Restart()
	case 3:
		err = s.Merge()
	}
	if err != nil {
		t.Fatalf("move: %v", err)
	}
}

// compare selects by matchers and ranges, and lists labels.
func compare(t *rapid.T, w *world, ours, theirs storage.Queryable) {
	for i := range 5 {
		from, until, ms := w.begin-60_000, w.end+60_000, []*labels.Matcher{labels.MustNewMatcher(labels.MatchRegexp, "__name__", ".+")}
		if i > 0 {
			from, until = drawTime(t, w), drawTime(t, w)
			for range rapid.IntRange(0, 2).Draw(t, "matchers") {
				ms = append(ms, drawMatcher(t))
			}
		}
		if d := w.compareSeries(selectAll(t, ours, from, until, ms), selectAll(t, theirs, from, until, ms)); d != "" {
			t.Fatalf("%v in [%d, %d]: %s", ms, from, until, d)
		}
	}
	ms := []*labels.Matcher{drawMatcher(t)}
	got, want := listLabels(t, w, ours, nil, ms), listLabels(t, w, theirs, nil, ms)
	if !slices.EqualFunc(got, want, slices.Equal[[]string]) {
		t.Fatalf("labels of %v: %q, want %q", ms, got, want)
	}
	// If there are too many, Prometheus returns any of them; Shale returns the first.
	limit := &storage.LabelHints{Limit: rapid.IntRange(1, 3).Draw(t, "limit")}
	for i, some := range listLabels(t, w, ours, limit, ms) {
		if !slices.Equal(some, want[i][:min(limit.Limit, len(want[i]))]) {
			t.Fatalf("labels of %v, %d at most: %q of %q", ms, limit.Limit, some, want[i])
		}
	}
}

// drawTime draws a time at a sample or right next to one.
func drawTime(t *rapid.T, w *world) int64 {
	b := rapid.SampledFrom(w.batches).Draw(t, "batch")
	if len(b) == 0 {
		return w.begin
	}
	return rapid.SampledFrom(b).Draw(t, "sample").t + rapid.Int64Range(-1, 1).Draw(t, "beside")
}

// listLabels returns the names, and the values of each.
func listLabels(t *rapid.T, w *world, s storage.Queryable, limit *storage.LabelHints, ms []*labels.Matcher) [][]string {
	q, err := s.Querier(w.begin-60_000, w.end+60_000)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	names, _, err := q.LabelNames(context.Background(), limit, ms...)
	if err != nil {
		t.Fatal(err)
	}
	out := [][]string{names}
	for _, name := range []string{"__name__", "a", "b", "i"} {
		values, _, err := q.LabelValues(context.Background(), name, limit, ms...)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, values)
	}
	return out
}

func drawMatcher(t *rapid.T) *labels.Matcher {
	typ := rapid.SampledFrom([]labels.MatchType{labels.MatchEqual, labels.MatchNotEqual, labels.MatchRegexp, labels.MatchNotRegexp}).Draw(t, "type")
	name := rapid.SampledFrom([]string{"__name__", "a", "b", "i", "absent"}).Draw(t, "label")
	values := []string{"", "1", "2", "m", "zzz"}
	if typ == labels.MatchRegexp || typ == labels.MatchNotRegexp {
		values = append(values, "1|2", "z.*", ".*", ".+", "m|", "[0-3]")
	}
	return labels.MustNewMatcher(typ, name, rapid.SampledFrom(values).Draw(t, "value"))
}
