package main

import (
	"context"
	"errors"
	"time"

	"github.com/shaledb/shale/bench/proc"
	"github.com/shaledb/shale/bench/system"
	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/send"
)

// counters are the figures read before and after a load.
type counters struct {
	proc.Usage
	received, syncs, device float64
	at                      time.Time
}

const syncsMetric = "shale_journal_sync_seconds_count"

func (t *trial) read(ctx context.Context, srv *system.Server, graphite bool) (c counters, err error) {
	if graphite {
		if c.received, err = srv.Received(ctx); err != nil {
			return c, err
		}
	}
	if srv.Kind == system.Shale {
		if c.syncs, err = srv.Metric(ctx, syncsMetric, ""); err != nil {
			return c, err
		}
	}
	if n, err := proc.DeviceWrites(srv.Dir); err == nil { // some file systems have no device of their own
		c.device = float64(n)
	}
	c.at = time.Now()
	c.Usage, err = srv.Usage()
	return c, err
}

// measure runs a load and records its cost, until the server has received all of it and until it has settled.
func (t *trial) measure(ctx context.Context, srv *system.Server, atMost time.Duration, args ...string) (*send.LogsReport, error) {
	graphite := args[0] == "graphite"
	if err := proc.ClearPeak(srv.PID); err != nil {
		t.rec.Note("the peak of memory is counted from the start of the server: %v", err)
	}
	before, err := t.read(ctx, srv, graphite)
	if err != nil {
		return nil, err
	}
	report, err := t.load(ctx, atMost, args...)
	if err != nil {
		return report, err
	}
	samples, seconds := float64(report.Acked), report.Seconds
	if graphite {
		drained, took, err := t.drain(ctx, srv, before.received+float64(report.Sent))
		if err != nil {
			return report, err
		}
		samples, seconds = drained-before.received, seconds+took.Seconds()
	}
	after, err := t.read(ctx, srv, graphite)
	if err != nil {
		return report, err
	}
	t.note(report, &before, &after, samples, seconds)
	return report, t.settle(ctx, srv, &before, samples)
}

// note sets the figures of a load.
func (t *trial) note(report *send.LogsReport, before, after *counters, samples, seconds float64) {
	r := t.rec
	cpu := after.CPU - before.CPU
	wall := after.at.Sub(before.at).Seconds()
	r.Set("samples", samples)
	r.Set("series", float64(report.Series))
	r.Set("samples/s", samples/seconds)
	r.Set("cpu-s/M", cpu/samples*1e6)
	r.Set("cpu-share", cpu/wall)
	r.Set("rss-B", float64(after.RSS))
	r.Set("peak-B", float64(after.Peak))
	r.Set("writes/s", float64(after.WriteCalls-before.WriteCalls)/wall)
	r.Set("write-B/s", float64(after.WriteBytes-before.WriteBytes)/wall)
	if after.device > before.device {
		r.Set("device-writes/s", (after.device-before.device)/wall)
	}
	if t.sys.Kind == system.Shale {
		r.Set("syncs/s", (after.syncs-before.syncs)/wall)
	}
	if report.Kind == "remote-write" { // Graphite has no responses
		r.Set("p50-s", report.Latency.P50)
		r.Set("p99-s", report.Latency.P99)
		r.Set("retries", float64(report.Retries))
	}
	if lost := float64(report.Sent) - samples; lost > 0 {
		r.Set("lost", lost)
		r.Note("%.0f of %d samples were not acknowledged: %s", lost, report.Sent, report.LastError)
	}
	r.Set("loader-cpu-s/M", report.CPUPerMillion)
	r.Set("lag-s", report.LagSeconds)
}

// drainPatience is the time without progress of a counter after which the rest counts as lost.
const drainPatience = 5 * time.Second

// drain waits until the server has received all points: when the load ends, the last ones are in buffers of
// the operating system.
func (t *trial) drain(ctx context.Context, srv *system.Server, want float64) (got float64, took time.Duration, err error) {
	began := time.Now()
	moved, last := began, -1.0
	for {
		if got, err = srv.Received(ctx); err != nil {
			return got, 0, err
		}
		now := time.Now()
		if got >= want {
			return got, now.Sub(began), nil
		}
		if got > last {
			last, moved = got, now
		}
		if now.Sub(moved) > drainPatience {
			return got, moved.Sub(began), nil
		}
		if err := pace.Sleep(ctx, 50*time.Millisecond); err != nil {
			return got, 0, err
		}
	}
}

// busy is the share of a core above which a server has work to do. An idle one takes about 0.01.
const busy = 0.05

// settle waits until the server has no more work, and records its usage until then and its memory now.
func (t *trial) settle(ctx context.Context, srv *system.Server, before *counters, samples float64) error {
	began := time.Now()
	u, quiet, err := t.quiet(ctx, srv)
	if err != nil {
		return err
	}
	if !quiet {
		t.rec.Note("still busy after %v", t.Settle)
	}
	disk, err := system.DiskBytes(srv.Dir)
	if err != nil {
		return err
	}
	t.rec.Set("cpu-s/M-settled", (u.CPU-before.CPU)/samples*1e6)
	t.rec.Set("settled-s", max(0, (time.Since(began)-t.Quiet).Seconds()))
	t.rec.Set("settled-rss-B", float64(u.RSS))
	t.rec.Set("disk-B", float64(disk))
	return nil
}

// quiet waits until the server has been idle for a while, and returns its usage.
func (t *trial) quiet(ctx context.Context, srv *system.Server) (u proc.Usage, quiet bool, err error) {
	const look = 500 * time.Millisecond
	if u, err = srv.Usage(); err != nil {
		return u, false, err
	}
	began, since := time.Now(), time.Now()
	for last, lastAt := u.CPU, began; time.Since(since) < t.Quiet; {
		if time.Since(began) > t.Settle {
			return u, false, nil
		}
		if err := pace.Sleep(ctx, look); err != nil {
			return u, false, err
		}
		if u, err = srv.Usage(); err != nil {
			return u, false, errors.Join(err, srv.Alive())
		}
		// Linux counts in hundredths of a second, so shorter intervals would show nothing.
		if time.Since(lastAt) >= time.Second {
			if (u.CPU-last)/time.Since(lastAt).Seconds() > busy {
				since = time.Now()
			}
			last, lastAt = u.CPU, time.Now()
		}
	}
	return u, true, nil
}
