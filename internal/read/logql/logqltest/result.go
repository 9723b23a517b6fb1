package logqltest

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The types of results, in the words of the HTTP API.
const (
	Matrix  = "matrix"
	Vector  = "vector"
	Scalar  = "scalar"
	Streams = "streams"
)

// Result is the result of a query, or the error of one that failed.
type Result struct {
	Error  string
	Type   string
	Series []Series
}

// Series is labels with points, or with lines.
type Series struct {
	Labels []string // name, value, ... sorted by name
	Points []Point
	Lines  []Entry
}

// Point is a value at a time in milliseconds.
type Point struct {
	Time  int64
	Value float64
}

// Entry is a line at a time in nanoseconds.
type Entry struct {
	Time int64
	Text string
}

// Empty reports whether the result has neither a point nor a line. An error is not empty.
func (r *Result) Empty() bool { return r.Error == "" && len(r.Series) == 0 }

// Sort sorts the series by their labels.
func (r *Result) Sort() {
	slices.SortStableFunc(r.Series, func(a, b Series) int { return slices.Compare(a.Labels, b.Labels) })
}

// String returns the result as lines of text; numbers are exact.
func (r *Result) String() string {
	if r.Error != "" {
		return "error " + strconv.Quote(r.Error) + "\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", r.Type)
	for _, s := range r.Series {
		b.WriteString("series")
		for _, l := range s.Labels {
			b.WriteString(" " + strconv.Quote(l))
		}
		b.WriteByte('\n')
		for _, p := range s.Points {
			fmt.Fprintf(&b, "%d %s\n", p.Time-Begin/1e6, strconv.FormatFloat(p.Value, 'g', -1, 64))
		}
		for _, e := range s.Lines {
			fmt.Fprintf(&b, "%d %s\n", e.Time-Begin, strconv.Quote(e.Text))
		}
	}
	return b.String()
}

// Tolerance is how far two values may differ, relative to the greater: the order of a sum is not defined.
const Tolerance = 1e-12

// Near reports whether two values are the same within Tolerance.
func Near(a, b float64) bool {
	if math.IsNaN(a) || math.IsNaN(b) {
		return math.IsNaN(a) && math.IsNaN(b)
	}
	return a == b || math.Abs(a-b) <= Tolerance*max(math.Abs(a), math.Abs(b))
}

// Diff returns the first difference between two results, or "" if they are the same. The order of series
// counts only with ordered, and then among different values.
func Diff(them, us *Result, ordered bool) string {
	if (them.Error == "") != (us.Error == "") {
		return fmt.Sprintf("error %q, want %q", us.Error, them.Error)
	}
	if them.Error != "" {
		if c, d := class(them.Error), class(us.Error); c != d {
			return fmt.Sprintf("error %q, want %q", us.Error, them.Error)
		}
		return ""
	}
	if them.Type != us.Type {
		return fmt.Sprintf("a %s, want a %s", us.Type, them.Type)
	}
	a, b := *them, *us
	if ordered && them.Type == Vector {
		if d := diffOrder(them, us); d != "" {
			return d
		}
	}
	a.Series, b.Series = slices.Clone(a.Series), slices.Clone(b.Series)
	a.Sort()
	b.Sort()
	for i := range max(len(a.Series), len(b.Series)) {
		switch {
		case i == len(a.Series):
			return fmt.Sprintf("has series %q", b.Series[i].Labels)
		case i == len(b.Series) || slices.Compare(a.Series[i].Labels, b.Series[i].Labels) < 0:
			return fmt.Sprintf("lacks series %q", a.Series[i].Labels)
		case !slices.Equal(a.Series[i].Labels, b.Series[i].Labels):
			return fmt.Sprintf("has series %q", b.Series[i].Labels)
		}
		if d := diffSeries(&a.Series[i], &b.Series[i]); d != "" {
			return fmt.Sprintf("series %q: %s", a.Series[i].Labels, d)
		}
	}
	return ""
}

// diffOrder compares the values of a vector in their order.
func diffOrder(them, us *Result) string {
	for i := range min(len(them.Series), len(us.Series)) {
		a, b := them.Series[i], us.Series[i]
		if len(a.Points) == 1 && len(b.Points) == 1 && !Near(a.Points[0].Value, b.Points[0].Value) {
			return fmt.Sprintf("element %d is %g, want %g", i, b.Points[0].Value, a.Points[0].Value)
		}
	}
	return ""
}

func diffSeries(a, b *Series) string {
	for i := range max(len(a.Points), len(b.Points)) {
		switch {
		case i == len(a.Points):
			return fmt.Sprintf("has a point at %d", b.Points[i].Time)
		case i == len(b.Points):
			return fmt.Sprintf("lacks a point at %d", a.Points[i].Time)
		case a.Points[i].Time != b.Points[i].Time:
			return fmt.Sprintf("has a point at %d, want %d", b.Points[i].Time, a.Points[i].Time)
		case !Near(a.Points[i].Value, b.Points[i].Value):
			return fmt.Sprintf("at %d: %g, want %g", a.Points[i].Time, b.Points[i].Value, a.Points[i].Value)
		}
	}
	for i := range max(len(a.Lines), len(b.Lines)) {
		switch {
		case i >= len(a.Lines):
			return fmt.Sprintf("has line %d %q", b.Lines[i].Time, b.Lines[i].Text)
		case i >= len(b.Lines):
			return fmt.Sprintf("lacks line %d %q", a.Lines[i].Time, a.Lines[i].Text)
		case a.Lines[i] != b.Lines[i]:
			return fmt.Sprintf("has line %d %q, want %d %q", b.Lines[i].Time, b.Lines[i].Text, a.Lines[i].Time, a.Lines[i].Text)
		}
	}
	return ""
}

// class returns the part of an error that does not depend on the order in which lines were read: a pipeline
// error names one of the series that have one, and both sides of an operation may have errors.
func class(text string) string {
	if severalErrors.MatchString(text) {
		text, _, _ = strings.Cut(severalErrors.ReplaceAllString(text, ""), "; ")
	}
	if strings.HasPrefix(text, "pipeline error: ") {
		return "pipeline error"
	}
	return text
}

var severalErrors = regexp.MustCompile(`^\d+ errors: `)

// Values returns the values of each time, sorted, which do not depend on the choice among ties.
func (r *Result) Values() map[int64][]float64 {
	all := map[int64][]float64{}
	for _, s := range r.Series {
		for _, p := range s.Points {
			all[p.Time] = append(all[p.Time], p.Value)
		}
	}
	for _, v := range all {
		slices.SortFunc(v, cmp.Compare[float64])
	}
	return all
}

// SortLines returns a copy whose lines of one time are sorted by their text. If but is given, it lacks the
// lines of that time.
func (r *Result) SortLines(but *int64) *Result {
	out := &Result{Type: r.Type}
	for _, s := range r.Series {
		lines := slices.DeleteFunc(slices.Clone(s.Lines), func(e Entry) bool { return but != nil && e.Time == *but })
		slices.SortFunc(lines, func(a, b Entry) int { return cmp.Or(cmp.Compare(a.Time, b.Time), strings.Compare(a.Text, b.Text)) })
		if len(lines) > 0 {
			out.Series = append(out.Series, Series{Labels: s.Labels, Lines: lines})
		}
	}
	return out
}

// Lines returns the number of lines.
func (r *Result) Lines() (n int) {
	for _, s := range r.Series {
		n += len(s.Lines)
	}
	return n
}

// LastTime returns the time of the last line in the direction of the query.
func (r *Result) LastTime(forward bool) int64 {
	var times []int64
	for _, s := range r.Series {
		for _, e := range s.Lines {
			times = append(times, e.Time)
		}
	}
	if forward {
		return slices.Max(times)
	}
	return slices.Min(times)
}

// Join returns a copy in which series of the same labels are one, with its points in the order of their times
// and values.
func (r *Result) Join() *Result {
	out := &Result{Error: r.Error, Type: r.Type, Series: slices.Clone(r.Series)}
	out.Sort()
	for i := 0; i < len(out.Series); i++ {
		s := &out.Series[i]
		s.Points = slices.Clone(s.Points)
		for i+1 < len(out.Series) && slices.Equal(out.Series[i+1].Labels, s.Labels) {
			s.Points = append(s.Points, out.Series[i+1].Points...)
			out.Series = slices.Delete(out.Series, i+1, i+2)
		}
		slices.SortStableFunc(s.Points, func(a, b Point) int { return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Value, b.Value)) })
	}
	return out
}

// Align returns a copy whose points have the times of the query's steps where they are a millisecond off.
func (r *Result) Align(q *Query) *Result {
	out := &Result{Error: r.Error, Type: r.Type, Series: slices.Clone(r.Series)}
	steps := map[int64]int64{}
	for t := q.Start; t <= q.End; t += max(q.Step, 1) {
		for d := range int64(3) {
			steps[t/1e6+d-1] = t / 1e6
		}
	}
	for i := range out.Series {
		s := &out.Series[i]
		s.Points = slices.Clone(s.Points)
		for j := range s.Points {
			if t, ok := steps[s.Points[j].Time]; ok {
				s.Points[j].Time = t
			}
		}
	}
	return out
}
