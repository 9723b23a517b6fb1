package local

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/model"
)

// BenchmarkAppend appends batches of 500 rows on the real disk, from 1 to 64 appenders.
func BenchmarkAppend(b *testing.B) {
	const rows = 500
	batch := &model.Batch{Tenant: "anonymous", Signal: model.Metrics}
	for i := range rows {
		batch.AddSample(model.Key{Hi: uint64(i) << 40, Lo: uint64(i) * 0x9e3779b97f4a7c15}, 1_700_000_000_000_000_000, uint64(i)<<40)
	}
	for _, appenders := range []int{1, 4, 16, 64} {
		b.Run(fmt.Sprint(appenders), func(b *testing.B) {
			j := open(b, Options{FS: vfs.Default, Dir: b.TempDir() + "/journal", Seed: seed})
			if err := j.Start(0); err != nil {
				b.Fatal(err)
			}
			defer j.Close()
			b.ResetTimer()
			begin := time.Now()
			var wg sync.WaitGroup
			for w := range appenders {
				wg.Go(func() {
					for i := w; i < b.N; i += appenders {
						if err := j.Append(context.Background(), batch); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)*rows/time.Since(begin).Seconds(), "rows/s")
		})
	}
}
