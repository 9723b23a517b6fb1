package main

import (
	"context"
	"errors"
	"time"

	"github.com/shaledb/shale/bench/proc"
	"github.com/shaledb/shale/bench/result"
	"github.com/shaledb/shale/bench/system"
)

// The phases of the memory load: a sample of each series a minute for some minutes; then every series is
// replaced within a minute, and the new series go on for 5 minutes.
const (
	memoryBudget  = 1 << 30
	minutesBefore = 6
	minutesAfter  = 5
)

// memory measures the memory of many series, and of replacing all of them.
func memory(ctx context.Context, t *trial) error {
	return t.with(ctx, "1GiB", func(srv *system.Server) error {
		watch := t.watch(srv, time.Second)
		err := t.relabel(ctx, srv, watch)
		t.rec.Curves = watch.Stop()
		t.noteMemory()
		return errors.Join(err, t.noteKnown(ctx, srv))
	})
}

// watch reads the memory of a server at intervals.
func (t *trial) watch(srv *system.Server, interval time.Duration) *proc.Watch {
	return proc.StartWatch(interval, func() (map[string]float64, error) {
		u, err := srv.Usage()
		return map[string]float64{"rss-B": float64(u.RSS)}, err
	})
}

func (t *trial) relabel(ctx context.Context, srv *system.Server, watch *proc.Watch) error {
	minute := time.Minute
	if t.Duration < minute { // a trial run
		minute = t.Duration
	}
	shape := func(more ...string) []string {
		return t.remoteWrite(srv, t.scaled(2000), append([]string{"--series-interval", (minutesBefore * minute).String()}, more...)...)
	}
	begun, err := t.load(ctx, 0, shape("--rate", "0", "--rounds", "1", "--start", at(time.Now().Add(-2*minute)))...)
	if err != nil {
		return err
	}
	t.rec.Set("series", float64(begun.Series))
	before, err := srv.Usage()
	if err != nil {
		return err
	}
	t.rec.Marks = map[string]float64{
		"all known": watch.Since(), "relabelling": watch.Since() + (minutesBefore * minute).Seconds(),
		"relabelled": watch.Since() + ((minutesBefore + 1) * minute).Seconds(),
	}
	rounds := minutesBefore + 1 + minutesAfter
	report, err := t.load(ctx, time.Duration(rounds)*minute, shape("--interval", minute.String(), "--duration", (time.Duration(rounds)*minute).String(), "--start", at(time.Now()))...)
	if err != nil {
		return err
	}
	after, err := srv.Usage()
	if err != nil {
		return err
	}
	t.rec.Set("samples", float64(report.Acked))
	t.rec.Set("cpu-s/M", (after.CPU-before.CPU)/float64(report.Acked)*1e6)
	t.rec.Set("retries", float64(report.Retries))
	t.rec.Set("lag-s", report.MaxLag)
	if lost := float64(report.Sent - report.Acked); lost > 0 {
		t.rec.Set("lost", lost)
	}
	return nil
}

// noteMemory records the memory before, at the peak, and at the end, from the curve.
func (t *trial) noteMemory() {
	relabelling, ok := t.rec.Marks["relabelling"]
	curve := t.rec.Curves["rss-B"]
	if !ok || len(curve) == 0 {
		return
	}
	end := curve[len(curve)-1][0]
	var before, all, last []float64
	for _, p := range curve {
		all = append(all, p[1])
		if p[0] < relabelling && p[0] >= t.rec.Marks["all known"] {
			before = append(before, p[1])
		}
		if p[0] > end-10 {
			last = append(last, p[1])
		}
	}
	t.rec.Set("before-rss-B", result.StatOf(before).Most)
	t.rec.Set("peak-B", result.StatOf(all).Most)
	t.rec.Set("rss-B", result.StatOf(last).Median)
	if t.sys.Kind == system.Shale {
		t.rec.Set("bound-B", 1.15*memoryBudget+64<<20)
	}
}

// noteKnown records the size of Shale's known set.
func (t *trial) noteKnown(ctx context.Context, srv *system.Server) error {
	if t.sys.Kind != system.Shale {
		return nil
	}
	used, err1 := srv.Metric(ctx, "shale_head_known_bytes", "")
	keys, err2 := srv.Metric(ctx, "shale_head_active_series", "")
	if err := errors.Join(err1, err2); err != nil || keys == 0 {
		return err
	}
	t.rec.Set("known-B/key", used/keys)
	return nil
}
