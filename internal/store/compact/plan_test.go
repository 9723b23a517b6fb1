package compact

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/catalog"
)

const dayZero = 20_000 * int64(day)

// hours reads a time in hours from day zero, as 3, -24 or 0.5; ever is the end of time.
func hours(t *testing.T, s string) int64 {
	t.Helper()
	if s == "ever" {
		return math.MaxInt64
	}
	h, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return dayZero + int64(h*float64(time.Hour))
}

func pair(s string) (string, string) {
	a, b, ok := strings.Cut(s, "..")
	if !ok {
		return s, s
	}
	return a, b
}

// blockOf reads a line: an id, then words like order=1..3. What is not said is that of a small shipped block.
func blockOf(t *testing.T, line string) catalog.Block {
	t.Helper()
	words := strings.Fields(line)
	b := catalog.Block{
		ID: words[0], Record: words[0], Signal: model.Metrics, Group: catalog.DefaultGroup, Bytes: 1 << 20, Series: 1,
		KeyMax: model.Key{Hi: math.MaxUint64}, Tenants: []string{"a"}, TenantCount: 1,
	}
	for _, w := range words[1:] {
		k, v, _ := strings.Cut(w, "=")
		from, to := pair(v)
		number := func(s string) uint64 {
			n, err := strconv.ParseUint(s, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		switch k {
		case "order":
			b.OrderLo, b.OrderHi = number(from), number(to)
		case "time":
			b.Range = model.TimeRange{Min: hours(t, from), Max: hours(t, to) - 1}
			b.Created = max(b.Created, b.Range.Max)
		case "created":
			b.Created = hours(t, v)
		case "level":
			b.Level = catalog.Level(number(v))
		case "mib":
			b.Bytes = int64(number(v)) << 20
		case "series":
			b.Series = number(v)
		case "keys":
			b.KeyMin.Hi, b.KeyMax.Hi = number(from), number(to)
		case "tenants":
			b.Tenants = strings.Split(v, ",")
			b.TenantCount = len(b.Tenants)
		case "record":
			b.Record = v
		case "group":
			b.Group = v
		case "signal":
			b.Signal = model.Logs
		default:
			t.Fatalf("what is %q?", w)
		}
	}
	b.FirstTenant, b.LastTenant = b.Tenants[0], b.Tenants[len(b.Tenants)-1]
	b.FirstKey, b.LastKey = b.KeyMin, b.KeyMax
	return b
}

func inHours(t int64) string {
	switch t {
	case math.MinInt64, math.MaxInt64:
		return "ever"
	}
	return strconv.FormatFloat(float64(t-dayZero)/float64(time.Hour), 'g', -1, 64)
}

// TestPlan gives lists of blocks to the planner and lists what is merged next. Before an id may stand that
// the block is damaged, or was not seen by the first look.
func TestPlan(t *testing.T) {
	datadriven.RunTest(t, "testdata/plan.txt", func(t *testing.T, d *datadriven.TestData) string {
		o := Options{Grace: time.Hour, MaxBlockBytes: 1 << 30, BigTenantShare: 0.25, MaxInputs: 40, MaxFresh: 10, MemoryBytes: 64 << 20, maxSeries: maxBlockSeries}
		var now string
		d.ScanArgs(t, "now", &now)
		d.MaybeScanArgs(t, "inputs", &o.MaxInputs)
		d.MaybeScanArgs(t, "memory", &o.MemoryBytes)
		c := &Compactor{o: o, settledIn: map[string]bool{}, damaged: map[string]int64{}}
		c.o.Now = func() int64 { return hours(t, now) }
		var blocks []catalog.Block
		for _, line := range strings.Split(strings.TrimSpace(d.Input), "\n") {
			line, damaged := strings.CutPrefix(line, "damaged ")
			line, unseen := strings.CutPrefix(line, "unseen ")
			b := blockOf(t, line)
			if c.settledIn[b.ID] = !unseen; damaged {
				c.damaged[b.ID] = 0
			}
			blocks = append(blocks, b)
		}
		j, backlog := c.next(blocks, nil)
		if j == nil {
			return fmt.Sprintf("nothing, of %d that wait\n", backlog)
		}
		var out strings.Builder
		fmt.Fprintf(&out, "because %s, of %d that wait:", j.why, backlog)
		for _, b := range j.inputs {
			fmt.Fprintf(&out, " %s", b.ID)
		}
		fmt.Fprintln(&out)
		r := rangeOf(j.inputs)
		for _, c := range j.cells {
			if c.Overlaps(r) {
				fmt.Fprintf(&out, "%s to %s: level %d\n", inHours(c.Min), inHours(c.Max+min(1, math.MaxInt64-c.Max)), c.level)
			}
		}
		return out.String()
	})
}
