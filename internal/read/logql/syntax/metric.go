package syntax

import (
	"regexp"
	"time"
)

// RangeOp is an aggregation over the lines of a range of time, in LogQL's spelling.
type RangeOp string

// The aggregations over time. Those from AvgOverTime on need an unwrapped value; Rate and AbsentOverTime go
// with and without, and the others count lines or their bytes.
const (
	CountOverTime    RangeOp = "count_over_time"
	BytesOverTime    RangeOp = "bytes_over_time"
	BytesRate        RangeOp = "bytes_rate"
	Rate             RangeOp = "rate"
	AbsentOverTime   RangeOp = "absent_over_time"
	AvgOverTime      RangeOp = "avg_over_time"
	SumOverTime      RangeOp = "sum_over_time"
	MinOverTime      RangeOp = "min_over_time"
	MaxOverTime      RangeOp = "max_over_time"
	StdvarOverTime   RangeOp = "stdvar_over_time"
	StddevOverTime   RangeOp = "stddev_over_time"
	QuantileOverTime RangeOp = "quantile_over_time"
	FirstOverTime    RangeOp = "first_over_time"
	LastOverTime     RangeOp = "last_over_time"
	RateCounter      RangeOp = "rate_counter"
)

// VectorOp is an aggregation over the elements of a vector, in LogQL's spelling.
type VectorOp string

// The aggregations over vectors.
const (
	Sum        VectorOp = "sum"
	Avg        VectorOp = "avg"
	Min        VectorOp = "min"
	Max        VectorOp = "max"
	Count      VectorOp = "count"
	Stddev     VectorOp = "stddev"
	Stdvar     VectorOp = "stdvar"
	TopK       VectorOp = "topk"
	BottomK    VectorOp = "bottomk"
	ApproxTopK VectorOp = "approx_topk"
	Sort       VectorOp = "sort"
	SortDesc   VectorOp = "sort_desc"
)

// BinaryOp is an operator between vectors and numbers, in LogQL's spelling.
type BinaryOp string

// The operators.
const (
	OpOr             BinaryOp = "or"
	OpAnd            BinaryOp = "and"
	OpUnless         BinaryOp = "unless"
	OpEqual          BinaryOp = "=="
	OpNotEqual       BinaryOp = "!="
	OpGreater        BinaryOp = ">"
	OpGreaterOrEqual BinaryOp = ">="
	OpLess           BinaryOp = "<"
	OpLessOrEqual    BinaryOp = "<="
	OpAdd            BinaryOp = "+"
	OpSub            BinaryOp = "-"
	OpMul            BinaryOp = "*"
	OpDiv            BinaryOp = "/"
	OpMod            BinaryOp = "%"
	OpPow            BinaryOp = "^"
)

// IsSet reports whether the operator works on sets of elements: or, and, unless.
func (op BinaryOp) IsSet() bool { return op == OpOr || op == OpAnd || op == OpUnless }

// Conversion is how the value of an unwrapped label is read, in LogQL's spelling.
type Conversion string

// The conversions. The result of both of durations is in seconds.
const (
	ConvertNumber          Conversion = ""
	ConvertBytes           Conversion = "bytes"
	ConvertDuration        Conversion = "duration"
	ConvertDurationSeconds Conversion = "duration_seconds"
)

// Unwrap takes the value of samples from a label instead of counting lines.
type Unwrap struct {
	Pos
	Label      string
	Conversion Conversion
	// Filters are conditions on the labels after the conversion, __error__ among them. All must hold.
	Filters []Condition
}

// LogRange is the lines of a log query within a range of time.
type LogRange struct {
	Pos
	Query  *LogQuery
	Unwrap *Unwrap       // nil: lines are counted
	Range  time.Duration // the window is (t-Range, t]
	Offset time.Duration // how far the window lies in the past; may be negative
}

// Grouping says which labels the elements of a result have.
type Grouping struct {
	Pos
	Without bool
	Labels  []string
}

// RangeAggregation makes a number of the lines of each window.
type RangeAggregation struct {
	Pos
	Op       RangeOp
	Quantile float64 // of QuantileOverTime only; not bounded to 0..1
	Range    *LogRange
	Grouping *Grouping // nil: by all labels
}

// VectorAggregation makes a vector smaller.
type VectorAggregation struct {
	Pos
	Op VectorOp
	// K is how many elements TopK, BottomK and ApproxTopK keep: at least 1. Else it is 0.
	K    int
	Expr MetricExpr
	// Grouping is the zero value if the text has none: that is the same as by ().
	Grouping Grouping
}

// Cardinality says which side of an operation may have several elements for one of the other side.
type Cardinality uint8

// The cardinalities: one to one, group_left, group_right.
const (
	OneToOne Cardinality = iota
	ManyToOne
	OneToMany
)

// VectorMatching says which elements of the two sides of an operation belong together.
type VectorMatching struct {
	// On says that the labels in Labels must be equal; else all others must be.
	On     bool
	Labels []string
	Card   Cardinality
	// Include lists the labels that the result takes from the side that has one element.
	Include []string
}

// BinaryExpr is an operation between two expressions. At most one of them is a [*Literal]: operations between
// numbers are carried out by the parser, and sets have none.
type BinaryExpr struct {
	Pos
	Op          BinaryOp
	Left, Right MetricExpr
	// Bool says that a comparison gives 0 or 1 instead of leaving elements out.
	Bool     bool
	Matching VectorMatching
}

// Literal is a number.
type Literal struct {
	Pos
	Value float64
}

// Vector is vector(Value): one element without labels.
type Vector struct {
	Pos
	Value float64
}

// LabelReplace is label_replace(Expr, Dst, Replacement, Src, Pattern).
type LabelReplace struct {
	Pos
	Expr                           MetricExpr
	Dst, Replacement, Src, Pattern string
	Regexp                         *regexp.Regexp // Pattern, anchored at both ends
}

func (*RangeAggregation) isExpr()  {}
func (*VectorAggregation) isExpr() {}
func (*BinaryExpr) isExpr()        {}
func (*Literal) isExpr()           {}
func (*Vector) isExpr()            {}
func (*LabelReplace) isExpr()      {}

func (*RangeAggregation) isMetric()  {}
func (*VectorAggregation) isMetric() {}
func (*BinaryExpr) isMetric()        {}
func (*Literal) isMetric()           {}
func (*Vector) isMetric()            {}
func (*LabelReplace) isMetric()      {}

func (e *RangeAggregation) children(visit func(Node))  { visit(e.Range) }
func (e *VectorAggregation) children(visit func(Node)) { visit(e.Expr) }
func (e *BinaryExpr) children(visit func(Node))        { visit(e.Left); visit(e.Right) }
func (*Literal) children(func(Node))                   {}
func (*Vector) children(func(Node))                    {}
func (e *LabelReplace) children(visit func(Node))      { visit(e.Expr) }

func (r *LogRange) children(visit func(Node)) {
	visit(r.Query)
	if r.Unwrap != nil {
		visit(r.Unwrap)
	}
}

func (u *Unwrap) children(visit func(Node)) {
	for _, c := range u.Filters {
		visit(c)
	}
}

// String returns the canonical text.
func (e *RangeAggregation) String() string { return text(e) }

// String returns the canonical text.
func (e *VectorAggregation) String() string { return text(e) }

// String returns the canonical text.
func (e *BinaryExpr) String() string { return text(e) }

// String returns the canonical text.
func (e *Literal) String() string { return text(e) }

// String returns the canonical text.
func (e *Vector) String() string { return text(e) }

// String returns the canonical text.
func (e *LabelReplace) String() string { return text(e) }

// String returns the canonical text.
func (r *LogRange) String() string { return text(r) }

// String returns the canonical text, from | on.
func (u *Unwrap) String() string { return text(u) }
