package roles

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/plot"
	"github.com/shaledb/shale/internal/terminal"
)

// Command is the flags of `shale plan cluster`.
type Command struct {
	Series      float64       `default:"10000000" placeholder:"N" help:"Active series."`
	Interval    time.Duration `default:"15s" placeholder:"TIME" help:"Time between two samples of a series."`
	NewSeries   float64       `default:"0.1" placeholder:"SHARE" help:"New series a day, as a share of the active ones. A relabelling of all each day is 1."`
	Logs        config.Size   `default:"1TB" placeholder:"SIZE" help:"Bytes of log lines a day."`
	Tenants     float64       `default:"1" placeholder:"N" help:"Tenants that share the series evenly."`
	KeepSamples float64       `default:"30" placeholder:"DAYS" help:"Days for which samples are kept."`
	KeepLines   float64       `default:"30" placeholder:"DAYS" help:"Days for which lines are kept."`
	Peak        float64       `default:"1.5" placeholder:"FACTOR" help:"Highest load over the mean."`

	Cores   float64     `default:"16" placeholder:"N" help:"Cores of a machine."`
	Memory  config.Size `default:"64GiB" placeholder:"SIZE" help:"Memory of a machine."`
	Disk    config.Size `default:"4TB" placeholder:"SIZE" help:"Disk of a machine."`
	Gbps    float64     `default:"10" placeholder:"GBPS" help:"Network of a machine."`
	Dollars float64     `default:"500" placeholder:"USD" help:"Price of a machine a month."`

	Busy         float64       `default:"0.5" placeholder:"SHARE" help:"Share of the processors that the peak may take."`
	Replicas     float64       `default:"3" placeholder:"N" help:"Brokers that have each record."`
	LabelRefresh time.Duration `default:"1h" placeholder:"TIME" help:"The setting label-refresh."`
	Retention    time.Duration `name:"kafka-retention" default:"48h" placeholder:"TIME" help:"How long Kafka keeps records: at least 24h."`
	ShipEvery    time.Duration `default:"10m" placeholder:"TIME" help:"The setting ship-every."`
	Sticky       bool          `help:"Each sender keeps to one gateway, so that a gateway knows a part of the series."`
	JSON         bool          `name:"json" help:"Print the plan as JSON."`
}

// Help explains the command.
func (*Command) Help() string {
	return `
Plan for ten million series and a terabyte of lines a day, the defaults:

    shale plan cluster

Plan for a very large load:

    shale plan cluster --series 1.3e9 --interval 26s --logs 100TB --tenants 1000

The costs of a unit of work were measured on one machine with 2 cores:
docs/scale-out.md has them. Processes that query are not planned: what they
need depends on the queries.
`
}

// Print computes a plan and writes it.
func (c *Command) Print(w io.Writer) error {
	p := c.plan()
	if c.JSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(p)
	}
	rows := [][]string{{"role", "machines", "because of", "cores at the peak", "memory each", "disk each", "$/month"}}
	for _, r := range p.Roles {
		rows = append(rows, []string{r.Name, fmt.Sprint(r.Machines), r.Bound, plot.Number(round(r.Cores)), sizeOf(r.Memory), sizeOf(r.Disk), fmt.Sprintf("%.0f", r.Dollars)})
	}
	if _, err := fmt.Fprintf(w, "%s samples a second, %s new series a second, %s of lines a second in the mean\n\n", plot.Number(round(p.Samples)), plot.Number(round(p.New)), plot.Bytes(round(p.Lines))); err != nil {
		return err
	}
	if err := terminal.Table(w, rows); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "\npartitions: %d\nKafka: %s a second in at the peak, %.0f %% of it labels that are sent again\n"+
		"bucket: %s, %.0f $ a month; %s writes and %s reads a second by ships and merges, %.0f $ a month\nall together: %.0f $ a month, without queries\n\nnearest to a limit:\n",
		p.Partitions, plot.Bytes(round(p.KafkaIn)), 100*p.Labels/p.KafkaIn, plot.Bytes(round(p.BucketBytes)), p.StorageDollars, plot.Number(round(p.Puts)), plot.Number(round(p.Gets)),
		p.RequestDollars, p.Dollars); err != nil {
		return err
	}
	for _, s := range p.Strains[:3] {
		if s.Share < 0.005 {
			break
		}
		if _, err := fmt.Fprintf(w, "%5.0f %%  %s: %s\n", 100*s.Share, s.What, s.Remedy); err != nil {
			return err
		}
	}
	return nil
}

// Check refuses flags that mean nothing.
func (c *Command) Check() error {
	l, m, p := c.of()
	return check(&l, &m, &p)
}

func (c *Command) of() (Load, Machine, Policy) {
	return Load{c.Series, c.Interval.Seconds(), c.NewSeries, float64(c.Logs), c.Tenants, c.KeepSamples, c.KeepLines, c.Peak},
		Machine{c.Cores, float64(c.Memory), float64(c.Disk), c.Gbps, c.Dollars},
		Policy{c.Busy, c.Replicas, c.LabelRefresh.Seconds(), c.ShipEvery.Seconds(), c.Retention.Seconds(), c.Sticky}
}

func (c *Command) plan() Plan { return NewPlan(c.of()) }

func sizeOf(bytes float64) string {
	if bytes == 0 {
		return "-"
	}
	return plot.Bytes(round(bytes))
}

// round leaves three digits.
func round(v float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
	if err != nil {
		return v
	}
	return r
}
