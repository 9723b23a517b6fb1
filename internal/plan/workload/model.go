package workload

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// Model has the parameters of a workload. Times are in hours unless the name says otherwise.
type Model struct {
	Name string
	// Days is the time that is measured, and WarmUpDays the time before it.
	Days, WarmUpDays float64

	// Streams is the number of streams that produce chunks and are shared out among the groups by their size.
	// Each group has one at least, and a query asks for one group.
	Groups, Streams int
	// Span is the mean time that a chunk covers, divided by 1.3. Spans are between 0.65 and 1.95 times this.
	Span float64
	// Popularity is the exponent of the popularity of groups: the group of rank r is asked in proportion to
	// r^-Popularity.
	Popularity float64

	// Dashboards is the number of dashboards in units of 40.
	Dashboards float64
	// LookBack is the longest time that a dashboard shows.
	LookBack float64
	// Investigations, Scans and Bursts are numbers an hour, an hour and a day.
	Investigations, Scans, Bursts float64
	// OldestInvestigated is the age of the oldest data that an investigation begins at, and YoungestScanned
	// that of the youngest data that a scan begins at.
	OldestInvestigated, YoungestScanned float64
	// Split is the interval in minutes that a query is split at.
	Split float64
	// Slow is the share of queries whose sub-queries start 18 s apart. Those of others start 2.9 s apart.
	Slow float64
}

// The model of the report's cell with the unusual pattern, in two fits; of its usual pattern; and the first
// one with queries that start nearly all of their sub-queries at once.
const (
	P      = "p"
	P2     = "p2"
	G      = "g"
	FanOut = "fan-out"
)

// Preset returns a fitted model by name.
func Preset(name string) (Model, error) {
	presets := presets()
	m, ok := presets[name]
	if !ok {
		return Model{}, fmt.Errorf("%w: expected a model among %s, got %q", model.ErrInvalid, strings.Join(slices.Sorted(maps.Keys(presets)), ", "), name)
	}
	m.Name = name
	return m, nil
}

func presets() map[string]Model {
	p := Model{
		Days: 7, WarmUpDays: 9, Groups: 400, Streams: 100, Span: 0.7, Popularity: 0.6,
		Dashboards: 18, LookBack: 6, Investigations: 1.2, Scans: 95, Bursts: 3, OldestInvestigated: 400, YoungestScanned: 36, Split: 30, Slow: 0.9,
	}
	p2, g, fan := p, p, p
	p2.Popularity, p2.Dashboards, p2.Investigations, p2.Scans, p2.Bursts = 0.8, 28, 3, 90, 4
	p2.OldestInvestigated, p2.YoungestScanned, p2.Split, p2.Slow = 500, 48, 90, 0.8
	g.Span, g.Dashboards, g.LookBack, g.Investigations, g.Scans = 0.6, 40, 3, 3, 90
	g.OldestInvestigated, g.YoungestScanned, g.Slow = 200, 12, 0.85
	fan.Slow = 0.1
	return map[string]Model{P: p, P2: p2, G: g, FanOut: fan}
}
