package syntax

// Stage is a step that each line of a log query runs through: a [*LineFilter], [*JSONParser],
// [*LogfmtParser], [*RegexpParser], [*PatternParser], [*UnpackParser], [*LabelFilter], [*LineFormat],
// [*LabelFormat], [*Decolorize], [*DropLabels] or [*KeepLabels].
type Stage interface {
	Node
	isStage()
}

// LineOp is how a line filter compares, in LogQL's spelling.
type LineOp string

// The ways to compare. Each but the first three is the negation of one of them.
const (
	LineContains   LineOp = "|="
	LineMatches    LineOp = "|~"
	LinePattern    LineOp = "|>"
	LineNotContain LineOp = "!="
	LineNotMatch   LineOp = "!~"
	LineNotPattern LineOp = "!>"
)

// Negated reports whether the filter keeps the lines that do not compare.
func (op LineOp) Negated() bool { return op[0] == '!' }

// LineFilter keeps the lines that compare with any of its operands. A negated one has exactly one operand: !=
// "a" or "b" is read as != "a" != "b", which is what it means.
type LineFilter struct {
	Pos
	Op  LineOp
	Any []LineOperand
}

// LineOperand is a string to look for, a regular expression or a pattern, as the operator says; or addresses.
// Neither of them was looked at by the parser, except for the cost of the regular expression.
type LineOperand struct {
	Pos
	// IP says that Value is an address, a range of addresses or a CIDR, from ip("..."). With other operators
	// than |= and != that is an error of the stage.
	IP    bool
	Value string
}

// Extraction takes a value out of a line into a label.
type Extraction struct {
	Pos
	Label string
	// From is the path or the key, in the parser's own notation. Left out in the text, it is the label.
	From string
}

// JSONParser is | json: all properties, or those of Extract if there are any.
type JSONParser struct {
	Pos
	Extract []Extraction
}

// LogfmtParser is | logfmt: all keys, or those of Extract if there are any.
type LogfmtParser struct {
	Pos
	Strict    bool // --strict: the first error ends the line
	KeepEmpty bool // --keep-empty: keys without a value become labels
	Extract   []Extraction
}

// RegexpParser is | regexp: named groups become labels. The expression is valid and has a named group.
type RegexpParser struct {
	Pos
	Pattern string
}

// PatternParser is | pattern. The pattern is valid and has a named capture.
type PatternParser struct {
	Pos
	Pattern string
}

// UnpackParser is | unpack.
type UnpackParser struct {
	Pos
}

// LabelFilter keeps the lines whose labels satisfy a condition.
type LabelFilter struct {
	Pos
	Condition Condition
}

// LineFormat is | line_format. The template was not looked at.
type LineFormat struct {
	Pos
	Template string
}

// LabelFormat is | label_format.
type LabelFormat struct {
	Pos
	Assignments []Assignment
}

// Assignment gives a label a new value. Templates and names were not looked at.
type Assignment struct {
	Pos
	Label string
	// Rename says that Value is the label that is renamed; else it is a template.
	Rename bool
	Value  string
}

// Decolorize is | decolorize.
type Decolorize struct {
	Pos
}

// DropLabels is | drop.
type DropLabels struct {
	Pos
	Labels []LabelChoice
}

// KeepLabels is | keep.
type KeepLabels struct {
	Pos
	Labels []LabelChoice
}

// LabelChoice names a label, whatever its value, or under a condition.
type LabelChoice struct {
	Pos
	Name    string
	Matcher *Matcher // nil: whatever the value; else its name is Name
}

func (*LineFilter) isStage()    {}
func (*JSONParser) isStage()    {}
func (*LogfmtParser) isStage()  {}
func (*RegexpParser) isStage()  {}
func (*PatternParser) isStage() {}
func (*UnpackParser) isStage()  {}
func (*LabelFilter) isStage()   {}
func (*LineFormat) isStage()    {}
func (*LabelFormat) isStage()   {}
func (*Decolorize) isStage()    {}
func (*DropLabels) isStage()    {}
func (*KeepLabels) isStage()    {}

func (s *LabelFilter) children(visit func(Node)) { visit(s.Condition) }

// String returns the canonical text, from its operator on.
func (s *LineFilter) String() string { return text(s) }

// String returns the canonical text, from | on.
func (s *JSONParser) String() string { return text(s) }

// String returns the canonical text, from | on.
func (s *LogfmtParser) String() string { return text(s) }

// String returns the canonical text, from | on.
func (s *RegexpParser) String() string { return text(s) }

// String returns the canonical text, from | on.
func (s *PatternParser) String() string { return text(s) }

// String returns the canonical text, from | on.
func (s *UnpackParser) String() string { return text(s) }

// String returns the canonical text, from | on.
func (s *LabelFilter) String() string { return text(s) }

// String returns the canonical text, from | on.
func (s *LineFormat) String() string { return text(s) }

// String returns the canonical text, from | on.
func (s *LabelFormat) String() string { return text(s) }

// String returns the canonical text, from | on.
func (s *Decolorize) String() string { return text(s) }

// String returns the canonical text, from | on.
func (s *DropLabels) String() string { return text(s) }

// String returns the canonical text, from | on.
func (s *KeepLabels) String() string { return text(s) }
