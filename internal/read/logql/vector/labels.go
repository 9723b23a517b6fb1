package vector

import (
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// metricName is the label that Prometheus gives to the name of a metric. Groupings without labels leave it
// out, too.
const metricName = "__name__"

// numbering numbers label sets that have some of the labels of series, in the order of their first series.
type numbering struct {
	names []string // the labels that count, or those that do not
	// listed says that the labels in names count, empty that a label without a value is one.
	listed, empty bool

	labels  []model.Labels // by number
	numbers map[string]int32
	key     []byte
}

// groups numbers the groups of an aggregation.
func groups(g *syntax.Grouping) *numbering {
	names := g.Labels
	if g.Without {
		names = append(names[:len(names):len(names)], metricName)
	}
	return &numbering{names: names, listed: !g.Without, empty: !g.Without, numbers: make(map[string]int32)}
}

// signatures numbers what elements are matched by, for both sides together.
func signatures(m *syntax.VectorMatching) *numbering {
	return &numbering{names: m.Labels, listed: m.On, numbers: make(map[string]int32)}
}

// add returns the number of each series.
func (n *numbering) add(in *Matrix) []int32 {
	numbers := make([]int32, len(in.Series))
	for i := range in.Series {
		n.key = appendLabels(n.key[:0], in.Series[i].Labels, n.names, n.listed, n.empty)
		number, known := n.numbers[string(n.key)]
		if !known {
			number = int32(len(n.labels))
			own := string(n.key)
			n.numbers[own] = number
			n.labels = append(n.labels, model.Labels(own))
		}
		numbers[i] = number
	}
	return numbers
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
