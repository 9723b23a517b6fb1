package extract

// MaxDepth bounds how deep objects of a line may lie in each other.
const MaxDepth = 256

// MaxFields bounds the fields of a Finder.
const MaxFields = 16

// Finder finds fields in lines. Lines of a stream mostly have the same keys in the same order. So it first
// compares with the key that followed last time, which takes no search and no lookup. It is used by one
// goroutine.
type Finder struct {
	find  func(*Finder, []byte) bool
	names []string
	// Of logfmt: a line with an error is not plain, and neither is an empty value.
	strict, keepEmpty bool

	// Ignored are fields that are not looked for: bit i for the field names[i].
	Ignored uint32
	found   uint32
	values  [MaxFields][]byte

	keys keyTable
	// Of lines that are split.
	grammar  grammar
	split    *splitFinder
	brackets []byte // memory for those of arrays
}

// NewJSON returns a Finder of fields by the names of their labels, which are sorted and at most MaxFields.
func NewJSON(names []string) *Finder {
	return newFinder(&Finder{find: (*Finder).findJSON, names: names, grammar: grammar{
		begins: beginsObject, text: (*splitFinder).jsonText, column: (*splitFinder).jsonColumn, end: func(*splitFinder) {},
	}})
}

// NewLogfmt is NewJSON for logfmt. Strict leaves lines with errors to others, and keepEmpty those with empty
// values.
func NewLogfmt(names []string, strict, keepEmpty bool) *Finder {
	return newFinder(&Finder{find: (*Finder).findLogfmt, names: names, strict: strict, keepEmpty: keepEmpty, grammar: grammar{
		begins: betweenPairs, text: (*splitFinder).logfmtText, column: (*splitFinder).logfmtColumn, end: (*splitFinder).logfmtEnd,
	}})
}

func newFinder(f *Finder) *Finder {
	f.keys.forget()
	return f
}

// Find finds the fields of a line. It returns false if the line is not plain, and then finds nothing.
func (f *Finder) Find(line []byte) bool {
	if f.found = 0; f.keys.full {
		f.keys.forget()
	}
	return f.find(f, line)
}

// Value returns the value of field i in the line, and whether the line has it. It aliases the line.
func (f *Finder) Value(i int) (value string, ok bool) {
	if f.found>>i&1 == 0 {
		return "", false
	}
	return text(f.values[i]), true
}

// Keys returns how many keys the Finder knows.
func (f *Finder) Keys() int { return len(f.keys.all) }

// take notes the value of a field, unless an earlier key has it. It returns false if the value is not plain.
func (f *Finder) take(field int, value []byte, unescapes bool) bool {
	if bit := uint32(1) << field; (f.found|f.Ignored)&bit == 0 {
		if !plain(value, unescapes) {
			return false
		}
		f.values[field] = value
		f.found |= bit
	}
	return true
}

// all reports whether all fields were found. One that is ignored never is.
func (f *Finder) all() bool { return f.found == 1<<len(f.names)-1 }

// outcome is how reading an object ended.
type outcome uint8

const (
	done     outcome = iota
	unusual          // it is not plain
	complete         // nothing of the rest is needed
)
