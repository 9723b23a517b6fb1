package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/shaledb/shale/bench/proc"
	"github.com/shaledb/shale/bench/result"
	"github.com/shaledb/shale/bench/system"
)

// storm is a number of series of which each has a sample in each interval, for some intervals; then every
// series is replaced within one interval, and the new series go on for 5 intervals.
type storm struct {
	memory   int64 // budget of Shale
	targets  int   // of 5,000 series
	interval time.Duration
}

// The intervals of a storm before and after the one in which all series are replaced.
const (
	intervalsBefore = 6
	intervalsAfter  = 5
)

// Two cores write a sample of each of 200 million series in about five minutes, besides the load itself.
var (
	storm10M  = storm{1 << 30, 2_000, time.Minute}
	storm20M  = storm{1900 << 20, 4_000, time.Minute}
	storm200M = storm{14 << 30, 40_000, 10 * time.Minute}
)

func (m storm) load(name, about string) *load {
	return &load{
		name: name, about: about, speaks: "v1", run: m.run, long: true,
		columns: []string{"before-rss-B", "peak-B", "rss-B", "bound-B", "known-B/key", "cpu-s/M", "retries", "lost", "lag-s"},
		ratios:  []string{"peak-B", "rss-B"}, curves: []string{"rss-B"},
	}
}

// run measures the memory of many series, and of replacing all of them.
func (m storm) run(ctx context.Context, t *trial) error {
	return t.with(ctx, strconv.FormatInt(m.memory>>20, 10)+"MiB", func(srv *system.Server) error {
		watch := t.watch(srv, time.Second)
		err := m.relabel(ctx, t, srv, watch)
		t.rec.Curves = watch.Stop()
		m.note(t)
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

func (m storm) relabel(ctx context.Context, t *trial, srv *system.Server, watch *proc.Watch) error {
	interval := m.interval
	if t.Duration < time.Minute { // a trial run
		interval = t.Duration
	}
	shape := func(more ...string) []string {
		return t.remoteWrite(srv, t.scaled(m.targets), append([]string{"--series-interval", (intervalsBefore * interval).String()}, more...)...)
	}
	begun, err := t.load(ctx, 0, shape("--rate", "0", "--rounds", "1", "--start", at(time.Now().Add(-2*interval)))...)
	if err != nil {
		return err
	}
	t.rec.Set("series", float64(begun.Series))
	before, err := srv.Usage()
	if err != nil {
		return err
	}
	t.rec.Marks = map[string]float64{
		"all known": watch.Since(), "relabelling": watch.Since() + (intervalsBefore * interval).Seconds(),
		"relabelled": watch.Since() + ((intervalsBefore + 1) * interval).Seconds(),
	}
	rounds := intervalsBefore + 1 + intervalsAfter
	report, err := t.load(ctx, time.Duration(rounds)*interval, shape("--interval", interval.String(), "--duration", (time.Duration(rounds)*interval).String(), "--start", at(time.Now()))...)
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

// note records the memory before, at the peak, and at the end, from the curve.
func (m storm) note(t *trial) {
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
		t.rec.Set("bound-B", 1.15*float64(m.memory)+64<<20)
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
