package verify

import (
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/send"
	"github.com/shaledb/shale/internal/load/statefile"
	"github.com/shaledb/shale/internal/load/values"
	"github.com/shaledb/shale/internal/load/wire"
)

// TestGoldenCourse keeps what is drawn for the younger shapes as it is, for the same reason as TestGolden: a
// state file must verify with a later build, and a target must show what it showed before it was started
// again.
func TestGoldenCourse(t *testing.T) {
	var sb strings.Builder
	f := testFleet()
	f.Tenants, f.Scrapers, f.Metrics, f.Exemplars = 2, 2, 4, 0.5
	f.Churn = fleet.Churn{
		ValueInterval: 3 * time.Second, SeriesInterval: 7 * time.Second, Relabel: fleet.Spread{How: fleet.SpreadUniform, By: 5 * time.Second},
		Rollout: 300 * time.Millisecond, Jitter: 900 * time.Millisecond, StaleMarkers: true,
	}
	l := &send.RemoteWrite{
		Fleet: f, Batch: 100, Protocol: wire.V2, Schedule: pace.Schedule{Timeline: pace.Timeline{Start: 1_700_000_000e9, Step: 1e9}, Rounds: 30},
		Disorder: fleet.Disorder{Late: pace.Lateness{Share: 0.3, By: 8 * time.Second}, Twice: 0.3},
	}
	o := newFleetOrigin(statefile.New(l.Header()))
	for _, g := range []int64{0, 477, f.Total() - 1} {
		fmt.Fprintf(&sb, "%s\n", f.Selector(g))
		labels := f.LabelsOf(g, o.cycle(g, 20))
		for _, name := range slices.Sorted(maps.Keys(labels)) {
			if !strings.HasPrefix(name, "label_key") {
				fmt.Fprintf(&sb, "  %s=%s", name, labels[name])
			}
		}
		sb.WriteByte('\n')
		for _, round := range []int{5, 20} {
			first, second := o.Sendings(g, round)
			_, ends := o.Course.Ended(o.Place(g).Target, round)
			trace, bits, has := o.exemplarOf(g, round)
			fmt.Fprintf(&sb, "  round %d: %d ms, cycle %d, from round %d, sent in %d and %d, ends %v, exemplar %v %s %v\n", round, o.ms(g, round),
				o.cycle(g, round), o.First(o.Place(g).Target), first, second, ends, has, trace, math.Float64frombits(bits))
			for m := values.Int100; m <= values.HistogramCustom; m++ {
				o.Value = m
				var v value
				if o.value(g, round, &v); !m.Histogram() {
					fmt.Fprintf(&sb, "    %v %v\n", m, math.Float64frombits(v.bits))
					continue
				}
				n := v.histogram
				fmt.Fprintf(&sb, "    %v schema %d, count %d, zero %d, sum %v, gauge %v, +%v%v, -%v%v\n", m, n.Schema, n.Count, n.ZeroCount, n.Sum,
					n.Gauge, n.Positive.Spans, n.Positive.Counts, n.Negative.Spans, n.Negative.Counts)
			}
			o.Value = values.Int100
		}
	}
	for _, m := range []values.ValueModel{values.Walk, values.HistogramInt, values.HistogramFloat, values.HistogramCustom} {
		l.Fleet.Value = m
		l.Fleet.Metadata, l.Fleet.StartTimes = true, true
		raw := unpack(t)(wire.NewRequests(l.Encoding()).Fill(7, 14))
		fmt.Fprintf(&sb, "version 2, %v: %d bytes, CRC32C %08x\n", m, len(raw), crc32.Checksum(raw, statefile.Castagnoli))
	}
	a := fleet.Agents{Seed: 7, Prefix: "a.b", Agents: 4, Metrics: 2, Connections: 4, Protocol: fleet.Tagged, Spawn: fleet.Spawn{Interval: 10e9, Jitter: 10e9, Flush: 10e9}}
	for agent := range a.Agents {
		fmt.Fprintf(&sb, "agent %d is launched after %v, %s at %d\n", agent, a.Launch(agent), a.Path(int64(agent)*2+1), a.Stamp(l.Schedule.Timeline, agent, 3)/1e9)
	}
	a.Disorder, a.Metrics = fleet.Disorder{Late: pace.Lateness{Share: 0.2, By: 2 * time.Second}, Twice: 0.2}, 10
	feed := wire.NewPoints(&a, 2, l.Schedule.Timeline)
	for range 5 {
		lines, _ := feed.Fill(nil, 100, 1<<20, true)
		sb.Write(lines)
	}
	golden(t, "course.golden", sb.String())
}
