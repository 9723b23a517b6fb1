package part

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/store/part/parttest"
	"github.com/shaledb/shale/internal/store/part/text"
)

func TestMergeAgainstMap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type place struct {
			tenant string
			key    model.Key
		}
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		rows := map[place]*model.SeriesRows{}
		labels := map[place]model.Labels{}
		var inputs []Stream
		count := rapid.IntRange(0, 6).Draw(rt, "inputs")
		if rapid.IntRange(0, 7).Draw(rt, "many") == 0 {
			count += fewInputs // so that there is a heap
		}
		for range count {
			var all []oneSeries
			withLabels := rapid.Bool().Draw(rt, "labels")
			for range rapid.IntRange(0, 40).Draw(rt, "series") {
				l := model.LabelsOf("__name__", "m", "i", string(rune('a'+rnd.IntN(20))))
				s := oneSeries{tenant: string(rune('p' + rnd.IntN(3))), key: l.Key(testSeed, model.Metrics), labels: l}
				at := int64(rnd.IntN(20))
				for range rnd.IntN(10) {
					s.rows.Append(at, worldtest.Specials[rnd.IntN(len(worldtest.Specials))], int64(rnd.IntN(3)))
					at += 1 + int64(rnd.IntN(5))
				}
				if rnd.IntN(3) == 0 {
					worldtest.MixHistograms(rnd, &s.rows)
				}
				for range rnd.IntN(4) {
					e := model.Exemplar{Value: uint64(rnd.IntN(2)), Labels: model.LabelsOf("id", string(rune('a'+rnd.IntN(3))))}
					s.exemplars.AppendBlob(int64(rnd.IntN(3)), model.KindExemplar, model.AppendExemplar(nil, &e), 0)
				}
				s.exemplars.NormalizeSet()
				all = append(all, s)
			}
			all = sortSeries(all)
			r, _ := writePart(t, all, testOptions(withLabels, Fast))
			inputs = append(inputs, r.Stream())
			for i := range all {
				p := place{all[i].tenant, all[i].key}
				if rows[p] == nil {
					rows[p] = &model.SeriesRows{}
				}
				rows[p].Append(&model.SeriesRows{Samples: all[i].rows, Exemplars: all[i].exemplars})
				if withLabels {
					labels[p] = all[i].labels
				}
			}
		}
		var last place
		n := 0
		err := Merge(context.Background(), inputs, func(tenant string, k model.Key, l model.Labels, got *model.SeriesRows, _ []text.Series) error {
			p := place{tenant, k}
			if n > 0 && (tenant < last.tenant || tenant == last.tenant && !last.key.Less(k)) {
				t.Fatalf("%v after %v", p, last)
			}
			last, n = p, n+1
			want := rows[p]
			if want == nil {
				t.Fatalf("%v is in no input, or came twice", p)
			}
			want.Normalize()
			if !worldtest.SameRows(&got.Samples, &want.Samples) || !worldtest.SameRows(&got.Exemplars, &want.Exemplars) || !bytes.Equal(l, labels[p]) {
				t.Fatalf("%v: %v %s, should be %v %s", p, got, l, want, labels[p])
			}
			delete(rows, p)
			return nil
		}, MergeOptions{OnCollision: func(string, model.Key, model.Labels, model.Labels) { t.Fatal("a collision of equal labels") }})
		parttest.Must(t, err)
		if len(rows) > 0 {
			t.Fatalf("%d series are missing", len(rows))
		}
	})
}

func TestMergeCollision(t *testing.T) {
	k := model.Key{Hi: 7, Lo: 8}
	var inputs []Stream
	for _, v := range []string{"first", "second"} {
		r, _ := writePart(t, []oneSeries{{tenant: "t", key: k, labels: model.LabelsOf("a", v)}}, testOptions(true, Fast))
		inputs = append(inputs, r.Stream())
	}
	var kept, dropped string
	var got []string
	parttest.Must(t, Merge(context.Background(), inputs, func(_ string, _ model.Key, l model.Labels, _ *model.SeriesRows, _ []text.Series) error {
		got = append(got, l.String())
		return nil
	}, MergeOptions{OnCollision: func(_ string, _ model.Key, a, b model.Labels) { kept, dropped = a.String(), b.String() }}))
	if !slices.Equal(got, []string{`{a="first"}`}) || kept != `{a="first"}` || dropped != `{a="second"}` {
		t.Fatalf("got %v, kept %s, dropped %s", got, kept, dropped)
	}
}

func TestMergeStops(t *testing.T) {
	r, _ := writePart(t, []oneSeries{{tenant: "t", key: model.Key{Lo: 1}}}, testOptions(false, Fast))
	mine := errors.New("mine")
	err := Merge(context.Background(), []Stream{r.Stream()}, func(string, model.Key, model.Labels, *model.SeriesRows, []text.Series) error { return mine }, MergeOptions{})
	if err != mine {
		t.Fatalf("got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Merge(ctx, []Stream{r.Stream()}, nil, MergeOptions{}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}

// TestMergeAllocations holds the merge to memory that does not grow with the number of series.
func TestMergeAllocations(t *testing.T) {
	var files [3]*Reader
	for f := range files {
		var all []oneSeries
		for i := range 20000 {
			s := oneSeries{tenant: "t", key: model.Key{Hi: uint64(i) << 20, Lo: uint64(i) * 0x9e3779b97f4a7c15}}
			for k := range 5 {
				s.rows.Append(int64(f*100+k)*1e9, uint64(k), 0)
			}
			all = append(all, s)
		}
		files[f], _ = writePart(t, all, testOptions(false, Fast))
	}
	alloctest.AtMost(t, 1500, 1, func() {
		var inputs []Stream
		for _, r := range files {
			inputs = append(inputs, r.Stream())
		}
		w := NewWriter(discard{}, testOptions(false, Fast))
		parttest.Must(t, Merge(context.Background(), inputs, func(tenant string, k model.Key, l model.Labels, rows *model.SeriesRows, _ []text.Series) error {
			if err := w.Series(tenant, k, l); err != nil {
				return err
			}
			return w.Rows(rows)
		}, MergeOptions{}))
		_, _, err := w.Finish()
		parttest.Must(t, err)
	})
	// Pages are read again each time: a few hundred allocations, for 60,000 series.
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
