package lines

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
)

// Split is a page of lines that are not put together: see [model.SplitText].
type Split struct {
	model.SplitText
	stored []byte
	raw    int
	d      decoder
	walks  []walk // by column

	mu    sync.Mutex
	texts []columnText // by column
}

// walk is where the lines have got to in a column that begins a hop.
type walk struct {
	tail uint32 // the last column of the hop
	pos  uint32 // the number of values taken
	text int    // bytes of the fragments within the hop
}

// columnText has the values of a column as text.
type columnText struct {
	made bool
	text []byte
	ends []uint32
}

// opened counts the pages that were opened.
var opened atomic.Uint64

// splits keep the memory of the pages before.
var splits = sync.Pool{New: func() any { return &Split{} }}

// Splits reports whether a stored page has columns.
func Splits(stored []byte) bool { return len(stored) > 0 && stored[0] == Codec }

// OpenSplit opens a page with columns, of so many lines with so many bytes, from its stored bytes. The caller
// gives it up with Release.
func OpenSplit(stored []byte, lines int, size uint64) (*Split, error) {
	codec, raw, b, err := file.OpenEnvelope(stored, file.MaxPageBytes)
	if err != nil {
		return nil, err
	}
	if codec != Codec {
		return nil, column.Corrupt("page of lines: it has no columns")
	}
	if uint64(raw) != size {
		return nil, column.Corrupt("page of lines: %d bytes, should be %d", raw, size)
	}
	s := splits.Get().(*Split)
	s.stored, s.raw = stored, raw
	if err := s.open(b, lines); err != nil {
		s.Release()
		return nil, err
	}
	return s, nil
}

// Release gives up the page. Nothing may refer to it any more.
func (s *Split) Release() {
	s.stored, s.Text = nil, nil
	n := s.d.size() + 16*cap(s.Fragments) + 8*cap(s.Hops) + 4*cap(s.Ends)
	for i := range s.texts[:cap(s.texts)] {
		t := &s.texts[:cap(s.texts)][i]
		n += cap(t.text) + 4*cap(t.ends)
	}
	if n <= keepBytes {
		splits.Put(s)
	}
}

// Size estimates the memory of the page, with the text of all columns.
func (s *Split) Size() int {
	n := len(s.stored) + len(s.Text) + s.raw + 16*len(s.Fragments) + 8*len(s.Hops) + 4*len(s.Ends)
	for i := range s.d.cols {
		n += 16 * s.d.cols[i].visits // its number, the fragment that follows, and the end of its text
	}
	return n
}

// Decode returns the lines, put together.
func (s *Split) Decode() ([]byte, error) { return DecodePage(s.stored) }

func (s *Split) open(b []byte, lines int) error {
	d := &s.d
	text, err := d.openColumns(b, s.raw)
	if err != nil {
		return err
	}
	s.Serial, s.Text, s.Values = opened.Add(1), text, s
	s.Fragments = column.Grow(s.Fragments[:0], len(d.entries))
	s.Columns = column.Grow(s.Columns[:0], len(d.cols))
	s.walks = column.Grow(s.walks[:0], len(d.cols))
	s.texts = s.texts[:min(len(s.texts), len(d.cols))]
	for len(s.texts) < len(d.cols) {
		s.texts = append(s.texts, columnText{})
	}
	for i := range d.cols {
		f := &d.cols[i]
		s.Columns[i] = model.TextColumn{Class: f.class(), Before: -1}
		s.walks[i], s.texts[i].made = walk{tail: uint32(i)}, false
		for k := range f.count {
			e := &d.entries[f.first+k]
			s.Fragments[f.first+k] = model.TextFragment{Off: e.off, Len: e.len, After: uint32(i), Column: e.column}
		}
	}
	if !s.chain() || !s.walk(lines) {
		return column.Corrupt("page of lines: its columns do not make %d lines", lines)
	}
	return nil
}

// class returns which bytes the values have.
func (f *decodedField) class() model.TextClass {
	switch f.kind {
	case fieldNumber, fieldDigits:
		return model.TextDigits
	case fieldString:
		for _, c := range f.bytes {
			if runClass[c] == 0 {
				return model.TextAny
			}
		}
	}
	return model.TextWords
}

// chain joins columns that always follow each other. It returns false if they have no beginning, or several.
// Columns in a ring have none.
func (s *Split) chain() bool {
	d := &s.d
	for i := range d.cols {
		f := &d.cols[i]
		if f.count != 1 || f.visits == 0 {
			continue
		}
		to := d.entries[f.first].column
		if to == 0 || d.cols[to].visits != f.visits {
			continue
		}
		if s.Columns[to].Before >= 0 || to == uint32(i) {
			return false
		}
		s.Columns[to].Before = int32(f.first)
		s.walks[i].tail = to
	}
	for i := range d.entries {
		// A fragment that no line has may lead to a column, too.
		if to := &s.Columns[d.entries[i].column]; to.Before >= 0 && int(to.Before) != i {
			from := s.Fragments[to.Before].After
			to.Before, s.walks[from].tail = -1, from
		}
	}
	reached := 0
	for i := range s.walks {
		if s.Columns[i].Before >= 0 {
			continue
		}
		w := &s.walks[i]
		reached++
		for to := uint32(i); w.tail != to; reached++ {
			w.text += int(d.entries[d.cols[to].first].len)
			to, w.tail = w.tail, s.walks[w.tail].tail
		}
	}
	return reached == len(s.walks)
}

// walk finds the hops of all lines. It returns false if there are not so many lines, values are left, or the
// lines do not have the bytes of the page.
func (s *Split) walk(lines int) bool {
	d := &s.d
	if lines != d.cols[0].visits {
		return false
	}
	s.Hops, s.Ends = s.Hops[:0], s.Ends[:0]
	text := 0
	for range lines {
		c := uint32(0)
		for {
			w := &s.walks[c]
			f := &d.cols[w.tail]
			v := w.pos
			if int(v) >= f.visits {
				return false
			}
			w.pos++
			e := uint32(f.first)
			if len(f.next) > 0 {
				e += f.next[v]
			}
			s.Hops = append(s.Hops, model.TextHop{Fragment: e, Value: v})
			text += w.text + int(d.entries[e].len)
			if c = d.entries[e].column; c == 0 {
				break
			}
		}
		s.Ends = append(s.Ends, uint32(len(s.Hops)))
	}
	for i := range s.walks {
		if s.Columns[i].Before < 0 && int(s.walks[i].pos) != d.cols[i].visits {
			return false
		}
		text += d.cols[i].size()
	}
	return text == s.raw
}

// size returns the bytes of all values together.
func (f *decodedField) size() (n int) {
	switch f.kind {
	case fieldNumber:
		for _, v := range f.numbers {
			n += digitsOf(uint64(v))
		}
	case fieldString:
		n = len(f.bytes)
	default:
		n = f.visits * int(f.least())
	}
	return n
}

// digitsOf returns the number of decimal digits of v.
func digitsOf(v uint64) int {
	n := bits.Len64(v) * 1233 >> 12 // a logarithm: this many digits, or one more
	if n < len(tens) && v >= tens[n] {
		n++
	}
	return max(n, 1)
}

// tens are the powers of ten that fit.
var tens = func() (p [20]uint64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = 10 * p[i-1]
	}
	return p
}()

// Column is [model.TextValues.Column].
func (s *Split) Column(i uint32) (text []byte, ends []uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.texts[i]
	if !t.made {
		t.make(&s.d.cols[i])
	}
	return t.text, t.ends
}

// make writes all values of a column.
func (t *columnText) make(f *decodedField) {
	t.made = true
	t.ends = column.Grow(t.ends[:0], f.visits)
	t.text = t.text[:0]
	if f.kind == fieldString {
		end := uint32(0)
		for i, n := range f.numbers {
			end += uint32(n)
			t.ends[i] = end
		}
		t.text = append(t.text, f.bytes...)
		return
	}
	at := 0
	f.at = 0
	for f.pos = range f.visits {
		if cap(t.text)-at < decodeSlack {
			t.text = append(t.text[:at], make([]byte, max(decodeSlack, (f.visits-f.pos)*max(f.n, 6)))...)
		}
		n, _ := f.value(t.text[at:cap(t.text)], decodeSlack)
		at += n
		t.ends[f.pos] = uint32(at)
	}
	t.text = t.text[:at]
}
