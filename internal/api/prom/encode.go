package prom

import (
	"math"
	"slices"
	"strconv"

	jsoniter "github.com/json-iterator/go"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/prometheus/prometheus/util/jsonutil"
)

// list writes a list. It may send the buffer after each element.
func list[T any](b *body, elements []T, write func(T)) {
	b.Raw("[")
	for i, e := range elements {
		if i > 0 {
			b.Raw(",")
		}
		write(e)
		b.Spill()
	}
	b.Raw("]")
}

// time writes Unix milliseconds as seconds, with no decimals or three.
func (b *body) time(ms int64) {
	u := uint64(ms)
	if ms < 0 {
		b.Raw("-")
		u = -u
	}
	b.Buf = strconv.AppendUint(b.Buf, u/1000, 10)
	if f := u % 1000; f != 0 {
		b.Buf = append(b.Buf, '.', byte('0'+f/100), byte('0'+f/10%10), byte('0'+f%10))
	}
}

// shortTime writes Unix milliseconds as upstream does for scalars and strings: as seconds without trailing
// zeros.
func (b *body) shortTime(ms int64) {
	b.Buf = strconv.AppendFloat(b.Buf, float64(ms)/1000, 'f', -1, 64)
}

// float writes a value as upstream does: quoted, since JSON has neither NaN nor infinity, and with an
// exponent only for very large and very small values.
func (b *body) float(f float64) {
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	b.Buf = append(b.Buf, '"')
	b.Buf = strconv.AppendFloat(b.Buf, f, format, -1, 64)
	b.Buf = append(b.Buf, '"')
}

func (b *body) point(t int64, f float64) {
	b.Raw("[")
	b.time(t)
	b.Raw(",")
	b.float(f)
	b.Raw("]")
}

// hpoint writes a histogram with its time, in upstream's encoding.
func (b *body) hpoint(p promql.HPoint) {
	if b.histograms == nil {
		b.histograms = jsoniter.NewStream(jsoniter.ConfigDefault, nil, 512)
	}
	b.histograms.Reset(nil)
	jsonutil.MarshalHistogram(p.H, b.histograms)
	b.Raw("[")
	b.time(p.T)
	b.Raw(",")
	b.Buf = append(b.Buf, b.histograms.Buffer()...)
	b.Raw("]")
}

func (b *body) labels(l labels.Labels) {
	b.Raw("{")
	first := true
	l.Range(func(l labels.Label) {
		if !first {
			b.Raw(",")
		}
		first = false
		b.Str(l.Name)
		b.Raw(":")
		b.Str(l.Value)
	})
	b.Raw("}")
}

// value writes the result of a query.
func (b *body) value(v parser.Value) {
	switch v := v.(type) {
	case promql.Vector:
		b.vector(v)
	case promql.Matrix:
		b.matrix(v)
	case promql.Scalar:
		b.Raw("[")
		b.shortTime(v.T)
		// Only for scalars, upstream never uses an exponent.
		b.Raw(`,"`)
		b.Buf = strconv.AppendFloat(b.Buf, v.V, 'f', -1, 64)
		b.Raw(`"]`)
	case promql.String:
		b.Raw("[")
		b.shortTime(v.T)
		b.Raw(",")
		b.Str(v.V)
		b.Raw("]")
	}
}

func (b *body) vector(v promql.Vector) {
	list(b, v, func(s promql.Sample) {
		b.Raw(`{"metric":`)
		b.labels(s.Metric)
		if s.H == nil {
			b.Raw(`,"value":`)
			b.point(s.T, s.F)
		} else {
			b.Raw(`,"histogram":`)
			b.hpoint(promql.HPoint{T: s.T, H: s.H})
		}
		b.Raw("}")
	})
}

func (b *body) matrix(m promql.Matrix) {
	list(b, m, func(s promql.Series) {
		b.Raw(`{"metric":`)
		b.labels(s.Metric)
		if len(s.Floats) > 0 {
			b.Raw(`,"values":`)
			list(b, s.Floats, func(p promql.FPoint) { b.point(p.T, p.F) })
		}
		if len(s.Histograms) > 0 {
			b.Raw(`,"histograms":`)
			list(b, s.Histograms, b.hpoint)
		}
		b.Raw("}")
	})
}

// sortedAnnotations returns the first ten warnings and infos, sorted.
func sortedAnnotations(a annotations.Annotations, query string) (warnings, infos []string) {
	warnings, infos = a.AsStrings(query, 10, 10)
	slices.Sort(warnings)
	slices.Sort(infos)
	return warnings, infos
}
