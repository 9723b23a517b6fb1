package read

import (
	"fmt"
	"slices"
	"testing"

	"github.com/shaledb/shale/internal/model"
)

// BenchmarkLeastStrings collects 100,000 values that two sources emit: in order, in no order, and as a map
// with a sort would. A value is an operation.
func BenchmarkLeastStrings(b *testing.B) {
	sorted := make([][]byte, 100_000)
	for i := range sorted {
		sorted[i] = fmt.Appendf(nil, "10.%03d.%03d.%03d:9100", i>>16, i>>8&255, i&255)
	}
	shuffled := make([][]byte, len(sorted))
	for i := range sorted {
		shuffled[i*7919%len(sorted)] = sorted[i]
	}
	run := func(name string, values [][]byte, limit int) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for done := 0; done < b.N; done += 2 * len(values) {
				set := leastStrings{limit: limit, quota: new(model.Quota)}
				for range 2 {
					for _, v := range values {
						if err := set.add(v); err != nil {
							b.Fatal(err)
						}
					}
				}
				if _, _, err := set.finish(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("in-order", sorted, 0)
	run("in-order-limit", sorted, 1000)
	run("unordered", shuffled, 0)
	b.Run("map", func(b *testing.B) {
		b.ReportAllocs()
		for done := 0; done < b.N; done += 2 * len(sorted) {
			set := make(map[string]struct{})
			for range 2 {
				for _, v := range sorted {
					if _, ok := set[string(v)]; !ok {
						set[string(v)] = struct{}{}
					}
				}
			}
			values := make([]string, 0, len(set))
			for v := range set {
				values = append(values, v)
			}
			slices.Sort(values)
		}
	})
}
