package main

import (
	"context"
	"strconv"
	"time"

	"github.com/shaledb/shale/bench/proc"
	"github.com/shaledb/shale/bench/result"
	"github.com/shaledb/shale/bench/system"
	"github.com/shaledb/shale/internal/load/send"
)

// soakSlice is the length of each load of a soak. Each gives one reading of the latency.
const soakSlice = time.Minute

// soak measures whether anything grows while the server is half busy for hours.
func soak(ctx context.Context, t *trial) error {
	return t.with(ctx, "", func(srv *system.Server) error {
		targets := t.scaled(200)
		if err := t.makeKnown(ctx, srv, targets, "v1"); err != nil {
			return err
		}
		full, err := t.load(ctx, t.Duration, t.remoteWrite(srv, targets, "--rate", "0", "--duration", min(t.Duration, time.Minute).String(),
			"--step", remoteWriteStep, "--start", at(time.Now().Add(-remoteWriteBack)))...)
		if err != nil {
			return err
		}
		if err := t.warm(ctx, srv); err != nil {
			return err
		}
		if err := proc.ClearPeak(srv.PID); err != nil {
			t.rec.Note("the peak of memory is counted from the start of the server: %v", err)
		}
		before, err := srv.Usage()
		if err != nil {
			return err
		}
		watch := proc.StartWatch(min(10*time.Second, t.Duration), func() (map[string]float64, error) { return soakReading(ctx, srv) })
		p99, sent, acked, took, err := t.slices(ctx, srv, targets, full.Rate/2, watch)
		t.rec.Curves = watch.Stop()
		t.rec.Curves["p99-s"] = p99
		if err != nil {
			return err
		}
		after, err := srv.Usage()
		if err != nil {
			return err
		}
		t.noteSoak(&before, &after, sent, acked, took)
		return nil
	})
}

func soakReading(ctx context.Context, srv *system.Server) (map[string]float64, error) {
	u, err := srv.Usage()
	if err != nil {
		return nil, err
	}
	values := map[string]float64{"rss-B": float64(u.RSS)}
	name, label := "shale_head_parts", ""
	switch srv.Kind {
	case system.VictoriaMetrics:
		name, label = "vm_parts", `type="storage/`
	case system.Prometheus:
		name = "prometheus_tsdb_blocks_loaded"
	}
	if parts, err := srv.Metric(ctx, name, label); err == nil {
		values["parts"] = parts
	}
	return values, nil
}

// slices sends one load after the other until the time is over.
func (t *trial) slices(ctx context.Context, srv *system.Server, targets int, rate float64, watch *proc.Watch) (p99 []proc.Point, sent, acked int64, took float64, err error) {
	began := time.Now()
	// The load generator rejects minutes with fractions of seconds.
	for left := t.Soak; left >= time.Second; left = t.Soak - time.Since(began) {
		d := min(soakSlice, left).Round(time.Second)
		var report *send.LogsReport
		report, err = t.load(ctx, d, t.remoteWrite(srv, targets, "--rate", strconv.FormatFloat(rate, 'f', 0, 64), "--duration", d.String())...)
		if err != nil {
			break
		}
		sent, acked = sent+report.Sent, acked+report.Acked
		p99 = append(p99, proc.Point{watch.Since(), report.Latency.P99})
		if report.MaxLag > 10 {
			t.rec.Note("the sender was late by more than 10 s")
		}
	}
	return p99, sent, acked, time.Since(began).Seconds(), err
}

func (t *trial) noteSoak(before, after *proc.Usage, sent, acked int64, took float64) {
	r := t.rec
	r.Set("samples", float64(acked))
	r.Set("samples/s", float64(acked)/took)
	r.Set("cpu-share", (after.CPU-before.CPU)/took)
	r.Set("cpu-s/M", (after.CPU-before.CPU)/float64(acked)*1e6)
	r.Set("rss-B", float64(after.RSS))
	r.Set("peak-B", float64(after.Peak))
	if lost := float64(sent - acked); lost > 0 {
		r.Set("lost", lost)
	}
	for name, growth := range map[string]string{"rss-B": "growth-rss-%", "parts": "growth-parts-%", "p99-s": "growth-p99-%"} {
		early, late, ok := tenths(r.Curves[name])
		if !ok {
			continue
		}
		if name != "rss-B" {
			r.Set(name, late)
		}
		if early > 0 {
			r.Set(growth, (late/early-1)*100)
		}
	}
}

// tenths returns the medians of the second and the last tenth of a curve: in the first one, caches and
// buffers fill.
func tenths(curve []proc.Point) (second, last float64, ok bool) {
	n := len(curve)
	if n < 3 {
		return 0, 0, false
	}
	size := max(1, n/10)
	from := min(n/10, n-2*size)
	values := func(points []proc.Point) (v []float64) {
		for _, p := range points {
			v = append(v, p[1])
		}
		return v
	}
	return result.StatOf(values(curve[from : from+size])).Median, result.StatOf(values(curve[n-size:])).Median, true
}
