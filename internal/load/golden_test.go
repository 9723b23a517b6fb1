package load

import (
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestGoldenCourse keeps what is drawn for the younger shapes as it is, for the same reason as TestGolden: a state file
// must verify with a later build, and a target must show what it showed before it was started again.
func TestGoldenCourse(t *testing.T) {
	var sb strings.Builder
	f := testFleet()
	f.Tenants, f.Scrapers, f.Metrics, f.Exemplars = 2, 2, 4, 0.5
	f.Churn = Churn{
		ValueInterval: 3 * time.Second, SeriesInterval: 7 * time.Second, Relabel: Spread{SpreadUniform, 5 * time.Second},
		Rollout: 300 * time.Millisecond, Jitter: 900 * time.Millisecond, StaleMarkers: true,
	}
	l := &RemoteWrite{
		Fleet: f, Batch: 100, Protocol: V2, Schedule: Schedule{Timeline: Timeline{Start: 1_700_000_000e9, Step: 1e9}, rounds: 30},
		Disorder: Disorder{Late: Lateness{0.3, 8 * time.Second}, Twice: 0.3},
	}
	o := newFleetOrigin(newState(l.Header()))
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
			first, second := o.sendings(g, round)
			_, ends := o.course.ended(o.place(g).target, round)
			trace, bits, has := o.exemplarOf(g, round)
			fmt.Fprintf(&sb, "  round %d: %d ms, cycle %d, from round %d, sent in %d and %d, ends %v, exemplar %v %s %v\n", round, o.ms(g, round),
				o.cycle(g, round), o.first(o.place(g).target), first, second, ends, has, trace, math.Float64frombits(bits))
			for m := Int100; m <= HistogramCustom; m++ {
				o.Value = m
				var v value
				if o.value(g, round, &v); !m.Histogram() {
					fmt.Fprintf(&sb, "    %v %v\n", m, math.Float64frombits(v.bits))
					continue
				}
				n := v.histogram
				fmt.Fprintf(&sb, "    %v schema %d, count %d, zero %d, sum %v, gauge %v, +%v%v, -%v%v\n", m, n.schema, n.count, n.zeroCount, n.sum,
					n.gauge, n.positive.spans, n.positive.counts, n.negative.spans, n.negative.counts)
			}
			o.Value = Int100
		}
	}
	for _, m := range []ValueModel{Walk, HistogramInt, HistogramFloat, HistogramCustom} {
		l.Fleet.Value = m
		l.Fleet.Metadata, l.Fleet.StartTimes = true, true
		raw := unpack(t)(newBody(l).fill(7, 14))
		fmt.Fprintf(&sb, "version 2, %v: %d bytes, CRC32C %08x\n", m, len(raw), crc32.Checksum(raw, castagnoli))
	}
	a := Agents{Seed: 7, Prefix: "a.b", Agents: 4, Metrics: 2, Connections: 4, Protocol: Tagged, Spawn: Spawn{Interval: 10e9, Jitter: 10e9, Flush: 10e9}}
	for agent := range a.Agents {
		fmt.Fprintf(&sb, "agent %d is launched after %v, %s at %d\n", agent, a.launch(agent), a.Path(int64(agent)*2+1), a.stamp(l.Schedule.Timeline, agent, 3)/1e9)
	}
	a.Disorder, a.Metrics = Disorder{Late: Lateness{0.2, 2 * time.Second}, Twice: 0.2}, 10
	feed := newFeed(&a, 2, l.Schedule.Timeline)
	for range 5 {
		lines, _ := feed.fill(nil, 100, 1<<20, true)
		sb.Write(lines)
	}
	golden(t, "course.golden", sb.String())
}
