package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/shaledb/shale/bench/month"
)

// simulateCmd is bench simulate.
type simulateCmd struct {
	Tenants   int           `default:"1000" help:"Number of tenants. What all of them send together does not depend on it."`
	Days      int           `default:"33" help:"Number of days. Retention is 30 days, so the last ones show a bucket that no longer grows."`
	Skew      float64       `default:"0.99" help:"Exponent of the Zipf distribution of tenants by size. 0: all are equally large."`
	Scale     float64       `default:"1" help:"Share of the rows, series and streams to send."`
	Retention time.Duration `default:"720h" help:"How long rows are kept."`
	Latency   time.Duration `default:"20ms" help:"Time of a request to the bucket during restarts."`
	Images    string        `type:"path" placeholder:"DIR" help:"Folder for plots of objects and money. Default: no plots."`
}

// Help returns an example.
func (*simulateCmd) Help() string {
	return `Simulate a bucket over a month: objects, requests, money, and what a restart reads:

    go run ./bench simulate

The same for a small server, with plots:

    go run ./bench simulate --tenants 20 --scale 0.01 --images /tmp

Blocks are stubs; the catalogue, compaction, collection and retention are real. docs/bucket-costs.md has the method.`
}

// Run prints the tables.
func (c *simulateCmd) Run(ctx context.Context, out *streams) error {
	if c.Tenants < 1 || c.Days < 1 || c.Scale <= 0 || c.Skew < 0 || c.Retention <= 0 {
		return errors.New("--tenants, --days, --scale and --retention must be above 0, and --skew must not be negative")
	}
	fleet := month.DefaultFleet()
	fleet.Tenants, fleet.Skew = c.Tenants, c.Skew
	fleet.Series, fleet.Streams, fleet.LineBytes = fleet.Series*c.Scale, fleet.Streams*c.Scale, fleet.LineBytes*c.Scale
	r, err := month.Simulate(ctx, month.Options{
		Fleet: fleet, Days: c.Days, Retention: c.Retention, Latency: c.Latency,
		Progress: func(d month.Day) {
			fmt.Fprintf(out.stderr, "day %d of %d: %d objects, %.1f GB\n", d.Day, c.Days, d.All(), float64(d.Bytes)/1e9)
		},
	})
	if err != nil {
		return err
	}
	prices := month.ListPrices()
	fmt.Fprint(out.stdout, r.Tables(prices))
	if c.Images == "" {
		return nil
	}
	for name, svg := range r.Plots(prices) {
		if err := os.WriteFile(filepath.Join(c.Images, name), []byte(svg), 0o644); err != nil {
			return err
		}
	}
	return nil
}
