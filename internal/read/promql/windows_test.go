package promql

import (
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"pgregory.net/rapid"
)

// TestMayShareMilli compares with the definition: neighbours less than a millisecond apart.
func TestMayShareMilli(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.SliceOfNDistinct(rapid.Int64Range(0, 30*nanosPerMilli), 0, 12, rapid.ID[int64]).Draw(t, "times")
		slices.Sort(times)
		want := false
		for i := 1; i < len(times); i++ {
			want = want || times[i]-times[i-1] < nanosPerMilli
		}
		if got := mayShareMilli(times); got != want {
			t.Fatalf("%v: %t", times, got)
		}
	})
}

// TestStepsBeyond32Bits: more steps than 32 bits count are left to upstream.
func TestStepsBeyond32Bits(t *testing.T) {
	for text, want := range map[string]int{`sum_over_time(sum(m)[20d:1ms])`: 1, `sum_over_time(sum(m)[40d:1ms])`: 0} {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
		if err != nil {
			t.Fatal(err)
		}
		stmt := &parser.EvalStmt{Expr: expr, Start: time.Unix(0, 0), End: time.Unix(0, 0), Interval: time.Second, LookbackDelta: time.Minute}
		if got := len(replaceNodes(stmt, new(Engine))); got != want {
			t.Errorf("%s: got %d nodes, want %d", text, got, want)
		}
	}
}
