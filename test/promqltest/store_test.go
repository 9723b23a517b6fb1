package promqltest

import (
	"context"
	"flag"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/shaledb/shale/test/objectstores"
	"github.com/shaledb/shale/test/tiertest"
)

var (
	storeName = flag.String("store", "", "the object store of test/objectstores that TestStore uses; empty: a folder")
	tierNames = flag.String("tiers", "", "the caches of test/tiers that TestStore uses, such as small+ssd+memcached; empty: memory")
)

func TestStore(t *testing.T) {
	places, caches := objectstores.NewPlaces(t, *storeName), tiertest.Start(t, *tierNames)
	Run(t, func(t testing.TB) Engine { return OpenStoreAt(t, places.New(), caches.New()) })
}

// TestPlaces checks that the rows are where the stages say.
func TestPlaces(t *testing.T) {
	for _, st := range stages() {
		s := OpenStore(t)
		store := NewStorage(s, st.move)
		a := store.AppenderV2(context.Background())
		l := labels.FromStrings("__name__", "up")
		for at := range int64(10) {
			var h *histogram.Histogram
			if at%2 == 0 {
				h = &histogram.Histogram{Count: 1, ZeroCount: 1}
			}
			if _, err := a.Append(0, l, 0, at*1000, 1, h, nil, storage.AppendV2Options{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.Commit(); err != nil {
			t.Fatal(err)
		}
		q := store.queryable()
		querier, err := q.Querier(0, 20_000)
		if err != nil {
			t.Fatal(err)
		}
		set := querier.Select(context.Background(), true, nil, labels.MustNewMatcher(labels.MatchEqual, "__name__", "up"))
		for set.Next() {
		}
		if err := set.Err(); err != nil || q.Cost.Samples.Load() != 10 {
			t.Errorf("%s: %d samples, %v", st.name, q.Cost.Samples.Load(), err)
		}
		from := [3]bool{q.Cost.HeadBuffers.Load() > 0, q.Cost.HeadParts.Load() > 0, q.Cost.Blocks.Load() > 0}
		want := map[string][3]bool{"buffers": {true, false, false}, "parts": {false, true, false}, "bucket": {false, false, true}, "merged": {false, false, true}}[st.name]
		if from != want {
			t.Errorf("%s: read from buffers, parts and blocks: %v", st.name, from)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestExemplars checks that exemplars are returned once from each stage, with samples or without.
func TestExemplars(t *testing.T) {
	ctx := context.Background()
	for _, st := range stages() {
		t.Run(st.name, func(t *testing.T) {
			store := NewStorage(OpenStore(t), st.move)
			defer store.Close()
			want := map[string][]exemplar.Exemplar{}
			for round := range 3 {
				a := store.AppenderV2(ctx)
				for _, name := range []string{"a", "b"} {
					l := labels.FromStrings("__name__", name, "job", "x")
					e := exemplar.Exemplar{
						Labels: labels.FromStrings("trace_id", name), Value: float64(round), Ts: int64(round) * 1000, HasTs: true,
					}
					inf := exemplar.Exemplar{Value: math.Inf(-1), Ts: int64(round) * 1000, HasTs: true, Labels: labels.EmptyLabels()}
					want[name] = append(want[name], e, inf)
					o := storage.AppendV2Options{Exemplars: want[name]} // all earlier exemplars once more
					if _, err := a.Append(0, l, 0, int64(round)*1000, 1, nil, nil, o); err != nil {
						t.Fatal(err)
					}
				}
				if err := a.Commit(); err != nil {
					t.Fatal(err)
				}
			}
			q, err := store.ExemplarQuerier(ctx)
			if err != nil {
				t.Fatal(err)
			}
			job := []*labels.Matcher{labels.MustNewMatcher(labels.MatchEqual, "job", "x")}
			found, err := q.Select(0, 5000, job, job)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string][]exemplar.Exemplar{}
			for _, r := range found {
				got[r.SeriesLabels.Get("__name__")] = r.Exemplars
			}
			if d := cmp.Diff(want, got, cmp.Comparer(labels.Equal)); d != "" {
				t.Errorf("-want +got: %s", d)
			}
			if found, err = q.Select(1000, 1999, job); err != nil || len(found) != 2 || len(found[0].Exemplars) != 2 {
				t.Errorf("in a second: %v, %v", found, err)
			}
			other := store.queryable()
			other.Tenant = "other"
			if q, err = other.ExemplarQuerier(ctx); err != nil {
				t.Fatal(err)
			}
			if found, err = q.Select(0, 5000, job); err != nil || len(found) != 0 {
				t.Errorf("of another tenant: %v, %v", found, err)
			}
		})
	}
}
