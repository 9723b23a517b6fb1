package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/shaledb/shale/bench/result"
	"github.com/shaledb/shale/bench/system"
	"github.com/shaledb/shale/internal/load/send"
)

// settings are the user's settings for all loads.
type settings struct {
	Duration time.Duration // of a load that has no natural end
	Soak     time.Duration
	Scale    float64 // of the numbers of series
	// Quiet is how long a server must be idle to count as settled, Settle the longest wait for that.
	Quiet, Settle time.Duration
	Queries       int     // times that each query is sent
	Memory        string  // budget of Shale, unless a load sets its own
	LogsGB        float64 // of the loads of logs
	Loader        string  // binary
	Slow          string  // binary of bench/slow; empty: none
	S3            string  // binary of versitygw; empty: none
	Work          string  // folder for data
	// agreed holds the results that those of all systems must equal.
	agreed *agreement
	// Feeder is a Prometheus that scrapes; nil: none is given.
	Feeder *system.System
	Log    io.Writer
}

// scaled returns a number of series, names or targets at the scale; at least 1.
func (s *settings) scaled(n int) int { return max(1, int(float64(n)*s.Scale)) }

// trial is one run of a load against a system.
type trial struct {
	settings
	sys system.System
	rec *result.Record
	dir string
	// extra are records in addition to that of the load.
	extra []result.Record
}

// start starts the system over the trial's folder, with the usual budget of memory if none is given.
func (t *trial) start(ctx context.Context, memory string) (*system.Server, error) {
	if memory == "" {
		memory = t.Memory
	}
	return system.Start(ctx, t.sys, system.Options{Dir: filepath.Join(t.dir, "data"), Memory: memory})
}

// with starts the system, calls do, and stops it.
func (t *trial) with(ctx context.Context, memory string, do func(srv *system.Server) error) (err error) {
	srv, err := t.start(ctx, memory)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, srv.Stop()) }()
	if err = do(srv); err == nil {
		err = srv.Alive()
	}
	return err
}

// loadPatience is the longest time of a load without a duration, and the most that a load may exceed its
// duration.
const loadPatience = 15 * time.Minute

// load runs the load generator to its end and returns its report. A report of log lines has all the fields
// that benchmarks read; those of lines stay zero in other loads.
func (t *trial) load(ctx context.Context, atMost time.Duration, args ...string) (*send.LogsReport, error) {
	ctx, cancel := context.WithTimeout(ctx, atMost+loadPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, t.Loader, append(append([]string{"load"}, args...), "--json", "--quiet")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("shale load: %w: %.500s", errors.Join(err, ctx.Err()), complaints.String())
	}
	report := &send.LogsReport{}
	if err := json.Unmarshal(out.Bytes(), report); err != nil {
		return nil, fmt.Errorf("shale load: %w: %.200q", err, out.String())
	}
	if report.Sent == 0 || (report.Kind == "remote-write" || report.Kind == "logs") && report.Acked == 0 {
		return report, fmt.Errorf("the load was not taken: %d samples sent, %d acknowledged: %s", report.Sent, report.Acked, report.LastError)
	}
	t.rec.Report = bytes.TrimSpace(out.Bytes())
	return report, nil
}

// graphite returns the arguments of a Graphite load.
func (t *trial) graphite(srv *system.Server, agents, metrics int, more ...string) []string {
	return append([]string{
		"graphite", "--target", srv.Graphite, "--agents", strconv.Itoa(agents), "--metrics", strconv.Itoa(metrics),
		"--connections", strconv.Itoa(min(4, agents)), "--metrics-url", "",
	}, more...)
}

// remoteWrite returns the arguments of a remote write load: so many targets of 500 metrics with 10 series
// each.
func (t *trial) remoteWrite(srv *system.Server, targets int, more ...string) []string {
	return append([]string{
		"remote-write", "--url", srv.WriteURL(), "--targets", strconv.Itoa(targets), "--metrics", "500", "--series", "10",
		"--labels", "10", "--batch", "2000", "--concurrency", "4",
	}, more...)
}

// at writes a time for --start.
func at(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }
