package vector

import (
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// metricName is the label that Prometheus gives to the name of a metric. Groupings without labels leave it
// out, too.
const metricName = "__name__"

// group returns the labels of the groups of a matrix, in the order of their first series, and the group of
// each series.
func group(g *syntax.Grouping, in *Matrix) (labels []model.Labels, groupOf []int32) {
	names := g.Labels
	if g.Without {
		names = append(names[:len(names):len(names)], metricName)
	}
	return number(in, func(dst []byte, l model.Labels) []byte {
		return appendLabels(dst, l, names, !g.Without, !g.Without)
	})
}

// signatures returns what the series of a matrix are matched by, each once, and the number of the signature
// of each series.
func signatures(m *syntax.VectorMatching, in *Matrix) (labels []model.Labels, numberOf []int32) {
	return number(in, func(dst []byte, l model.Labels) []byte {
		return appendLabels(dst, l, m.Labels, m.On, false)
	})
}

// number numbers the label sets that appendKey makes of those of the series.
func number(in *Matrix, appendKey func(dst []byte, l model.Labels) []byte) (labels []model.Labels, numberOf []int32) {
	numbers := make(map[string]int32)
	numberOf = make([]int32, len(in.Series))
	var key []byte
	for i := range in.Series {
		key = appendKey(key[:0], in.Series[i].Labels)
		n, known := numbers[string(key)]
		if !known {
			n = int32(len(labels))
			numbers[string(key)] = n
			labels = append(labels, model.Labels(string(key)))
		}
		numberOf[i] = n
	}
	return labels, numberOf
}

// appendLabels appends the labels that are listed, or those that are not. Labels with empty values go with
// the others only if the caller wants them.
func appendLabels(dst []byte, l model.Labels, names []string, listed, empty bool) []byte {
	for name, value, rest, ok := l.Next(); ok; name, value, rest, ok = rest.Next() {
		if contains(names, name) == listed && (empty || len(value) > 0) {
			dst = append(dst, l[:len(l)-len(rest)]...)
		}
		l = rest
	}
	return dst
}

func contains(names []string, name []byte) bool {
	for _, n := range names {
		if n == string(name) {
			return true
		}
	}
	return false
}
