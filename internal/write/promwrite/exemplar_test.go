package promwrite

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

// exemplarBodies makes an Exemplar message of each version.
func exemplarBodies(rest string, pairs ...string) map[version]string {
	words, refs, labels := []string{"", "__name__", "m"}, []uint64{}, ""
	for i := 0; i < len(pairs); i += 2 {
		words = append(words, pairs[i], pairs[i+1])
		refs = append(refs, uint64(3+i), uint64(4+i))
		labels += label(pairs[i], pairs[i+1])
	}
	return map[version]string{
		v1: msg(1, label("__name__", "m"), msg(3, labels, rest)),
		v2: symbolsOf(words...) + msg(5, msg(1, packed(1, 2)), msg(4, msg(1, packed(refs...)), rest)),
	}
}

func TestExemplars(t *testing.T) {
	const odd = 0x7ff8_0000_dead_beef
	rest := dblBits(2, odd) + num(3, 7)
	long := func(n int) string { return strings.Repeat("é", n) }
	for what, c := range map[string]struct {
		pairs  []string
		want   model.Labels
		reason string
	}{
		"no labels":           {nil, nil, ""},
		"one":                 {[]string{"trace_id", "abc"}, model.LabelsOf("trace_id", "abc"), ""},
		"unordered":           {[]string{"z", "1", "a", "2"}, model.LabelsOf("a", "2", "z", "1"), ""},
		"an empty value":      {[]string{"a", "", "trace_id", "x"}, model.LabelsOf("trace_id", "x"), ""},
		"an empty name":       {[]string{"", "x", "a", "b"}, model.LabelsOf("", "x", "a", "b"), ""}, // as upstream
		"128 characters":      {[]string{"trace_id", long(120)}, model.LabelsOf("trace_id", long(120)), ""},
		"129 characters":      {[]string{"trace_id", long(121)}, nil, write.ReasonExemplar},
		"128, one not UTF-8":  {[]string{"trace_id", long(119) + "\xff"}, nil, write.ReasonLabels},
		"a megabyte":          {[]string{"trace_id", long(500_000)}, nil, write.ReasonExemplar},
		"a long empty one":    {[]string{long(500_000), "", "a", "b"}, model.LabelsOf("a", "b"), ""},
		"the same name twice": {[]string{"a", "1", "a", "2"}, nil, write.ReasonDuplicateLabel},
		"200 labels":          {strings.Split(strings.Repeat("a b ", 200)+"c d", " "), nil, write.ReasonExemplar},
	} {
		for v, raw := range exemplarBodies(rest, c.pairs...) {
			w, b := new(walker), new(model.Batch)
			w.start(v, []byte(raw), seed, testLimits(), b, func(int64) error { return nil })
			if err := w.walk(); err != nil {
				t.Fatal(err)
			}
			if c.reason != "" {
				if len(w.left) != 1 || w.left[0].Reason != c.reason || w.left[0].ByKind != (write.Counts{Exemplars: 1}) || len(b.Keys) > 0 {
					t.Errorf("%s, version %s: %v", what, v, w.left)
				}
				continue
			}
			if len(w.left) > 0 || b.Exemplars.Len() != 1 || b.Exemplars.Times[0] != 7_000_000 {
				t.Errorf("%s, version %s: left out %v", what, v, w.left)
				continue
			}
			e, err := model.ParseExemplar(b.Exemplars.Blob(0))
			if err != nil || e.Value != odd || string(e.Labels) != string(c.want) {
				t.Errorf("%s, version %s: %+v %v", what, v, e, err)
			}
		}
	}
	for v, raw := range exemplarBodies(dbl(2, 1)+num(3, math.MaxInt64), "a", "b") {
		got, err := walked(v, []byte(raw))
		if err != nil || got.Left != (write.Counts{Exemplars: 1}) || len(got.Rows) != 0 {
			t.Errorf("version %s: time out of range: %+v %v", v, got, err)
		}
	}
}

// TestExemplarsAmongSamples: series with and without exemplars keep their own.
func TestExemplarsAmongSamples(t *testing.T) {
	h, s := newHandler(t, testLimits())
	raw := ""
	for i := range 20 {
		raw += msg(1, label("__name__", "m"), label("i", fmt.Sprint(i)))
		series := label("__name__", "m") + label("i", fmt.Sprint(i))
		if i%3 != 0 {
			series += msg(2, dbl(1, float64(i)), num(2, nowMs))
		}
		for j := range i % 4 {
			series += msg(3, label("trace_id", fmt.Sprint(i, j)), dbl(2, float64(j)), num(3, uint64(nowMs+j)))
		}
		raw += msg(1, series)
	}
	w := send(h, pack(t, []byte(raw)), "Content-Encoding", "zstd")
	if w.Code != 204 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	for i := range 20 {
		id := fmt.Sprintf(`anonymous{__name__="m", i="%d"}`, i)
		if n := s.Rows[id]; (n == nil) != (i%3 == 0) || n != nil && n.Values[0] != math.Float64bits(float64(i)) {
			t.Errorf("series %d: %v", i, n)
		}
		x := s.Exemplars[id]
		if x == nil && i%4 == 0 {
			continue
		}
		for j := range i % 4 {
			e, err := model.ParseExemplar(x.Blob(j))
			if err != nil || string(e.Labels.Get("trace_id")) != fmt.Sprint(i, j) || x.Times[j] != int64(nowMs+j)*1_000_000 {
				t.Errorf("series %d: exemplar %d is %+v, %v", i, j, e, err)
			}
		}
	}
}
