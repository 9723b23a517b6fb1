package model

// SplitText is the lines of a page as they are stored: fragments of text, which many lines share, and columns
// of the values between them. A query that needs little of each line looks at each fragment once and never
// puts the lines together.
//
// A line is a list of hops. A hop is a chain of columns that always follow each other, and ends with a
// fragment: value v of the first column, the fragment before the second column, value v of the second
// column, and so on to the fragment that the hop names. It is valid until the page is released.
type SplitText struct {
	// Serial differs between pages, which may have the same address one after the other.
	Serial uint64
	// Text has the bytes of all fragments.
	Text      []byte
	Fragments []TextFragment
	// Columns hold values, but for Columns[0], which stands for the beginning of a line.
	Columns []TextColumn
	// Hops[Ends[i-1]:Ends[i]] is line i.
	Hops   []TextHop
	Ends   []uint32
	Values TextValues
}

// TextFragment is a fragment in its place in lines.
type TextFragment struct {
	Off, Len uint32 // of its bytes in Text
	After    uint32 // the column that it follows
	Column   uint32 // of the value that follows it; 0: the line ends
}

// Bytes returns the bytes of a fragment.
func (s *SplitText) Bytes(f *TextFragment) []byte { return s.Text[f.Off : f.Off+f.Len] }

// TextColumn is a column of values.
type TextColumn struct {
	Class TextClass
	// Before is the fragment before it if the column before that is in the same hop, or -1.
	Before int32
}

// TextClass says which bytes the values of a column may have. A value has at least one byte.
type TextClass uint8

// The classes.
const (
	TextAny    TextClass = iota
	TextWords            // ASCII letters, digits, - and :
	TextDigits           // decimal digits
)

// TextHop is a step through a line.
type TextHop struct {
	Fragment uint32 // with which the hop ends
	Value    uint32 // the index of its values in their columns
}

// TextValues are the values of columns as text.
type TextValues interface {
	// Column returns the values of a column: value i is text[ends[i-1]:ends[i]]. It is safe for concurrent use.
	Column(column uint32) (text []byte, ends []uint32)
}
