package logql_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/alloctest"
	"github.com/shaledb/shale/internal/cache/ram"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/logql"
	"github.com/shaledb/shale/internal/read/logql/vector"
	"github.com/shaledb/shale/internal/store/head"
	"github.com/shaledb/shale/internal/store/part"
)

// bench is a head with lines in local parts.
type bench struct {
	engine *logql.Engine
	bytes  int64
	begin  int64
	end    int64
}

// load says what is in the head: in each batch some lines of each stream.
type load struct {
	streams, batches, lines int
	line                    func(r *rand.Rand) []byte
}

func accessLine(r *rand.Rand) []byte {
	return fmt.Appendf(nil, `10.0.%d.%d - - "GET /api/v1/item/%d HTTP/1.1" %d %d "-" "Mozilla/5.0 (X11; Linux x86_64)" request_id=%016x took=%dms`,
		r.IntN(256), r.IntN(256), r.IntN(100_000), []int{200, 200, 200, 200, 404, 500}[r.IntN(6)], r.IntN(20_000), r.Uint64(), r.IntN(900))
}

func jsonLine(r *rand.Rand) []byte {
	return fmt.Appendf(nil, `{"ts":"2026-11-23T12:00:%02d.%03dZ","level":"info","msg":"request completed","trace_id":"%016x","method":"%s","path":"/api/v1/item/%d","status":%d,"duration_ms":%d.%03d}`,
		r.IntN(60), r.IntN(1000), r.Uint64(), []string{"GET", "GET", "PUT", "POST"}[r.IntN(4)], r.IntN(100_000), []int{200, 200, 200, 404}[r.IntN(4)], r.IntN(1000), r.IntN(1000))
}

func logfmtLine(r *rand.Rand) []byte {
	return fmt.Appendf(nil, `ts=2026-11-23T12:00:%02d.%03dZ level=info caller=server.go:214 msg="request completed" traceID=%016x status=%d bytes=%d duration=%d.%03dms`,
		r.IntN(60), r.IntN(1000), r.Uint64(), []int{200, 200, 200, 404}[r.IntN(4)], r.IntN(100_000), r.IntN(1000), r.IntN(1000))
}

func newBench(b testing.TB, c load, pages part.Cache) *bench {
	b.Helper()
	now := int64(1_700_000_000 * time.Second)
	h, err := head.Open(context.Background(), head.Options{
		FS: vfs.NewMem(), Dir: "/head", Seed: 1, Node: "n", RowBytes: 256 << 20, LabelBytes: 256 << 20,
		Now: func() int64 { return now }, Registerer: prometheus.NewRegistry(), Truncate: func(uint64) error { return nil },
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := h.Close(); err != nil {
			b.Fatal(err)
		}
	})
	w := &bench{begin: now}
	r := rand.New(rand.NewPCG(1, 2))
	seq := uint64(0)
	for i := range c.batches {
		batch := &model.Batch{Tenant: "t", Signal: model.Logs}
		for s := range c.streams {
			l := model.LabelsOf("app", fmt.Sprint("app", s%8), "pod", fmt.Sprint("pod-", s))
			for range c.lines {
				now += int64(time.Millisecond)
				line := c.line(r)
				w.bytes += int64(len(line))
				batch.Text.AppendBlob(now, model.KindText, model.AppendLine(nil, &model.Line{Text: line}), 0)
			}
			batch.Labels.Append(uint32(len(batch.Keys)), l)
			batch.EndSeries(l.Key(1, model.Logs))
		}
		seq++
		h.Apply(seq, batch)
		if i%max(c.batches/5, 1) == 0 {
			if err := h.Flush(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	}
	for {
		more, err := h.Work(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		if !more {
			break
		}
	}
	w.end = now + 1
	w.engine = logql.New(logql.Options{Read: read.New(read.Options{Sources: []read.Source{h.Source(pages)}})})
	return w
}

// newPages returns a cache of so many bytes.
func newPages(b testing.TB, bytes int64) *ram.Cache {
	b.Helper()
	pages, err := ram.New(ram.Options{MaxBytes: bytes})
	if err != nil {
		b.Fatal(err)
	}
	return pages
}

// run runs one query.
func (w *bench) run(b *testing.B, text string) {
	b.SetBytes(w.bytes)
	b.ReportAllocs()
	var s logql.Stats
	for range b.N {
		p, err := logql.Prepare(text)
		if err != nil {
			b.Fatal(err)
		}
		got, err := w.engine.Lines(context.Background(), &logql.Query{
			Tenants: []string{"t"}, Prepared: p, Start: w.begin, End: w.end, Limit: 100,
			Quota: &model.Quota{MaxBytes: 512 << 20}, Cost: &model.Cost{},
		})
		if err != nil {
			b.Fatal(err)
		}
		s = got.Stats
	}
	b.ReportMetric(float64(s.Pages), "pages")
	b.ReportMetric(float64(s.Skipped), "skipped")
	b.ReportMetric(float64(s.Read), "read")
}

// BenchmarkLines runs queries over some 21 MB of lines in 40 streams. The rate is that of the bytes of all
// lines.
func BenchmarkLines(b *testing.B) {
	for _, cached := range []bool{false, true} {
		w := newBench(b, load{40, 300, 10, accessLine}, newPages(b, map[bool]int64{false: 0, true: 256 << 20}[cached]))
		for _, c := range []struct{ name, text string }{
			{"newest", `{app=~".+"}`},
			{"newest-of-app", `{app="app3"}`},
			{"needle-filtered", `{app=~".+"} |= "request_id=00c0ffee00c0ffee "`},
			{"needle-scanned", `{app=~".+"} |= "00c0ffee00c0ffe"`},
			{"regexp", `{app=~".+"} |~ "took=1[0-9]ms.*zz"`},
			{"newest-regexp", `{app=~".+"} |~ "\" 500 [0-9]+ "`},
			{"newest-parsed", `{app=~".+"} | pattern "<ip> - - \"<_>\" <status> <_>" | status >= 500`},
			{"parsed-none", `{app=~".+"} | pattern "<ip> - - \"<_>\" <status> <_>" | status >= 600`},
		} {
			b.Run(fmt.Sprintf("%s/cached=%v", c.name, cached), func(b *testing.B) {
				w.run(b, c.text)
			})
		}
	}
}

// BenchmarkManyStreams runs queries over 200,000 streams with two lines each.
func BenchmarkManyStreams(b *testing.B) {
	w := newBench(b, load{200_000, 2, 1, accessLine}, newPages(b, 512<<20))
	for _, c := range []struct{ name, text string }{
		{"newest", `{app=~".+"}`},
		{"newest-of-app", `{app="app3"}`},
		{"needle-scanned", `{app=~".+"} |= "00c0ffee00c0ffe"`},
		{"parsed-none", `{app=~".+"} | pattern "<ip> - - \"<_>\" <status> <_>" | status >= 600`},
	} {
		b.Run(c.name, func(b *testing.B) { w.run(b, c.text) })
	}
}

// BenchmarkNumbers runs metric queries that parse over about 25 MB of lines in 40 streams.
func BenchmarkNumbers(b *testing.B) {
	for _, c := range []struct {
		line  func(r *rand.Rand) []byte
		texts []string
	}{
		{jsonLine, []string{
			`topk(10, sum by (path) (rate({app=~".+"} | json [10s])))`,
			`sum by (path) (rate({app=~".+"} | json [10s]))`,
			`quantile_over_time(0.99, {app=~".+"} | json | unwrap duration_ms [10s]) by (method)`,
			`sum(count_over_time({app=~".+"} | json [10s]))`,
		}},
		{logfmtLine, []string{`sum by (status) (count_over_time({app=~".+"} | logfmt [10s]))`}},
	} {
		w := newBench(b, load{40, 300, 10, c.line}, newPages(b, 0))
		for _, text := range c.texts {
			b.Run(text, func(b *testing.B) {
				b.SetBytes(w.bytes)
				b.ReportAllocs()
				step := int64(10 * time.Second)
				from := alloctest.CPU(b)
				for b.Loop() {
					w.numbers(b, text, step)
				}
				b.ReportMetric(float64((alloctest.CPU(b)-from).Microseconds())/float64(b.N)/1000, "cpu-ms/op")
			})
		}
	}
}

// numbers runs one metric query.
func (w *bench) numbers(b testing.TB, text string, step int64) *logql.Numbers {
	b.Helper()
	p, err := logql.Prepare(text)
	if err != nil {
		b.Fatal(err)
	}
	quota := &model.Quota{MaxBytes: 512 << 20}
	got, err := w.engine.Numbers(context.Background(), &logql.MetricQuery{
		Tenants: []string{"t"}, Prepared: p, Steps: vector.Steps{Start: w.begin + step, Step: step, Count: int((w.end-w.begin)/step) + 1},
		Quota: quota, Cost: &model.Cost{},
	})
	if err != nil {
		b.Fatal(text, err)
	}
	got.Matrix.Release(quota)
	if left := quota.Charged(); left != (model.Charge{}) {
		b.Fatalf("%s: still charged: %+v", text, left)
	}
	return got
}
