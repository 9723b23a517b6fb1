package metric

import (
	"fmt"
	"slices"
	"testing"

	"github.com/shaledb/shale/internal/read/logql/logqltest"
)

// answers holds what Loki said of each point in several runs of one query. Where values are added up in a
// random order again at each step, and infinities or % make the order visible, no run needs to agree with
// another one at every step.
type answers struct {
	runs   int
	failed bool
	values map[string][]float64 // by series and time; one value for each run that has the point
}

func key(s *logqltest.Series, p *logqltest.Point) string {
	return fmt.Sprintf("%q %d", s.Labels, p.Time)
}

func (a *answers) add(r *logqltest.Result) {
	if a.values == nil {
		a.values = map[string][]float64{}
	}
	a.runs++
	a.failed = a.failed || r.Error != ""
	for i := range r.Series {
		s := &r.Series[i]
		for j := range s.Points {
			k := key(s, &s.Points[j])
			a.values[k] = append(a.values[k], s.Points[j].Value)
		}
	}
}

// explain reports whether Loki gave each point of a result in some run, and left out in some run each point
// that the result lacks.
func (a *answers) explain(us *logqltest.Result) bool {
	if a.failed || us.Error != "" {
		return false
	}
	has := map[string]bool{}
	for i := range us.Series {
		s := &us.Series[i]
		for j := range s.Points {
			p := &s.Points[j]
			k := key(s, p)
			if has[k] || !slices.ContainsFunc(a.values[k], func(v float64) bool { return logqltest.Near(v, p.Value) }) {
				return false
			}
			has[k] = true
		}
	}
	for k, v := range a.values {
		if !has[k] && len(v) >= a.runs {
			return false
		}
	}
	return true
}

func TestAnswers(t *testing.T) {
	result := func(points ...logqltest.Point) *logqltest.Result {
		return &logqltest.Result{Type: logqltest.Matrix, Series: []logqltest.Series{{Labels: []string{"a", "b"}, Points: points}}}
	}
	p := func(at int64, v float64) logqltest.Point { return logqltest.Point{Time: at, Value: v} }
	var heard answers
	heard.add(result(p(1, 1), p(2, 2), p(3, 3)))
	heard.add(result(p(1, 10), p(2, 20)))
	for _, c := range []struct {
		name string
		us   *logqltest.Result
		want bool
	}{
		{"one run", result(p(1, 1), p(2, 2), p(3, 3)), true},
		{"points of both runs", result(p(1, 10), p(2, 2), p(3, 3)), true},
		{"a point that one run lacks", result(p(1, 10), p(2, 2)), true},
		{"a value that no run has", result(p(1, 5), p(2, 2)), false},
		{"a point that no run has", result(p(1, 1), p(2, 2), p(4, 1)), false},
		{"without a point that all runs have", result(p(1, 1)), false},
		{"an error", &logqltest.Result{Error: "x"}, false},
	} {
		if got := heard.explain(c.us); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
