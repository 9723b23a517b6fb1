package selection

import (
	"cmp"
	"math"

	"github.com/shaledb/shale/internal/model"
)

// Direction says from which end of the range lines are wanted.
type Direction uint8

// The directions, in Loki's words: backward is the newest first.
const (
	Backward Direction = iota
	Forward
)

// CompareTimes orders times: what is wanted first is less.
func (d Direction) CompareTimes(a, b int64) int {
	if d == Backward {
		return cmp.Compare(b, a)
	}
	return cmp.Compare(a, b)
}

// Rank maps times so that what is wanted first is less.
func (d Direction) Rank(t int64) int64 {
	if d == Backward {
		return ^t
	}
	return t
}

// CompareRanges orders ranges by the time in them that is wanted first.
func (d Direction) CompareRanges(a, b model.TimeRange) int {
	return d.CompareTimes(d.First(a), d.First(b))
}

// First returns the time of a range that is wanted first.
func (d Direction) First(r model.TimeRange) int64 {
	if d == Backward {
		return r.Max
	}
	return r.Min
}

// Cut returns what of a range is at least as near as t.
func (d Direction) Cut(r model.TimeRange, t int64) model.TimeRange {
	if d == Backward {
		r.Min = max(r.Min, t)
	} else {
		r.Max = min(r.Max, t)
	}
	return r
}

// Step is what moves an index of rows, which are by time, on.
func (d Direction) Step() int {
	if d == Backward {
		return -1
	}
	return 1
}

// Farthest is the time that is wanted last.
func (d Direction) Farthest() int64 {
	if d == Backward {
		return math.MinInt64
	}
	return math.MaxInt64
}

// String returns the word that requests use.
func (d Direction) String() string {
	if d == Backward {
		return "backward"
	}
	return "forward"
}
