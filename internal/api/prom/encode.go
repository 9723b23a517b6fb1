package prom

import (
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	jsoniter "github.com/json-iterator/go"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/prometheus/prometheus/util/jsonutil"
)

func (b *body) raw(s string) { b.buf = append(b.buf, s...) }

const hexDigits = "0123456789abcdef"

// str writes a JSON string. Bytes that are not UTF-8 become U+FFFD.
func (b *body) str(s string) {
	buf := append(b.buf, '"')
	plain := 0 // begin of what can be copied as it is
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				buf = append(append(buf, s[plain:i]...), `\ufffd`...)
				plain = i + 1
			}
			i += n
			continue
		}
		if c >= 0x20 && c != '"' && c != '\\' {
			i++
			continue
		}
		buf = append(buf, s[plain:i]...)
		switch c {
		case '"', '\\':
			buf = append(buf, '\\', c)
		case '\n':
			buf = append(buf, `\n`...)
		case '\r':
			buf = append(buf, `\r`...)
		case '\t':
			buf = append(buf, `\t`...)
		default:
			buf = append(buf, `\u00`...)
			buf = append(buf, hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		plain = i
	}
	b.buf = append(append(buf, s[plain:]...), '"')
}

// list writes a list, and sends what has gathered behind each element.
func list[T any](b *body, elements []T, write func(T)) {
	b.raw("[")
	for i, e := range elements {
		if i > 0 {
			b.raw(",")
		}
		write(e)
		b.spill()
	}
	b.raw("]")
}

// strs writes a list of strings.
func (b *body) strs(values []string) { list(b, values, b.str) }

// time writes Unix milliseconds as seconds, with no decimals or three.
func (b *body) time(ms int64) {
	u := uint64(ms)
	if ms < 0 {
		b.raw("-")
		u = -u
	}
	b.buf = strconv.AppendUint(b.buf, u/1000, 10)
	if f := u % 1000; f != 0 {
		b.buf = append(b.buf, '.', byte('0'+f/100), byte('0'+f/10%10), byte('0'+f%10))
	}
}

// shortTime writes Unix milliseconds as upstream does for scalars and strings: as a number, without zeros at its end.
func (b *body) shortTime(ms int64) {
	b.buf = strconv.AppendFloat(b.buf, float64(ms)/1000, 'f', -1, 64)
}

// float writes a value as upstream does: quoted, since JSON has neither NaN nor infinity; with an exponent only where
// the digits would be very many.
func (b *body) float(f float64) {
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	b.buf = append(b.buf, '"')
	b.buf = strconv.AppendFloat(b.buf, f, format, -1, 64)
	b.buf = append(b.buf, '"')
}

func (b *body) point(t int64, f float64) {
	b.raw("[")
	b.time(t)
	b.raw(",")
	b.float(f)
	b.raw("]")
}

// hpoint writes a histogram with its time, in upstream's own encoding of one.
func (b *body) hpoint(p promql.HPoint) {
	if b.histograms == nil {
		b.histograms = jsoniter.NewStream(jsoniter.ConfigDefault, nil, 512)
	}
	b.histograms.Reset(nil)
	jsonutil.MarshalHistogram(p.H, b.histograms)
	b.raw("[")
	b.time(p.T)
	b.raw(",")
	b.buf = append(b.buf, b.histograms.Buffer()...)
	b.raw("]")
}

func (b *body) labels(l labels.Labels) {
	b.raw("{")
	first := true
	l.Range(func(l labels.Label) {
		if !first {
			b.raw(",")
		}
		first = false
		b.str(l.Name)
		b.raw(":")
		b.str(l.Value)
	})
	b.raw("}")
}

// value writes the result of a query.
func (b *body) value(v parser.Value) {
	switch v := v.(type) {
	case promql.Vector:
		b.vector(v)
	case promql.Matrix:
		b.matrix(v)
	case promql.Scalar:
		b.raw("[")
		b.shortTime(v.T)
		// Scalars are the one place where upstream never uses an exponent.
		b.raw(`,"`)
		b.buf = strconv.AppendFloat(b.buf, v.V, 'f', -1, 64)
		b.raw(`"]`)
	case promql.String:
		b.raw("[")
		b.shortTime(v.T)
		b.raw(",")
		b.str(v.V)
		b.raw("]")
	}
}

func (b *body) vector(v promql.Vector) {
	list(b, v, func(s promql.Sample) {
		b.raw(`{"metric":`)
		b.labels(s.Metric)
		if s.H == nil {
			b.raw(`,"value":`)
			b.point(s.T, s.F)
		} else {
			b.raw(`,"histogram":`)
			b.hpoint(promql.HPoint{T: s.T, H: s.H})
		}
		b.raw("}")
	})
}

func (b *body) matrix(m promql.Matrix) {
	list(b, m, func(s promql.Series) {
		b.raw(`{"metric":`)
		b.labels(s.Metric)
		if len(s.Floats) > 0 {
			b.raw(`,"values":`)
			list(b, s.Floats, func(p promql.FPoint) { b.point(p.T, p.F) })
		}
		if len(s.Histograms) > 0 {
			b.raw(`,"histograms":`)
			list(b, s.Histograms, b.hpoint)
		}
		b.raw("}")
	})
}

// sortedAnnotations are the first ten warnings and infos, in an order that does not change.
func sortedAnnotations(a annotations.Annotations, query string) (warnings, infos []string) {
	warnings, infos = a.AsStrings(query, 10, 10)
	slices.Sort(warnings)
	slices.Sort(infos)
	return warnings, infos
}
