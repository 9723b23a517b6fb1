package lines

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/parttest"
)

// joined puts the lines of a split page together.
func joined(s *Split) (all []byte) {
	value := func(column, i uint32) []byte {
		text, ends := s.Column(column)
		from := uint32(0)
		if i > 0 {
			from = ends[i-1]
		}
		return text[from:ends[i]]
	}
	for _, h := range s.Hops {
		var path []*model.TextFragment
		for f := int32(h.Fragment); f >= 0; f = s.Columns[s.Fragments[f].After].Before {
			path = append(path, &s.Fragments[f])
		}
		for i := len(path) - 1; i >= 0; i-- {
			if path[i].After != 0 {
				all = append(all, value(path[i].After, h.Value)...)
			}
			all = append(all, s.Bytes(path[i])...)
		}
	}
	return all
}

// TestSplit: the hops of a page make its lines, and values have the bytes that their class says.
func TestSplit(t *testing.T) {
	shared := 0
	rapid.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 4))
		lines := randomLines(r, rapid.SampledFrom([]int{30, 500}).Draw(rt, "lines"), rapid.IntRange(0, len(lineShapes)).Draw(rt, "shape"))
		all, ends := joinLines(lines)
		stored, err := Seal(nil, all, 0, ends, nil)
		parttest.Must(t, err)
		if !Splits(stored) {
			return
		}
		s, err := OpenSplit(stored, len(lines))
		parttest.Must(t, err)
		defer s.Release()
		if got := joined(s); !bytes.Equal(got, all) {
			rt.Fatalf("%q\nbecame %q", all, got)
		}
		if got, err := s.Decode(); err != nil || !bytes.Equal(got, all) {
			rt.Fatalf("%q\nwas decoded as %q, %v", all, got, err)
		}
		if len(s.Ends) != len(lines) {
			rt.Fatalf("%d lines, should be %d", len(s.Ends), len(lines))
		}
		for i := range s.Columns[1:] {
			c := &s.Columns[i+1]
			if c.Before >= 0 {
				shared++
			}
			text, _ := s.Column(uint32(i + 1))
			for _, b := range text {
				digit := b-'0' <= 9
				if c.Class == model.TextDigits && !digit || c.Class == model.TextWords && !digit && b != '-' && b != ':' && (b|0x20 < 'a' || b|0x20 > 'z') {
					rt.Fatalf("%q in a column of class %d", b, c.Class)
				}
			}
		}
	})
	if shared == 0 {
		t.Error("no two columns share a hop")
	}
}

// TestSplitOtherLines: a page of another number of lines is not opened.
func TestSplitOtherLines(t *testing.T) {
	all, ends := joinLines(randomLines(rand.New(rand.NewPCG(1, 1)), 500, 0))
	stored, err := Seal(nil, all, 0, ends, nil)
	parttest.Must(t, err)
	for _, n := range []int{0, 499, 501} {
		if _, err := OpenSplit(stored, n); !errors.Is(err, model.ErrCorrupt) {
			t.Errorf("%d lines: %v", n, err)
		}
	}
}
