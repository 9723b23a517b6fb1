package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/values"
)

// loadShape holds the flags that say which series a fleet of targets has, and how they change. With the same
// shape, shale load target serves the series that shale load remote-write sends.
type loadShape struct {
	Targets int               `default:"10" placeholder:"N" help:"Number of scrape targets."`
	Metrics int               `default:"100" placeholder:"N" help:"Number of metrics per target."`
	Series  int               `default:"10" placeholder:"N" help:"Number of series per metric and target."`
	Labels  int               `default:"10" placeholder:"N" help:"Number of constant labels per series, besides those that tell series apart."`
	Name    string            `default:"load_metric" placeholder:"NAME" help:"Prefix of all metric names."`
	Seed    uint64            `default:"1" placeholder:"N" help:"Seed of series and values."`
	Value   values.ValueModel `default:"int100" help:"Model of the values: int100 (integers of 0-99, as avalanche), counter, gauge (straight lines), walk (random walk), random or float (all bits random), const; or native histograms: histogram (integer counts), histogram-float, histogram-custom (custom bounds)."`

	SeriesInterval config.Duration `placeholder:"TIME" help:"Time after which every series of a target ends and is replaced by one with another cycle_id label. 0: never."`
	RelabelJitter  relabelJitter   `default:"none" help:"How targets spread their relabelling: none (all at once), uniform:10m (each at a random time within 10m), or stagger:30s (one every 30s)."`
	RolloutStagger config.Duration `placeholder:"TIME" help:"Time between the first samples of one target and those of the next."`
	Exemplars      float64         `placeholder:"SHARE" help:"Share of samples with an exemplar (a trace_id), from 0 to 1."`
}

// fleet returns the shape that both commands have.
func (s *loadShape) fleet() fleet.Fleet {
	return fleet.Fleet{
		Seed: s.Seed, Targets: s.Targets, Metrics: s.Metrics, Series: s.Series, Labels: s.Labels, Name: s.Name, Value: s.Value,
		Exemplars: s.Exemplars,
		Churn: fleet.Churn{
			SeriesInterval: s.SeriesInterval.Std(), Relabel: fleet.Spread(s.RelabelJitter), Rollout: s.RolloutStagger.Std(),
		},
	}
}

// totalSuffix ends the names of counters where metrics have types.
const totalSuffix = "_total"

// relabelJitter is a spread on the command line: none, uniform:10m or stagger:30s.
type relabelJitter fleet.Spread

// UnmarshalText reads a relabelJitter.
func (j *relabelJitter) UnmarshalText(text []byte) error {
	how, by, _ := strings.Cut(string(text), ":")
	*j = relabelJitter{}
	if err := j.How.UnmarshalText([]byte(how)); err != nil {
		return err
	}
	if by == "" && j.How == fleet.SpreadNone {
		return nil
	}
	var err error
	if j.By, err = config.ParseDuration(by); err == nil && (j.By == 0 || j.How == fleet.SpreadNone) {
		err = fmt.Errorf("%q: want none, uniform:10m or stagger:30s", text)
	}
	return err
}

// lateness is a share and a time, such as 0.1:30m, on the command line.
type lateness pace.Lateness

// UnmarshalText reads a lateness.
func (l *lateness) UnmarshalText(text []byte) error {
	share, by, _ := strings.Cut(string(text), ":")
	p, err := strconv.ParseFloat(share, 64)
	if err != nil {
		return fmt.Errorf("%q: want a share and a time, such as 0.1:30m", text)
	}
	d, err := config.ParseDuration(by)
	*l = lateness{Share: p, By: d}
	return err
}
