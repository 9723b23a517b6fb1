package plan_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/plan"
	"github.com/shaledb/shale/internal/read/logql/syntax"
	"github.com/shaledb/shale/internal/read/logql/vector"
)

// TestGolden evaluates the queries of testdata. The command matrix names a matrix, as lines of labels and of
// the values of all steps, with _ for none. The commands range and instant evaluate a query each, in which
// {m="name"} stands for a matrix; instant takes the first step only.
func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		matrices := map[string]string{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "matrix":
				matrices[d.CmdArgs[0].Key] = d.Input
				return ""
			case "range", "instant":
				return evaluated(t, d.Input, d.Cmd == "instant", matrices)
			}
			t.Fatalf("unknown command %s", d.Cmd)
			return ""
		})
	})
}

func evaluated(t *testing.T, text string, instant bool, matrices map[string]string) string {
	p, err := compiled(text)
	if err != nil {
		return "error: " + err.Error()
	}
	steps := vector.Steps{Step: 1, Count: 4}
	if instant {
		steps = vector.Steps{Count: 1}
	}
	quota := new(model.Quota)
	e := plan.Evaluation{
		Plan: p, Steps: steps, KeepOrder: instant && p.Ordered, Quota: quota,
		Read: func(_ context.Context, l *plan.Leaf, extent plan.Extent, _ *vector.Top) (*vector.Matrix, error) {
			m := parseMatrix(t, matrices[l.Aggregation.Range.Query.Matchers[0].Value], extent.Steps)
			return m, quota.TakeBytes(m.Size())
		},
	}
	m, err := e.Run(context.Background())
	if err == nil && !instant {
		err = m.JoinEqual(quota)
	}
	if err != nil {
		return "error: " + err.Error()
	}
	var sb strings.Builder
	for _, s := range m.Series {
		sb.WriteString(s.Labels.String())
		for i, v := range s.Values {
			if s.Present.Has(i) {
				fmt.Fprintf(&sb, " %v", v)
			} else {
				sb.WriteString(" _")
			}
		}
		sb.WriteByte('\n')
	}
	m.Release(quota)
	if quota.Charged() != (&model.Quota{}).Charged() {
		t.Errorf("%s: %+v is still charged", text, quota.Charged())
	}
	if sb.Len() == 0 {
		return "nothing"
	}
	return sb.String()
}

func compiled(text string) (*plan.Plan, error) {
	e, err := syntax.Parse(text)
	if err != nil {
		return nil, err
	}
	return plan.Compile(e.(syntax.MetricExpr))
}

func parseMatrix(t *testing.T, text string, steps vector.Steps) *vector.Matrix {
	m := &vector.Matrix{Steps: steps}
	for _, line := range strings.Split(text, "\n") {
		selector, values, ok := strings.Cut(line, "} ")
		if !ok {
			continue
		}
		var pairs []string
		if selector != "{" {
			ms, err := syntax.ParseMatchers(selector+"}", false)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range ms {
				pairs = append(pairs, m.Name, m.Value)
			}
		}
		s := vector.Series{Labels: model.LabelsOf(pairs...), Values: make([]float64, steps.Count), Present: vector.NewSet(steps.Count)}
		for i, v := range strings.Fields(values) {
			if i >= steps.Count || v == "_" {
				continue
			}
			var err error
			if s.Values[i], err = strconv.ParseFloat(v, 64); err != nil {
				t.Fatal(err)
			}
			s.Present.Add(i)
		}
		if !s.Present.IsEmpty() {
			m.Series = append(m.Series, s)
		}
	}
	m.SortByLabels()
	return m
}
