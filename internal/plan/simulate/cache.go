package simulate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/load/progress"
	"github.com/shaledb/shale/internal/plan/cluster"
	"github.com/shaledb/shale/internal/plan/study"
	"github.com/shaledb/shale/internal/plan/trace"
	"github.com/shaledb/shale/internal/plan/workload"
)

// Cache has the flags of the subcommand.
type Cache struct {
	Trace       string  `arg:"" optional:"" help:"Trace to replay: a CSV file, or a file in libCacheSim's oracleGeneral format. Without one, a synthetic workload is replayed."`
	Format      string  `enum:"auto,csv,oracle" default:"auto" placeholder:"FORMAT" help:"Format of the trace: csv, oracle (oracleGeneral), or auto (csv if the name ends in .csv)."`
	Sample      float64 `default:"1" placeholder:"SHARE" help:"Share of the keys of the trace to replay. Sizes and rates are scaled."`
	MaxRequests int     `default:"30000000" placeholder:"N" help:"Maximum number of requests to hold in memory. Each takes 28 bytes."`
	WarmUp      float64 `default:"0" placeholder:"SHARE" help:"Share of the time of a trace file that fills the caches and is not counted."`

	Model    string      `default:"p" placeholder:"NAME" help:"Synthetic workload: p, p2, g or fan-out."`
	Seed     uint64      `default:"7" placeholder:"N" help:"Seed of the synthetic workload."`
	Days     float64     `default:"7" placeholder:"DAYS" help:"Time of the synthetic workload that is counted, in days."`
	Produced config.Size `default:"7TB" placeholder:"SIZE" help:"Bytes that the real system stores a day. The synthetic workload is scaled to it."`

	Sizes    []config.Size `placeholder:"SIZE" help:"Sizes of the cache. Default: 1.2TB,5TB,12TB,25TB,50TB for a synthetic workload, and 1, 3, 10 and 30 % of all bytes for a trace file."`
	Policies []string      `placeholder:"NAME" help:"Policies to compare: lru, lru-shared, extstore, sieve, s3-fifo, w-tinylfu, shale, optimum. Default: all."`
	Delay    time.Duration `default:"14s" placeholder:"TIME" help:"Time from a request to the bucket until the cache has the value."`
	Queue    float64       `default:"10" placeholder:"PERCENT" help:"Share of the cache that the policy shale keeps in memory, as the queue of its tier on disk."`

	TargetHit  float64 `placeholder:"PERCENT" help:"Find the size at which this share of the first reads of queries hits."`
	TargetGets float64 `placeholder:"RATE" help:"Find the size with at most this many requests a second to the bucket in the worst minute."`

	Node      string  `default:"ssd" placeholder:"NAME" help:"Node of the price table to plan with: ssd (1.5 TB, 16 Gbps) or memory (6 GB)."`
	Gbps      float64 `placeholder:"GBPS" help:"Network traffic that the cluster must carry, in place of that of the trace."`
	IOPS      float64 `name:"iops" placeholder:"RATE" help:"Reads a second that the cluster must carry, in place of those of the trace."`
	GetBudget float64 `default:"5000" placeholder:"RATE" help:"Requests a second to the bucket that may refill a lost node; 0: no limit."`

	JSON  bool   `name:"json" xor:"output" help:"Print the report as JSON."`
	CSV   bool   `name:"csv" xor:"output" help:"Print the table as CSV."`
	SVG   string `name:"svg" placeholder:"FILE" help:"Also draw the requests to the bucket over the size, into a file."`
	Quiet bool   `help:"Show no progress."`
}

// Help teaches the command by examples.
func (*Cache) Help() string {
	return `What would a cache of another size, or with another policy, do? Replay the synthetic workload of a large system of logs:

    shale plan cache --produced 7TB --sizes 1.2TB,50TB

Find the size that keeps the bucket below a rate, and the cluster for it:

    shale plan cache --target-gets 5500 --policies shale

Replay a trace of your own. Its first row names the columns: time (seconds), key, size, and maybe query, age and kind:

    shale plan cache requests.csv --sizes 100MB,1GB --svg curve.svg

docs/cache-planning.md explains the columns.`
}

// Check returns what is wrong with the flags.
func (c *Cache) Check() error {
	for _, f := range []struct {
		name     string
		value    float64
		min, max float64
		want     string
	}{
		{"--sample", c.Sample, 1e-6, 1, "a share above 0 and at most 1"},
		{"--warm-up", c.WarmUp, 0, 0.95, "a share between 0 and 0.95"},
		{"--days", c.Days, 0.01, 60, "between 0.01 and 60 days"},
		{"--queue", c.Queue, 0, 90, "a percentage between 0 and 90"},
		{"--target-hit", c.TargetHit, 0, 100, "a percentage between 0 and 100"},
		{"--target-gets", c.TargetGets, 0, 1e12, "a rate of at least 0"},
		{"--gbps", c.Gbps, 0, 1e9, "at least 0"},
		{"--iops", c.IOPS, 0, 1e12, "at least 0"},
		{"--get-budget", c.GetBudget, 0, 1e12, "at least 0"},
		{"--max-requests", float64(c.MaxRequests), 1, 1e9, "between 1 and 1000000000"},
		{"--delay", c.Delay.Seconds(), 0, 86400, "between 0s and 24h"},
		{"--produced", float64(c.Produced), 1e6, 1e18, "at least 1MB"},
	} {
		if !(f.value >= f.min && f.value <= f.max) { // NaN is out of range
			return fmt.Errorf("%s: expected %s, got %v", f.name, f.want, f.value)
		}
	}
	for _, s := range c.Sizes {
		if s <= 0 {
			return errors.New("--sizes: expected sizes above 0, got 0")
		}
	}
	for _, p := range c.Policies {
		if !slices.Contains(study.DefaultPolicies(), p) {
			return fmt.Errorf("--policies: expected names among %s, got %q", strings.Join(study.DefaultPolicies(), ", "), p)
		}
	}
	if _, err := workload.Preset(c.Model); err != nil {
		return fmt.Errorf("--model: %w", err)
	}
	if _, err := cluster.FindNode(c.Node); err != nil {
		return fmt.Errorf("--node: %w", err)
	}
	return nil
}

// Simulate runs the study and writes its report. Progress is shown unless --quiet is set.
func (c *Cache) Simulate(ctx context.Context, out io.Writer, show progress.Progress) error {
	node, err := cluster.FindNode(c.Node)
	if err != nil {
		return err
	}
	t, err := c.trace()
	if err != nil {
		return err
	}
	s := study.Study{
		Trace: t, Sizes: c.sizes(t), Policies: c.Policies, Delay: c.Delay, Queue: c.Queue / 100, Workers: runtime.GOMAXPROCS(0),
		Node: node, Gbps: c.Gbps, IOPS: c.IOPS, GetBudget: c.GetBudget, Target: study.Target{HitRatio: c.TargetHit / 100, PeakGets: c.TargetGets},
	}
	if len(s.Policies) == 0 {
		s.Policies = study.DefaultPolicies()
	}
	if c.Quiet {
		show = progress.Progress{}
	}
	var r *study.Report
	var done atomic.Int64
	show.During(progress.Meter{Name: "replay", Total: s.Runs(), Read: done.Load, Detail: func() string {
		return fmt.Sprintf("%d of %d million requests", done.Load()/1e6, s.Runs()/1e6)
	}}, func() {
		r, err = s.Run(ctx, func(n int) { done.Add(int64(n)) })
	})
	if err != nil {
		return err
	}
	if c.SVG != "" {
		if err := os.WriteFile(c.SVG, []byte(r.Chart()), 0o644); err != nil { //nolint:gosec // anyone may see it
			return err
		}
	}
	return c.print(out, r)
}

// trace reads the trace or makes it.
func (c *Cache) trace() (*trace.Trace, error) {
	if c.Trace == "" {
		m, err := workload.Preset(c.Model)
		if err != nil {
			return nil, err
		}
		m.Days = c.Days
		t, err := m.Generate(c.Seed, c.MaxRequests)
		if err != nil {
			return nil, err
		}
		t.Scale = float64(c.Produced) / t.Summarize().Produced
		return t, nil
	}
	f, err := os.Open(c.Trace)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	read := trace.ReadOracle
	if c.Format == "csv" || c.Format == "auto" && strings.HasSuffix(c.Trace, ".csv") {
		read = trace.ReadCSV
	}
	t, err := read(c.Trace, f, trace.Limits{Requests: c.MaxRequests, Sample: c.Sample})
	if err != nil {
		return nil, err
	}
	t.WarmUp = int64(c.WarmUp * float64(t.Requests[len(t.Requests)-1].At))
	return t, nil
}

// sizes returns the sizes to simulate.
func (c *Cache) sizes(t *trace.Trace) (sizes []float64) {
	for _, s := range c.Sizes {
		sizes = append(sizes, float64(s))
	}
	switch {
	case len(sizes) > 0:
	case c.Trace == "":
		sizes = []float64{1.2e12, 5e12, 12e12, 25e12, 50e12}
	default:
		all := float64(t.Summarize().Footprint) * t.Scale
		sizes = []float64{0.01 * all, 0.03 * all, 0.1 * all, 0.3 * all}
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}
