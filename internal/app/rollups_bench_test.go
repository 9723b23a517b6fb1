package app

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/graphite/policy"
)

// BenchmarkRollups draws one series of a year, a point a minute, in steps of 10 m: from points and from
// rollups, each with warm caches. It also says how many bytes the blocks of both take.
func BenchmarkRollups(b *testing.B) {
	t := &testing.T{}
	p := policiesOf(t, "[all]\npattern = .*\nretentions = 60s:1d,10m:5y\n", "")
	s := newSetup(t, func(o *EngineOptions) { o.Rollups = func() *policy.Policies { return p } })
	s.now -= s.now % int64(day)
	begin, r := s.now, rand.New(rand.NewPCG(1, 2))
	const days = 365
	l, v := model.LabelsOf("__name__", "servers.web1.load"), 50.0
	for range days {
		batch := s.Path().Batch("a", model.Metrics)
		batch.Source = oneSeries(l)
		from := s.now
		s.now += int64(day)
		for i := range int64(1440) {
			v += math.Round(100*r.NormFloat64()) / 100
			batch.Samples.Append(from+i*int64(time.Minute), math.Float64bits(math.Round(100*v)/100), 0)
		}
		batch.EndSeries(l.Key(s.Path().Seed(), model.Metrics))
		_, err := s.Path().Push(context.Background(), batch)
		must(t, err)
		s.Path().Recycle(batch)
		must(t, s.Ship())
		s.now += int64(2 * time.Hour)
		s.compact(t)
		s.now -= int64(2 * time.Hour)
	}
	var bytes, rows, rolledBytes, rolledRows int64
	st := s.catalog.State()
	for _, x := range st.Blocks {
		bytes, rows = bytes+x.Bytes, rows+int64(x.Samples)
	}
	for _, x := range st.Rollups {
		rolledBytes, rolledRows = rolledBytes+x.Bytes, rolledRows+int64(x.Samples)
	}
	for _, rollups := range []bool{false, true} {
		b.Run(fmt.Sprintf("rollups=%t", rollups), func(b *testing.B) {
			var read int64
			cpu := processCPU()
			for b.Loop() {
				list, cost, err := s.renders(rollups, begin/int64(time.Second), s.now/int64(time.Second), "servers.web1.load")
				if err != nil || len(list) != 1 || len(list[0].Values) < 52000 {
					b.Fatal(err, len(list))
				}
				read = cost.Samples.Load()
			}
			b.ReportMetric(float64(processCPU()-cpu)/1e6/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(read), "rows/op")
			if rollups {
				b.ReportMetric(float64(rolledBytes)/float64(rolledRows), "bytes/slot")
			} else {
				b.ReportMetric(float64(bytes)/float64(rows), "bytes/point")
			}
		})
	}
	must(t, s.Close())
}

// processCPU returns the CPU time of the process.
func processCPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
