package lines

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
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
		s, err := OpenSplit(stored, len(lines), uint64(len(all)))
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

// TestSplitOtherLines: a page of another number of lines or bytes is not opened.
func TestSplitOtherLines(t *testing.T) {
	all, ends := joinLines(randomLines(rand.New(rand.NewPCG(1, 1)), 500, 0))
	stored, err := Seal(nil, all, 0, ends, nil)
	parttest.Must(t, err)
	for _, c := range []struct{ lines, bytes int }{{0, 0}, {499, 0}, {501, 0}, {500, 1}, {500, -1}} {
		if _, err := OpenSplit(stored, c.lines, uint64(len(all)+c.bytes)); !errors.Is(err, model.ErrCorrupt) {
			t.Errorf("%d lines of %d bytes more: %v", c.lines, c.bytes, err)
		}
	}
}

// forgedColumn is a column of a page that no writer makes: its kind, how many visits of which values, and the
// fragments that follow them.
type forgedColumn struct {
	kind    byte
	visits  int
	numbers []int64
	lengths []int64
	columns []int64
	next    []int64 // if there are several fragments
}

// forgeColumns returns the columns of a page, with the text of their fragments.
func forgeColumns(t *testing.T, text string, columns ...forgedColumn) []byte {
	t.Helper()
	var c column.IntCoder
	soft := binary.AppendUvarint(nil, uint64(len(columns)))
	for _, f := range columns {
		soft = binary.AppendUvarint(append(soft, f.kind), uint64(f.visits))
		soft = binary.AppendUvarint(soft, uint64(len(f.lengths)))
		soft = c.Append(c.Append(soft, f.lengths), f.columns)
		if len(f.lengths) > 1 {
			soft = c.Append(soft, f.next)
		}
		if f.kind == fieldNumber {
			soft = c.Append(soft, f.numbers)
		}
	}
	page, err := file.SealPage([]byte{0}, append(soft, text...), file.CodecZstd)
	parttest.Must(t, err)
	return page
}

// TestForgedSplit: a page is opened split only if its lines have the bytes that it names, and no value is
// left over: as when they are put together.
func TestForgedSplit(t *testing.T) {
	lines := forgedColumn{fieldEnd, 2, nil, []int64{8}, []int64{1}, nil}
	for _, c := range []struct {
		name    string
		raw     int
		columns []forgedColumn
		ok      bool
	}{
		{"right", 22, []forgedColumn{lines, {fieldNumber, 2, []int64{7, 123}, []int64{1}, []int64{0}, nil}}, true},
		{"a fragment that no line has", 22, []forgedColumn{lines, {fieldNumber, 2, []int64{7, 123}, []int64{1, 0}, []int64{0, 1}, []int64{0, 0}}}, true},
		{"more bytes", 23, []forgedColumn{lines, {fieldNumber, 2, []int64{7, 123}, []int64{1}, []int64{0}, nil}}, false},
		{"fewer bytes", 21, []forgedColumn{lines, {fieldNumber, 2, []int64{7, 123}, []int64{1}, []int64{0}, nil}}, false},
		{"a value too many", 23, []forgedColumn{lines, {fieldNumber, 3, []int64{7, 123, 5}, []int64{1}, []int64{0}, nil}}, false},
		{"a ring", 26, []forgedColumn{lines, {fieldNumber, 2, []int64{7, 123}, []int64{1}, []int64{0}, nil},
			{fieldNumber, 1, []int64{5}, []int64{0}, []int64{3}, nil}, {fieldNumber, 1, []int64{666}, []int64{0}, []int64{2}, nil}}, false},
	} {
		page := forgeColumns(t, `{"abcd":}`, c.columns...)
		s, d := &Split{raw: c.raw}, &decoder{}
		err := s.open(page, 2)
		_, want := d.decode(page, c.raw, 0, c.raw)
		if (err == nil) != c.ok || (want == nil) != c.ok || err != nil && !errors.Is(err, model.ErrCorrupt) {
			t.Errorf("%s: %v, put together %v", c.name, err, want)
		}
	}
}

// TestDigits: numbers have the length with which they are written.
func TestDigits(t *testing.T) {
	numbers := []uint64{0, math.MaxUint64}
	for p := uint64(1); ; p *= 10 {
		if numbers = append(numbers, p-1, p, p+1); p > math.MaxUint64/10 {
			break
		}
	}
	for bit := range 64 {
		numbers = append(numbers, 1<<bit-1, 1<<bit)
	}
	for _, v := range numbers {
		if got, want := digitsOf(v), putNumber(make([]byte, 20), v); got != want {
			t.Errorf("%d has %d digits, should be %d", v, got, want)
		}
	}
}
