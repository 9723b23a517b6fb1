package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/shaledb/shale/bench/result"
	"github.com/shaledb/shale/bench/system"
	"github.com/shaledb/shale/internal/load/lines"
	"github.com/shaledb/shale/test/faultproxy"
	"github.com/shaledb/shale/test/ports"
)

// requestsLoad is the load whose bucket is in S3.
const requestsLoad = "requests-s3"

// Modes of the scheduler that the load compares.
type requestMode struct {
	name   string
	flags  []string
	hedged bool
}

func requestModes() []requestMode {
	const gap, hedge = "--bucket-requests.coalesce-gap", "--bucket-requests.hedge"
	return []requestMode{
		{"apart", []string{gap, "0", hedge, "off"}, false},
		{"coalesced", []string{hedge, "off"}, false},
		{"coalesced and hedged", nil, true},
	}
}

// requestsS3 measures cold queries of metrics and lines whose blocks are in S3: versitygw serves the folder
// that the blocks were shipped to, and a proxy in front of it adds delays and stalls.
func requestsS3(ctx context.Context, t *trial) error {
	end := time.Now().Truncate(time.Minute)
	from := end.Add(-logsSpan)
	report, err := t.ingestLogs(ctx, func(srv *system.Server) []string { return t.logs(srv, t.LogsGB, from, logsSpan) })
	if err != nil {
		return err
	}
	if err := t.with(ctx, "", func(srv *system.Server) error {
		return errors.Join(t.sendLong(ctx, srv, end), t.sendRated(ctx, srv, end), t.sendMany(ctx, srv, end))
	}); err != nil {
		return err
	}
	if _, err := t.shipAndCompact(ctx); err != nil {
		return err
	}
	paths, err := requestPaths(report.Needles, from, end)
	if err != nil {
		return err
	}
	s, err := startS3(ctx, t)
	if err != nil {
		return err
	}
	defer func() { _ = s.stop() }()
	flags := t.sys.Flags
	for _, m := range requestModes() {
		t.sys.Flags = slices.Concat(flags, s.flags(), m.flags)
		for _, delay := range []time.Duration{20 * time.Millisecond, 100 * time.Millisecond} {
			if m.hedged { // nothing stalls
				break
			}
			for _, p := range paths {
				if err := t.askS3(ctx, s, p, delay, m.name); err != nil {
					return err
				}
			}
		}
		if err := t.askStalled(ctx, s, report.Needles[0].Apps, from, m.name); err != nil {
			return err
		}
		if err := t.askAtOnce(ctx, s, paths, m.name); err != nil {
			return err
		}
	}
	return nil
}

// namedPath is a query.
type namedPath struct{ name, path string }

// requestPaths returns the queries of lines and those of metrics.
func requestPaths(needles []lines.Needle, from, end time.Time) (all []namedPath, err error) {
	counts, err := countQueries(needles)
	if err != nil {
		return nil, err
	}
	for _, q := range counts[:3] {
		all = append(all, namedPath{q.name, q.path(system.Shale, from, end)})
	}
	searches, err := logQueries(needles)
	if err != nil {
		return nil, err
	}
	for _, q := range searches {
		all = append(all, namedPath{q.name, q.path(system.Shale, from, end, 0)})
	}
	for _, q := range queryList() {
		all = append(all, namedPath{q.name, q.path(end)})
	}
	return all, nil
}

// withS3 starts the system, lets the faults begin, and calls do. A start makes dozens of requests, which do
// not count.
func (t *trial) withS3(ctx context.Context, s *s3Server, memory string, f faultproxy.Faults, do func(srv *system.Server) error) error {
	s.Inject(faultproxy.Faults{})
	return t.with(ctx, memory, func(srv *system.Server) error {
		s.Reset()
		s.Inject(f)
		defer s.Inject(faultproxy.Faults{})
		return do(srv)
	})
}

// askS3 sends a query to a server that has just been started, and records what that has read.
func (t *trial) askS3(ctx context.Context, s *s3Server, p namedPath, delay time.Duration, mode string) error {
	rec := t.aside(requestLoad(fmt.Sprintf("%s/%s/%s", p.name, delay, mode)))
	err := t.withS3(ctx, s, logsMemory, faultproxy.Faults{Delay: delay}, func(srv *system.Server) error {
		seconds, _, err := timed(ctx, srv, p.path)
		rec.Set("cold-s", seconds)
		rec.Set("bucket-requests", float64(s.Counts().Requests))
		rec.Set("bucket-B", float64(s.Counts().Bytes))
		return err
	})
	if err != nil {
		rec.Error = err.Error()
	}
	t.extra = append(t.extra, rec)
	return ctx.Err()
}

// The small queries of askStalled: so many, each over a minute of one app. They jump over the whole span,
// with so little memory that its cache, 6 %, has few of their pages.
const (
	stalledQueries = 600
	stalledMemory  = "64MiB"
	stalledSlice   = time.Minute
	stalledStride  = 67 // minutes; has no factor in common with those of the span
)

// askStalled sends small queries over bytes that are not cached, while 1 % of the requests stall for 2 s.
func (t *trial) askStalled(ctx context.Context, s *s3Server, apps []string, from time.Time, mode string) error {
	stalls := faultproxy.Faults{Delay: 20 * time.Millisecond, Stalls: 0.01, Stall: 2 * time.Second}
	rec := t.aside(requestLoad("small queries, 1 % stalled 2 s/20ms/" + mode))
	err := t.withS3(ctx, s, stalledMemory, stalls, func(srv *system.Server) error {
		var took []float64
		for i := range stalledQueries {
			at := from.Add(time.Duration(i) * stalledStride * stalledSlice % logsSpan)
			q := countQuery{window: stalledSlice, logql: fmt.Sprintf(`sum(count_over_time({cluster="load-1",app=%q} |= "a" [1m]))`, apps[i%len(apps)])}
			seconds, _, err := timed(ctx, srv, q.path(system.Shale, at, at.Add(stalledSlice)))
			if err != nil {
				return err
			}
			took = append(took, seconds)
		}
		rec.Set("p50-s", result.Quantile(took, 0.5))
		rec.Set("p99-s", result.Quantile(took, 0.99))
		rec.Set("bucket-requests", float64(s.Counts().Requests))
		rec.Set("stalled", float64(s.Counts().Faulty))
		return nil
	})
	if err != nil {
		rec.Error = err.Error()
	}
	t.extra = append(t.extra, rec)
	return ctx.Err()
}

// askAtOnce sends 20 queries over the same blocks at one time.
func (t *trial) askAtOnce(ctx context.Context, s *s3Server, paths []namedPath, mode string) error {
	for _, p := range paths[:3] {
		rec := t.aside(requestLoad("20 at once: " + p.name + "/20ms/" + mode))
		err := t.withS3(ctx, s, logsMemory, faultproxy.Faults{Delay: 20 * time.Millisecond}, func(srv *system.Server) error {
			began := time.Now()
			var g sync.WaitGroup
			errs := make([]error, 20)
			for i := range errs {
				g.Go(func() { _, _, errs[i] = timed(ctx, srv, p.path) })
			}
			g.Wait()
			rec.Set("cold-s", time.Since(began).Seconds())
			rec.Set("bucket-requests", float64(s.Counts().Requests))
			rec.Set("bucket-B", float64(s.Counts().Bytes))
			return errors.Join(errs...)
		})
		if err != nil {
			rec.Error = err.Error()
		}
		t.extra = append(t.extra, rec)
	}
	return ctx.Err()
}

func requestLoad(name string) string { return "requests-s3/" + name }

// requestReport makes a table of all queries.
func requestReport(records []result.Record) string {
	var names []string
	for _, g := range result.Groups(records) {
		if name, ok := strings.CutPrefix(g.Load, requestLoad("")); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return asideReport(records, "query", names, requestLoad, []string{"cold-s", "p50-s", "p99-s", "bucket-requests", "stalled", "bucket-B"})
}

// s3Server is a versitygw over the data folder of a trial, which has the folder of the bucket in it, and the
// proxy in front of it.
type s3Server struct {
	*faultproxy.Proxy
	cmd  *exec.Cmd
	keys string
}

func startS3(ctx context.Context, t *trial) (*s3Server, error) {
	if t.S3 == "" {
		return nil, errors.New("no S3 server: make tools installs versitygw in bin/test, or give its path with --s3")
	}
	addrs, err := ports.Reserve(1)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(t.dir, "s3")
	for _, sub := range []string{"iam", "sidecar"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, err
		}
	}
	s := &s3Server{keys: filepath.Join(dir, "keys")}
	if err := os.WriteFile(s.keys, []byte("[default]\naws_access_key_id = bench\naws_secret_access_key = of-the-bench\n"), 0o600); err != nil {
		return nil, err
	}
	s.cmd = exec.CommandContext(ctx, t.S3, "--port", addrs[0], "--iam-dir", filepath.Join(dir, "iam"),
		"posix", "--sidecar", filepath.Join(dir, "sidecar"), filepath.Join(t.dir, "data"))
	s.cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY=bench", "ROOT_SECRET_KEY=of-the-bench")
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.DialTimeout("tcp", addrs[0], time.Second)
		if err == nil {
			c.Close()
			break
		}
		if time.Since(began) > 30*time.Second {
			return nil, errors.Join(fmt.Errorf("%s does not listen: %w", t.S3, err), s.stop())
		}
	}
	if s.Proxy, err = faultproxy.Start("http://" + addrs[0]); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func (s *s3Server) stop() (err error) {
	if s.Proxy != nil {
		err = s.Proxy.Close()
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // it was killed
	return err
}

// flags returns the flags of a server whose bucket is behind the proxy.
func (s *s3Server) flags() []string {
	q := url.Values{"endpoint": {s.URL}, "path-style": {"1"}, "credentials-file": {s.keys}}
	return []string{"--bucket", "s3://bucket?" + q.Encode()}
}
