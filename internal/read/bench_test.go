package read_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/readtest"
)

// BenchmarkFloats reads a series of 1000 floats per source. The sources either follow each other in time or
// hold every n-th row.
func BenchmarkFloats(b *testing.B) {
	for _, mixed := range []bool{false, true} {
		b.Run(fmt.Sprintf("mixed=%v", mixed), func(b *testing.B) {
			var sources []read.Source
			for s := range 4 {
				m := readtest.NewMemory(uint64(s))
				var rows model.Rows
				for i := range 1000 {
					at := int64(s*1000 + i)
					if mixed {
						at = int64(i*4 + s)
					}
					rows.Append(at, uint64(i), 0)
				}
				for i := range 100 {
					m.Add(tenant, keyFor(i), labelsFor(i), &rows)
				}
				sources = append(sources, m)
			}
			q := read.New(read.Options{Sources: sources})
			ctx := context.Background()
			var rows model.Rows
			b.ResetTimer()
			for range b.N {
				b.StopTimer()
				set, err := q.Select(ctx, request(model.Always()))
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				for set.Next(ctx) {
					rows.Reset()
					if err := set.AppendRows(ctx, &rows); err != nil {
						b.Fatal(err)
					}
				}
				b.StopTimer()
				if err := set.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}
