package series

import (
	"maps"
	"math"
	"regexp"
)

// nullBits are those of a NaN that arithmetic does not produce. So a value needs no second word that says
// whether it is there, and a NaN that was computed stays a value.
const nullBits = 0x7ff8_0067_7261_7068

// Null returns the missing value.
func Null() float64 { return math.Float64frombits(nullBits) }

// IsNull reports whether a value is missing.
func IsNull(v float64) bool { return math.Float64bits(v) == nullBits }

// Series is a series on a grid. Values are never changed once another series may share them; functions make
// new slices. Tags may be shared by a series and the series made of it.
type Series struct {
	Name string
	// Start is the Unix time of the first value, in seconds. End and Step go with it; the times of values are
	// Start + i*Step whatever End is.
	Start, End, Step int64
	Values           []float64
	// Consolidation names the function that makes one value of several for a narrow graph.
	Consolidation string
	// XFF is the least share of values that must be present in what is consolidated.
	XFF  float64
	Tags map[string]string
	// Path is the path expression that the series was found by, or the expression of the function that made it.
	Path string
	Draw Draw
}

// Draw says how a series is drawn.
type Draw struct {
	Color                        string
	Alpha, LineWidth, Dashed     float64 // 0: not set
	HasAlpha, Stacked, Invisible bool
	SecondYAxis, Infinite        bool
}

// List is an ordered list of series.
type List []*Series

var called = regexp.MustCompile(`(?i)^[a-z]+[(].+[)]$`)

// New returns a series whose path is its name and whose tags are those in its name.
func New(name string, start, end, step int64, values []float64, xff float64) *Series {
	tags := map[string]string{"name": name}
	if !called.MatchString(name) {
		if parsed, err := ParseTags(name); err == nil {
			tags = parsed
		}
	}
	return &Series{
		Name: name, Start: start, End: end, Step: step, Values: values, Consolidation: "average", XFF: xff, Tags: tags, Path: name,
	}
}

// Derive returns a series with other values. As in graphite-web, its path is its name, it shares the tags,
// and it is drawn by default.
func (s *Series) Derive(name string, values []float64) *Series {
	d := *s
	d.Name, d.Path, d.Values, d.Draw = name, name, values, Draw{}
	return &d
}

// Rename gives a series a name that is its path, too.
func (s *Series) Rename(name string) { s.Name, s.Path = name, name }

// OwnTags gives a series tags of its own.
func (s *Series) OwnTags() { s.Tags = maps.Clone(s.Tags) }

// Nulls returns n missing values.
func Nulls(n int) []float64 { return Repeat(Null(), n) }

// Repeat returns n times the same value.
func Repeat(v float64, n int) []float64 {
	values := make([]float64, max(0, n))
	for i := range values {
		values[i] = v
	}
	return values
}

// Map returns the values of a function of each value. Missing values stay missing.
func Map(values []float64, f func(float64) float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		if IsNull(v) {
			out[i] = v
		} else {
			out[i] = f(v)
		}
	}
	return out
}

// Present appends the values that are not missing.
func Present(dst, values []float64) []float64 {
	for _, v := range values {
		if !IsNull(v) {
			dst = append(dst, v)
		}
	}
	return dst
}
