package line_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/line/linetest"
)

// anySplit builds pages whose lines are cut into fragments and values anywhere, and not only where our writer
// cuts them: in the middle of keys, numbers, words and escapes.
type anySplit struct {
	r       *rand.Rand
	page    model.SplitText
	ids     map[fragmentKey]uint32
	counts  []int // of the fragments of a column
	values  [][][]byte
	visited [][]visit // by line
	texts   [][]byte
}

type fragmentKey struct {
	after, column uint32
	text          string
}

type visit struct{ fragment, value uint32 }

// anyForm is how lines of one kind are cut: at[i] is where segment i ends. Every other one is a value.
type anyForm struct {
	line    []byte
	at      []int
	columns []uint32 // of the values
}

// serials tell the pages of anySplit from each other.
var serials uint64 = 1 << 40

func newAnySplit(r *rand.Rand) *anySplit {
	serials++
	s := &anySplit{r: r, ids: make(map[fragmentKey]uint32)}
	s.page.Serial, s.page.Values = serials, s
	s.addColumn()
	return s
}

func (s *anySplit) addColumn() uint32 {
	s.page.Columns = append(s.page.Columns, model.TextColumn{Class: model.TextDigits, Before: -1})
	s.counts, s.values = append(s.counts, 0), append(s.values, nil)
	return uint32(len(s.values) - 1)
}

// form cuts a line.
func (s *anySplit) form(line []byte) *anyForm {
	f := &anyForm{line: line}
	wild, rare := s.r.IntN(8) == 0, 1<<s.r.IntN(8)
	for i := 0; i < len(line); {
		if word := isWordByte(line[i]); !wild && !word || s.r.IntN(rare) > 0 {
			i++
			continue
		}
		end := i + 1
		for end < len(line) && (wild || isWordByte(line[end])) && s.r.IntN(8) > 0 {
			end++
		}
		f.at = append(f.at, i, end)
		column := uint32(len(s.values) - 1)
		if column == 0 || s.r.IntN(5) > 0 {
			column = s.addColumn()
		}
		f.columns = append(f.columns, column)
		i = end
	}
	f.at = append(f.at, len(line))
	return f
}

func isWordByte(c byte) bool {
	return c-'0' <= 9 || c|0x20 >= 'a' && c|0x20 <= 'z' || c == '-' || c == ':'
}

// value returns a value like another one.
func (s *anySplit) value(like []byte) (v []byte) {
	for _, c := range like {
		switch n := s.r.IntN(12); {
		case n == 0:
			continue
		case n == 1:
			v = append(v, c)
		case n < 6 && c-'0' <= 9:
			c = byte('0' + s.r.IntN(10))
		}
		v = append(v, c)
	}
	if len(v) == 0 {
		return like
	}
	return v
}

// add adds a line of a form.
func (s *anySplit) add(f *anyForm) {
	var text []byte
	var visits []visit
	after, value, from := uint32(0), uint32(0), 0
	for i := 0; i < len(f.at); i += 2 {
		k := fragmentKey{after: after, text: string(f.line[from:f.at[i]])}
		if i+1 < len(f.at) {
			k.column = f.columns[i/2]
		}
		id, ok := s.ids[k]
		if !ok {
			id = uint32(len(s.page.Fragments))
			s.ids[k] = id
			s.page.Fragments = append(s.page.Fragments, model.TextFragment{
				Off: uint32(len(s.page.Text)), Len: uint32(len(k.text)), After: after, Column: k.column,
			})
			s.page.Text = append(s.page.Text, k.text...)
			s.counts[after]++
		}
		text = append(text, k.text...)
		visits = append(visits, visit{id, value})
		if k.column == 0 {
			break
		}
		v := s.value(f.line[f.at[i]:f.at[i+1]])
		text = append(text, v...)
		after, value, from = k.column, uint32(len(s.values[k.column])), f.at[i+1]
		s.values[after] = append(s.values[after], v)
		c := &s.page.Columns[after]
		for _, b := range v {
			switch {
			case !isWordByte(b):
				c.Class = model.TextAny
			case b-'0' > 9 && c.Class == model.TextDigits:
				c.Class = model.TextWords
			}
		}
	}
	s.texts, s.visited = append(s.texts, text), append(s.visited, visits)
}

// finish joins columns that always follow each other, and writes the hops.
func (s *anySplit) finish() {
	for i := range s.page.Fragments {
		f := &s.page.Fragments[i]
		visits := len(s.values[f.After])
		if f.After == 0 {
			visits = len(s.texts)
		}
		if f.Column != 0 && f.Column != f.After && s.counts[f.After] == 1 && visits == len(s.values[f.Column]) && s.page.Columns[f.Column].Before < 0 {
			s.page.Columns[f.Column].Before = int32(i)
		}
	}
	for _, visits := range s.visited {
		for _, v := range visits {
			if c := s.page.Fragments[v.fragment].Column; c == 0 || s.page.Columns[c].Before < 0 {
				s.page.Hops = append(s.page.Hops, model.TextHop{Fragment: v.fragment, Value: v.value})
			}
		}
		s.page.Ends = append(s.page.Ends, uint32(len(s.page.Hops)))
	}
}

// Column implements model.TextValues.
func (s *anySplit) Column(column uint32) (text []byte, ends []uint32) {
	for _, v := range s.values[column] {
		text = append(text, v...)
		ends = append(ends, uint32(len(text)))
	}
	return text, ends
}

// anyPage returns a page of lines of some kinds.
func anyPage(r *rand.Rand, n int, kinds ...[]byte) *anySplit {
	s := newAnySplit(r)
	var forms []*anyForm
	for _, k := range kinds {
		forms = append(forms, s.form(k))
	}
	for range n {
		s.add(forms[r.IntN(len(forms))])
	}
	s.finish()
	return s
}

// joined puts a line together from the hops.
func (s *anySplit) joined(line int) (text []byte) {
	from := uint32(0)
	if line > 0 {
		from = s.page.Ends[line-1]
	}
	for _, h := range s.page.Hops[from:s.page.Ends[line]] {
		var path []*model.TextFragment
		for f := int32(h.Fragment); f >= 0; f = s.page.Columns[s.page.Fragments[f].After].Before {
			path = append(path, &s.page.Fragments[f])
		}
		for i := len(path) - 1; i >= 0; i-- {
			if path[i].After != 0 {
				text = append(text, s.values[path[i].After][h.Value]...)
			}
			text = append(text, s.page.Bytes(path[i])...)
		}
	}
	return text
}

// TestSplitAnywhere compares pages of lines that are cut anywhere with the stages.
func TestSplitAnywhere(t *testing.T) {
	written, pages := append(append(linetest.Lines(), plainLines...), moreLines...), 1000
	if testing.Short() {
		pages = 150
	}
	r := rand.New(rand.NewPCG(7, 8))
	for _, p := range newRunnerPairs(t) {
		for range pages {
			p.setStream(streamsOfPairs[r.IntN(len(streamsOfPairs))])
			metadata := metadataOfPairs[r.IntN(len(metadataOfPairs))]
			var kinds [][]byte
			for range 1 + r.IntN(3) {
				l := []byte(written[r.IntN(len(written))])
				if r.IntN(3) == 0 {
					l = changed(r, string(l))
				}
				kinds = append(kinds, l)
			}
			s := anyPage(r, 20, kinds...)
			for i, text := range s.texts {
				if got := s.joined(i); !bytes.Equal(got, text) {
					t.Fatalf("the test joins %q as %q", text, got)
				}
			}
			p.checkPage(t, &s.page, s.texts, metadata)
		}
		if p.plain < p.unlike/50 {
			t.Errorf("%s: %d lines are decided split, %d are not", p.query, p.plain, p.unlike)
		}
	}
}

// FuzzSplitAnywhere compares pages of any two lines, cut anywhere, with the stages.
func FuzzSplitAnywhere(f *testing.F) {
	for i, l := range append(moreLines, plainLines...) {
		f.Add([]byte(l), []byte(moreLines[i%len(moreLines)]), uint64(i))
	}
	pairs := newRunnerPairs(f)
	f.Fuzz(func(t *testing.T, a, b []byte, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 5))
		s := anyPage(r, 8, a, b)
		for i, p := range pairs {
			p.setStream(streamsOfPairs[i%len(streamsOfPairs)])
			p.checkPage(t, &s.page, s.texts, metadataOfPairs[i%len(metadataOfPairs)])
		}
	})
}
