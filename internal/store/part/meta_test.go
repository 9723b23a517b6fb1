package part

import (
	"errors"
	"io"
	"math"
	"slices"
	"testing"

	"github.com/shaledb/shale/internal/model"
)

func TestWriterRefusesOptions(t *testing.T) {
	for name, o := range map[string]WriterOptions{
		"65 windows":          {Windows: Windows{Length: 1, Count: 65}},
		"a window of 0 ns":    {Windows: Windows{Count: 1}},
		"windows beyond end":  {Windows: Windows{Start: math.MaxInt64 - 5, Length: 3, Count: 2}},
		"no windows at 7":     {Windows: Windows{Start: 7}},
		"sources in disorder": {Sources: []Source{{Node: "b"}, {Node: "a"}}},
		"a source twice":      {Sources: []Source{{Node: "a", SeqHi: 1}, {Node: "a", SeqLo: 2, SeqHi: 3}}},
		"an empty sequence":   {Sources: []Source{{Node: "a", SeqLo: 2, SeqHi: 1}}},
	} {
		w := NewWriter(io.Discard, o)
		if _, _, err := w.Finish(); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSources(t *testing.T) {
	o := testOptions(false, Fast)
	o.Sources = []Source{{"a", 5, 1, 9}, {"a", 7, 1, 3}, {"b", 2, 8, 8}}
	r, _ := writePart(t, nil, o)
	if m := r.Meta(); !slices.Equal(m.Sources, o.Sources) || m.Node != "a" || m.Epoch != 5 || m.SeqLo != 1 || m.SeqHi != 9 {
		t.Fatalf("%+v", m)
	}
	r, _ = writePart(t, nil, testOptions(false, Fast))
	if m := r.Meta(); !slices.Equal(m.Sources, []Source{{"n1", 0, 3, 9}}) {
		t.Fatalf("%+v", m)
	}
}

func TestJoinSources(t *testing.T) {
	a := []Source{{"a", 5, 4, 9}, {"b", 1, 1, 1}}
	got := JoinSources(a, []Source{{"a", 3, 7, 8}}, []Source{{"a", 5, 1, 2}, {"c", 0, 0, 0}}, nil)
	want := []Source{{"a", 3, 7, 8}, {"a", 5, 1, 9}, {"b", 1, 1, 1}, {"c", 0, 0, 0}}
	if !slices.Equal(got, want) || a[0].SeqLo != 4 {
		t.Fatalf("%v, should be %v", got, want)
	}
	var m Meta
	if why := m.setSources(got); why != "" {
		t.Fatal(why)
	}
}
