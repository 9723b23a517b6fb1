package verify

import (
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/send"
	"github.com/shaledb/shale/internal/load/statefile"
	"github.com/shaledb/shale/internal/load/values"
	"github.com/shaledb/shale/internal/load/wire"
)

func testFleet() fleet.Fleet {
	return fleet.Fleet{Seed: 7, Targets: 12, Metrics: 3, Series: 10, Labels: 12, Name: "load_metric", Value: values.Gauge}
}

// TestGolden keeps names and values as they are: a state file of an older build must verify with a newer one.
func TestGolden(t *testing.T) {
	var sb strings.Builder
	f := testFleet()
	for _, g := range []int64{0, 9, 10, 359} {
		fmt.Fprintf(&sb, "%s\n", f.Selector(g))
	}
	for _, m := range []values.ValueModel{values.Int100, values.Counter, values.Gauge, values.Random} {
		for round := range uint64(3) {
			at := values.Instant{Seed: 7, Tick: round}
			fmt.Fprintf(&sb, "%s %d: %s %s\n", m, round, m.AppendText(nil, &at, 0), m.AppendText(nil, &at, 123_456_789))
		}
	}
	l := &send.RemoteWrite{Fleet: f, Schedule: pace.Schedule{Timeline: pace.Timeline{Start: 1_700_000_000_123e6 - 5e9, Step: 1e9}}}
	raw := unpack(t)(wire.NewRequests(l.Encoding()).FillSeries(150, 200, 5))
	fmt.Fprintf(&sb, "request of %d bytes, CRC32C %08x\n", len(raw), crc32.Checksum(raw, statefile.Castagnoli))
	a := fleet.Agents{Seed: 7, Prefix: "a.b", Agents: 3, Metrics: 2, Connections: 2, Value: values.Gauge}
	feed := wire.NewPoints(&a, 0, pace.Timeline{Start: 1_700_000_000e9, Step: 10e9})
	lines, _ := feed.Fill(nil, 100, 1<<20, true)
	lines, _ = feed.Fill(lines, 3, 1<<20, true)
	sb.Write(lines)
	golden(t, "names_and_values.golden", sb.String())
}
