package extract

import (
	"encoding/binary"
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// splitFinder finds fields in lines that are not put together. What a fragment of text means depends on
// nothing but where in a line it begins. So the fragments of a hop are read once for each place that they
// follow, and give a step: the place after them, and what to do with the values of fields. A line is then a
// few steps, found by number, and the bytes of other fields are never touched.
type splitFinder struct {
	*Finder
	keys   keyTable
	page   *model.SplitText
	serial uint64       // of the page
	values []columnText // of the page, by column
	steps  []step       // of each fragment the first one, and then the others
	doings []doing
	// Of all pages: the places that there are, and the texts of fragments that were read, each after the
	// place that it follows.
	places    []place
	placeOf   map[uint64]uint16
	texts     map[string]readText
	textBytes int
	textDo    []doing // with offsets in the text
	probe     []byte
	path      []uint32
	buf       []byte // values of the line that lie in several pieces
	mark      int    // where the last of them begins

	now place // of the step that is being made
}

// readText is what the text of a fragment does, which is the same on all pages.
type readText struct {
	to          place
	first, last uint32 // splitFinder.textDo
}

// columnText is the values of a column: see [model.TextValues].
type columnText struct {
	text []byte
	ends []uint32
}

func (t *columnText) value(i uint32) []byte {
	if i == 0 {
		return t.text[:t.ends[0]]
	}
	return t.text[t.ends[i-1]:t.ends[i]]
}

// place is a place in a line: what has been read up to there.
type place struct {
	mode mode
	key  int32 // whose value is being read
	// begun says that a part of that value has been read.
	begun bool
	// open are the brackets that are open within the value, a bit for each: 1 for an object.
	open  uint32
	depth uint8
}

// bits identifies the place: a map finds a number in a fraction of the time that it takes for the fields.
func (p *place) bits() uint64 {
	// A key is below maxLineKeys, and so has room in 16 bits.
	b := uint64(p.open)<<32 | uint64(p.key)<<16 | uint64(p.depth)<<8 | uint64(p.mode)<<1
	if p.begun {
		b |= 1
	}
	return b
}

// grammar reads what lines consist of. Each function moves splitFinder.now, and notes what to do.
type grammar struct {
	begins mode
	text   func(x *splitFinder, b []byte)
	column func(x *splitFinder, column uint32)
	end    func(x *splitFinder) // of a line
}

// mode is a kind of place.
type mode uint8

const (
	unknown mode = iota // the line may not be plain
	ended               // the rest of the line does not matter
	// JSON
	beginsObject
	expectsKey
	expectsValue
	inString
	inEscape
	inNumber
	afterValue
	nested
	nestedString
	nestedEscape
	// logfmt
	betweenPairs
	inKey
	inWord
	beginsValue
	inPlain
	inQuoted
	inQuotedEscape
)

// step is what a hop does.
type step struct {
	from, to    uint16 // places; from is one more, and 0 if there is no step yet
	first, last uint32 // doings
	other       uint32 // the index of the step of this fragment from another place, or 0
	// stops says that the line is decided, and finds that it is plain.
	stops, finds bool
}

// doing is a part of a step.
type doing struct {
	what  deed
	field uint8
	// off and len are of the text of the page, or off is a column.
	off, len uint32
}

type deed uint8

const (
	doBegin    deed = iota // a value that lies in several pieces
	doText                 // is the next piece
	doColumn               // has the next piece
	doEnd                  // the value
	takeText               // as a value
	takeColumn             // for a value
)

const (
	// maxPlaces, maxDoings and maxTextBytes bound what is kept for pages whose lines are all different.
	maxPlaces, maxDoings, maxTextBytes = 512, 1 << 15, 512 << 10
	// maxOtherSteps bounds the steps of a page besides the first ones of its fragments.
	maxOtherSteps = 1 << 12
)

// SetPage says that FindSplit is about the lines of another page.
func (f *Finder) SetPage(p *model.SplitText) {
	x := f.split
	if x == nil {
		x = &splitFinder{Finder: f, placeOf: make(map[uint64]uint16), texts: make(map[string]readText)}
		x.forget()
		f.split = x
	}
	if x.page == p && x.serial == p.Serial {
		return
	}
	if x.keys.full || len(x.places) == maxPlaces || x.textBytes > maxTextBytes || len(x.textDo) > maxDoings {
		x.forget()
	}
	x.page, x.serial = p, p.Serial
	if cap(x.values) < len(p.Columns) {
		x.values = make([]columnText, len(p.Columns))
	}
	x.values = x.values[:len(p.Columns)]
	clear(x.values)
	x.forgetSteps()
}

// forget forgets the lines of all pages.
func (x *splitFinder) forget() {
	x.keys.forget()
	clear(x.placeOf)
	clear(x.texts)
	x.textBytes, x.textDo = 0, x.textDo[:0]
	x.places = append(x.places[:0], place{mode: x.grammar.begins})
}

// forgetSteps forgets the steps of the page.
func (x *splitFinder) forgetSteps() {
	n := len(x.page.Fragments)
	x.steps = slices.Grow(x.steps[:0], n)[:n]
	clear(x.steps)
	x.doings = x.doings[:0]
}

// FindSplit finds the fields of a line of the page. It returns false if the line may not be plain.
func (f *Finder) FindSplit(line int) bool {
	x, p := f.split, f.split.page
	f.found = 0
	x.buf = x.buf[:0]
	from, at := uint32(0), uint16(0)
	if line > 0 {
		from = p.Ends[line-1]
	}
	for _, h := range p.Hops[from:p.Ends[line]] {
		s := &x.steps[h.Fragment]
		if s.from != at+1 {
			s = x.otherStep(h.Fragment, at)
		}
		if s.first < s.last && x.do(s, h.Value) {
			return true
		}
		if s.stops {
			return s.finds
		}
		at = s.to
	}
	return false
}

// do does what a step says, with the values of a hop, and reports whether all fields were found.
func (x *splitFinder) do(s *step, value uint32) bool {
	for i := range x.doings[s.first:s.last] {
		d := &x.doings[s.first:s.last][i]
		var v []byte
		switch d.what {
		case doBegin:
			x.mark = len(x.buf)
			continue
		case doText:
			x.buf = append(x.buf, x.page.Text[d.off:d.off+d.len]...)
			continue
		case doColumn:
			x.buf = append(x.buf, x.values[d.off].value(value)...)
			continue
		case doEnd:
			v = x.buf[x.mark:]
		case takeText:
			v = x.page.Text[d.off : d.off+d.len]
		case takeColumn:
			v = x.values[d.off].value(value)
		}
		if bit := uint32(1) << d.field; (x.found|x.Ignored)&bit == 0 {
			x.Finder.values[d.field] = v
			if x.found |= bit; x.all() {
				return true
			}
		}
	}
	return false
}

// otherStep returns the step of a fragment from a place, if that is not the one that was made first.
func (x *splitFinder) otherStep(fragment uint32, from uint16) *step {
	if len(x.doings) > maxDoings || len(x.steps)-len(x.page.Fragments) > maxOtherSteps {
		x.forgetSteps()
	}
	s := &x.steps[fragment]
	for s.from != from+1 {
		if s.from == 0 {
			x.makeStep(s, fragment, from)
			break
		}
		if s.other == 0 {
			s.other = uint32(len(x.steps))
			x.steps = append(x.steps, step{})
			s = &x.steps[len(x.steps)-1]
			continue
		}
		s = &x.steps[s.other]
	}
	return s
}

// makeStep reads the fragments of the hop that ends with a fragment, from a place on.
func (x *splitFinder) makeStep(s *step, fragment uint32, from uint16) {
	*s = step{from: from + 1, first: uint32(len(x.doings))}
	p := x.page
	x.path = x.path[:0]
	for f := int32(fragment); f >= 0; {
		x.path = append(x.path, uint32(f))
		f = p.Columns[p.Fragments[f].After].Before
	}
	x.now = x.places[from]
	for i := len(x.path) - 1; i >= 0 && x.now.mode != unknown && x.now.mode != ended; i-- {
		f := &p.Fragments[x.path[i]]
		if f.After != 0 {
			x.grammar.column(x, f.After)
		}
		x.readText(p.Bytes(f), f.Off)
	}
	if p.Fragments[fragment].Column == 0 {
		x.grammar.end(x)
		if x.now.mode != ended {
			x.now.mode = unknown
		}
	}
	x.joinDoings(int(s.first))
	s.last = uint32(len(x.doings))
	switch x.now.mode {
	case unknown:
		s.stops = true
	case ended:
		s.stops, s.finds = true, true
	default:
		if s.to = x.number(); s.to == 0 {
			s.stops = true
		}
	}
}

// readText reads a text, which begins at an offset of the page's.
func (x *splitFinder) readText(b []byte, off uint32) {
	if x.now.mode == unknown || x.now.mode == ended {
		return
	}
	first := len(x.doings)
	x.probe = append(binary.LittleEndian.AppendUint64(x.probe[:0], x.now.bits()), b...)
	t, known := x.texts[string(x.probe)]
	if known {
		x.now = t.to
		x.doings = append(x.doings, x.textDo[t.first:t.last]...)
	} else {
		x.grammar.text(x, b)
		if x.textBytes <= maxTextBytes {
			t = readText{to: x.now, first: uint32(len(x.textDo))}
			x.textDo = append(x.textDo, x.doings[first:]...)
			t.last = uint32(len(x.textDo))
			x.texts[string(x.probe)] = t
			x.textBytes += len(x.probe)
		}
	}
	for i := range x.doings[first:] {
		if d := &x.doings[first+i]; d.what == doText || d.what == takeText {
			d.off += off
		}
	}
}

// joinDoings takes a value that is just one of a column from there, without a copy.
func (x *splitFinder) joinDoings(first int) {
	all := x.doings[first:]
	n := 0
	for i := 0; i < len(all); i++ {
		if i+2 < len(all) && all[i].what == doBegin && all[i+1].what == doColumn && all[i+2].what == doEnd {
			all[n] = doing{takeColumn, all[i+2].field, all[i+1].off, 0}
			i += 2
		} else {
			all[n] = all[i]
		}
		n++
	}
	x.doings = x.doings[:first+n]
}

// number returns the number of the place, or 0 if there are too many.
func (x *splitFinder) number() uint16 {
	bits := x.now.bits()
	n, known := x.placeOf[bits]
	if !known && len(x.places) < maxPlaces {
		n = uint16(len(x.places))
		x.places = append(x.places, x.now)
		x.placeOf[bits] = n
	}
	return n
}

// field returns the field of the key whose value is being read, or -1.
func (x *splitFinder) field() int { return x.keys.all[x.now.key].field }

func (x *splitFinder) doing(what deed, off, n uint32) {
	x.doings = append(x.doings, doing{what, uint8(max(x.field(), 0)), off, n})
}

// addText adds text at an offset to the value that is being read.
func (x *splitFinder) addText(b []byte, off int) {
	if len(b) == 0 {
		return
	}
	if x.field() >= 0 {
		if !ascii(b) {
			x.now.mode = unknown
			return
		}
		x.begin()
		x.doing(doText, uint32(off), uint32(len(b)))
	}
	x.now.begun = true
}

// addColumn adds a value of a column to the value that is being read.
func (x *splitFinder) addColumn(column uint32) {
	if x.field() >= 0 {
		x.begin()
		if x.values[column].ends == nil {
			x.values[column].text, x.values[column].ends = x.page.Values.Column(column)
		}
		x.doing(doColumn, column, 0)
	}
	x.now.begun = true
}

func (x *splitFinder) begin() {
	if !x.now.begun {
		x.doing(doBegin, 0, 0)
	}
}

// endValue ends the value that is being read with a text at an offset, which may be empty.
func (x *splitFinder) endValue(b []byte, off int, unescapes bool) {
	if x.field() >= 0 {
		switch {
		case !x.now.begun && !plain(b, unescapes), x.now.begun && !ascii(b):
			x.now.mode = unknown
			return
		case !x.now.begun:
			x.doing(takeText, uint32(off), uint32(len(b)))
		default:
			if len(b) > 0 {
				x.doing(doText, uint32(off), uint32(len(b)))
			}
			x.doing(doEnd, 0, 0)
		}
	}
	x.now.begun = false
}
