package extract

import "github.com/shaledb/shale/internal/model"

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
	places []place
	steps  []step // a power of two, found by fragment and place
	doings []doing
	path   []uint32
	buf    []byte // values of the line that lie in several pieces
	mark   int    // where the last of them begins

	// Of the step that is being made.
	now place
	// alone is the index of the doing that begins a value with a column, or -1.
	alone int
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

// grammar reads what lines consist of. Each function moves splitFinder.now, and notes what to do.
type grammar struct {
	begins mode
	text   func(x *splitFinder, b []byte, off uint32)
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
	fragment    uint32 // plus 1
	from, to    uint16 // places
	first, last uint32 // doings
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
	// maxPlaces and maxDoings bound what is kept for pages whose lines are all different.
	maxPlaces, maxDoings = 512, 1 << 15
	minSteps             = 64
)

// SetPage says that FindSplit is about the lines of another page.
func (f *Finder) SetPage(p *model.SplitText) {
	x := f.split
	if x == nil {
		x = &splitFinder{Finder: f}
		x.keys.forget()
		f.split = x
	}
	if x.page == p && x.serial == p.Serial {
		return
	}
	if x.keys.full || len(x.places) == 0 || len(x.places) == maxPlaces {
		x.keys.forget()
		x.places = append(x.places[:0], place{mode: f.grammar.begins})
	}
	x.page, x.serial = p, p.Serial
	n := minSteps
	for n < 2*len(p.Fragments) {
		n *= 2
	}
	if cap(x.steps) < n {
		x.steps = make([]step, n)
	}
	x.steps = x.steps[:n]
	if cap(x.values) < len(p.Columns) {
		x.values = make([]columnText, len(p.Columns))
	}
	x.values = x.values[:len(p.Columns)]
	clear(x.values)
	x.forgetSteps()
}

func (x *splitFinder) forgetSteps() {
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
	mask := uint32(len(x.steps) - 1)
	for _, h := range p.Hops[from:p.Ends[line]] {
		s := &x.steps[(2*h.Fragment+uint32(at))&mask]
		if s.fragment != h.Fragment+1 || s.from != at {
			x.makeStep(s, h.Fragment, at)
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

// makeStep reads the fragments of the hop that ends with a fragment, from a place on.
func (x *splitFinder) makeStep(s *step, fragment uint32, from uint16) {
	if len(x.doings) > maxDoings {
		x.forgetSteps()
	}
	*s = step{fragment: fragment + 1, from: from, first: uint32(len(x.doings))}
	p := x.page
	x.path = x.path[:0]
	for f := int32(fragment); f >= 0; {
		x.path = append(x.path, uint32(f))
		f = p.Columns[p.Fragments[f].After].Before
	}
	x.now, x.alone = x.places[from], -1
	for i := len(x.path) - 1; i >= 0 && x.now.mode != unknown && x.now.mode != ended; i-- {
		f := &p.Fragments[x.path[i]]
		if f.After != 0 {
			x.grammar.column(x, f.After)
		}
		x.grammar.text(x, p.Bytes(f), f.Off)
	}
	if p.Fragments[fragment].Column == 0 {
		x.grammar.end(x)
		if x.now.mode != ended {
			x.now.mode = unknown
		}
	}
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

// number returns the number of the place, or 0 if there are too many.
func (x *splitFinder) number() uint16 {
	for i := 1; i < len(x.places); i++ {
		if x.places[i] == x.now {
			return uint16(i)
		}
	}
	if len(x.places) == maxPlaces {
		return 0
	}
	x.places = append(x.places, x.now)
	return uint16(len(x.places) - 1)
}

// field returns the field of the key whose value is being read, or -1.
func (x *splitFinder) field() int { return x.keys.all[x.now.key].field }

func (x *splitFinder) doing(what deed, off, n uint32) {
	x.doings = append(x.doings, doing{what, uint8(max(x.field(), 0)), off, n})
}

// addText adds text to the value that is being read.
func (x *splitFinder) addText(b []byte, off uint32) {
	x.alone = -1
	if len(b) == 0 {
		return
	}
	if x.field() >= 0 {
		if !ascii(b) {
			x.now.mode = unknown
			return
		}
		x.begin()
		x.doing(doText, off, uint32(len(b)))
	}
	x.now.begun = true
}

// addColumn adds a value of a column to the value that is being read.
func (x *splitFinder) addColumn(column uint32) {
	if x.field() >= 0 {
		x.alone = -1
		if !x.now.begun {
			x.alone = len(x.doings)
		}
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

// endValue ends the value that is being read with a text, which may be empty.
func (x *splitFinder) endValue(b []byte, off uint32, unescapes bool) {
	if x.field() >= 0 {
		switch {
		case !x.now.begun && !plain(b, unescapes), x.now.begun && !ascii(b):
			x.now.mode = unknown
			return
		case !x.now.begun:
			x.doing(takeText, off, uint32(len(b)))
		case len(b) == 0 && x.alone >= 0 && x.alone == len(x.doings)-2:
			column := x.doings[x.alone+1].off
			x.doings = x.doings[:x.alone]
			x.doing(takeColumn, column, 0)
		default:
			if len(b) > 0 {
				x.doing(doText, off, uint32(len(b)))
			}
			x.doing(doEnd, 0, 0)
		}
	}
	x.now.begun, x.alone = false, -1
}
