package part

import (
	"errors"
	"io"
	"math"
	"slices"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/file"
)

func TestWriterRefusesOptions(t *testing.T) {
	for name, o := range map[string]WriterOptions{
		"65 windows":          {Windows: file.Windows{Length: 1, Count: 65}},
		"a window of 0 ns":    {Windows: file.Windows{Count: 1}},
		"windows beyond end":  {Windows: file.Windows{Start: math.MaxInt64 - 5, Length: 3, Count: 2}},
		"no windows at 7":     {Windows: file.Windows{Start: 7}},
		"sources in disorder": {Sources: []file.Source{{Node: "b"}, {Node: "a"}}},
		"a source twice":      {Sources: []file.Source{{Node: "a", SeqHi: 1}, {Node: "a", SeqLo: 2, SeqHi: 3}}},
		"an empty sequence":   {Sources: []file.Source{{Node: "a", SeqLo: 2, SeqHi: 1}}},
	} {
		w := NewWriter(io.Discard, o)
		if _, _, err := w.Finish(); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSources(t *testing.T) {
	o := testOptions(false, Fast)
	o.Sources = []file.Source{{Node: "a", Epoch: 5, SeqLo: 1, SeqHi: 9}, {Node: "a", Epoch: 7, SeqLo: 1, SeqHi: 3}, {Node: "b", Epoch: 2, SeqLo: 8, SeqHi: 8}}
	r, _ := writePart(t, nil, o)
	if m := r.Meta(); !slices.Equal(m.Sources, o.Sources) || m.Node != "a" || m.Epoch != 5 || m.SeqLo != 1 || m.SeqHi != 9 {
		t.Fatalf("%+v", m)
	}
	r, _ = writePart(t, nil, testOptions(false, Fast))
	if m := r.Meta(); !slices.Equal(m.Sources, []file.Source{{Node: "n1", Epoch: 0, SeqLo: 3, SeqHi: 9}}) {
		t.Fatalf("%+v", m)
	}
}
