package syntax

import "time"

// Condition is what a label filter asks of the labels of a line: an [*AndCondition], [*OrCondition],
// [*StringCondition], [*NumberCondition], [*DurationCondition], [*BytesCondition] or [*IPCondition].
type Condition interface {
	Node
	isCondition()
}

// CompareOp is how a label filter compares its label with a quantity, in LogQL's spelling.
type CompareOp string

// The comparisons. A single = in the text is ==.
const (
	CompareEqual          CompareOp = "=="
	CompareNotEqual       CompareOp = "!="
	CompareGreater        CompareOp = ">"
	CompareGreaterOrEqual CompareOp = ">="
	CompareLess           CompareOp = "<"
	CompareLessOrEqual    CompareOp = "<="
)

// AndCondition holds if both sides hold. The text says and, a comma, or nothing at all between them.
type AndCondition struct {
	Pos
	Left, Right Condition
}

// OrCondition holds if at least one side holds.
type OrCondition struct {
	Pos
	Left, Right Condition
}

// StringCondition compares the value as a string. A label that is absent has the value "".
type StringCondition struct {
	*Matcher
}

// NumberCondition compares the value as a number.
type NumberCondition struct {
	Pos
	Label string
	Op    CompareOp
	Value float64
}

// DurationCondition compares the value as a duration.
type DurationCondition struct {
	Pos
	Label string
	Op    CompareOp
	Value time.Duration
}

// BytesCondition compares the value as a size.
type BytesCondition struct {
	Pos
	Label string
	Op    CompareOp
	Value uint64 // bytes
}

// IPCondition compares the value as an address: label = ip("...") or label != ip("...").
type IPCondition struct {
	Pos
	Label string
	// Op is CompareEqual or CompareNotEqual.
	Op CompareOp
	// Addresses is an address, a range of addresses or a CIDR. It was not looked at.
	Addresses string
}

func (*AndCondition) isCondition()      {}
func (*OrCondition) isCondition()       {}
func (*StringCondition) isCondition()   {}
func (*NumberCondition) isCondition()   {}
func (*DurationCondition) isCondition() {}
func (*BytesCondition) isCondition()    {}
func (*IPCondition) isCondition()       {}

func (c *AndCondition) children(visit func(Node)) { visit(c.Left); visit(c.Right) }
func (c *OrCondition) children(visit func(Node))  { visit(c.Left); visit(c.Right) }

// String returns the canonical text.
func (c *AndCondition) String() string { return text(c) }

// String returns the canonical text.
func (c *OrCondition) String() string { return text(c) }

// String returns the canonical text.
func (c *StringCondition) String() string { return text(c) }

// String returns the canonical text.
func (c *NumberCondition) String() string { return text(c) }

// String returns the canonical text.
func (c *DurationCondition) String() string { return text(c) }

// String returns the canonical text.
func (c *BytesCondition) String() string { return text(c) }

// String returns the canonical text.
func (c *IPCondition) String() string { return text(c) }
