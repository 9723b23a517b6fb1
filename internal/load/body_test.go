package load

import (
	"fmt"
	"hash/crc32"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/golang/snappy"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/prompb"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
)

func testFleet() Fleet {
	return Fleet{Seed: 7, Targets: 12, Metrics: 3, Series: 10, Labels: 12, Name: "load_metric", Value: Gauge}
}

// TestGolden keeps names and values as they are: a state file of an older build must verify with a newer one.
func TestGolden(t *testing.T) {
	var sb strings.Builder
	f := testFleet()
	for _, g := range []int64{0, 9, 10, 359} {
		fmt.Fprintf(&sb, "%s\n", f.Selector(g))
	}
	for _, m := range []ValueModel{Int100, Counter, Gauge, Random} {
		for round := range uint64(3) {
			fmt.Fprintf(&sb, "%s %d: %s %s\n", m, round, m.AppendText(nil, 7, 0, round), m.AppendText(nil, 7, 123_456_789, round))
		}
	}
	raw := unpack(t)(newBody(&f).fill(150, 200, 5, 1_700_000_000_123))
	fmt.Fprintf(&sb, "request of %d bytes, CRC32C %08x\n", len(raw), crc32.Checksum(raw, castagnoli))
	a := Agents{Seed: 7, Prefix: "a.b", Agents: 3, Metrics: 2, Connections: 2, Value: Gauge}
	l := newLines(&a, 0, Timeline{Start: 1_700_000_000e9, Step: 10e9})
	lines, _ := l.fill(nil, 100, 1<<20, true)
	lines, _ = l.fill(lines, 3, 1<<20, true)
	sb.Write(lines)
	golden(t, "names_and_values.golden", sb.String())
}

// TestBodyDecodes takes requests apart with Prometheus' own decoder.
func TestBodyDecodes(t *testing.T) {
	f := testFleet()
	b := newBody(&f)
	seen := map[model.Key]int64{}
	// Times of 1, 6 and 7 bytes, and one before 1970: slots change their length in between.
	for round, ms := range []int64{1_700_000_000_123, 5, math.MaxUint32 * 4096, -1000, 1_700_000_000_124} {
		for first := int64(0); first < f.Total(); first += 150 {
			n := int(min(150, f.Total()-first))
			raw := unpack(t)(b.fill(first, n, round, ms))
			var req prompb.WriteRequest
			if err := req.Unmarshal(raw); err != nil {
				t.Fatal(err)
			}
			if len(req.Timeseries) != n {
				t.Fatalf("%d series, want %d", len(req.Timeseries), n)
			}
			for i, ts := range req.Timeseries {
				g := first + int64(i)
				k := checkSeries(t, &f, g, ts)
				if old, ok := seen[k]; ok && old != g {
					t.Fatalf("series %d and %d have one key", old, g)
				}
				seen[k] = g
				s := ts.Samples[0]
				if len(ts.Samples) != 1 || s.Timestamp != ms || math.Float64bits(s.Value) != f.Bits(g, round) {
					t.Fatalf("series %d: samples %v", g, ts.Samples)
				}
			}
		}
	}
	if int64(len(seen)) != f.Total() {
		t.Errorf("%d keys, want %d", len(seen), f.Total())
	}
}

// unpack checks a compressed request.
func unpack(t *testing.T) func(compressed []byte, size int) []byte {
	return func(compressed []byte, size int) []byte {
		t.Helper()
		raw, err := snappy.Decode(nil, compressed)
		if err != nil || len(raw) != size {
			t.Fatalf("%d bytes, want %d: %v", len(raw), size, err)
		}
		return raw
	}
}

// checkSeries compares the labels and returns their key.
func checkSeries(t *testing.T, f *Fleet, g int64, ts prompb.TimeSeries) model.Key {
	t.Helper()
	got, last := map[string]string{}, ""
	var pairs []string
	for _, l := range ts.Labels {
		if l.Name <= last {
			t.Fatalf("series %d: label %q after %q", g, l.Name, last)
		}
		last = l.Name
		got[l.Name] = l.Value
		pairs = append(pairs, l.Name, l.Value)
	}
	if diff := cmp.Diff(f.LabelsOf(g), got); diff != "" {
		t.Fatalf("series %d: %s", g, diff)
	}
	return model.LabelsOf(pairs...).Key(1, model.Metrics)
}

// TestSeriesSize keeps a series with ten constant labels near the 580 bytes of the load that it imitates.
func TestSeriesSize(t *testing.T) {
	f := Fleet{Targets: 1000, Metrics: 10, Series: 100, Labels: 10, Name: "load_metric"}
	if n := len(newBody(&f).slot.bytes); n < 560 || n > 600 {
		t.Errorf("%d bytes a series", n)
	}
}

func TestFillDoesNotAllocate(t *testing.T) {
	f := testFleet()
	b := newBody(&f)
	round := 0
	if n := testing.AllocsPerRun(100, func() {
		round++
		b.fill(100, 250, round, 1_700_000_000_000)
	}); n > 0 {
		t.Errorf("body: %v allocations", n)
	}
	a := Agents{Prefix: "a", Agents: 10, Metrics: 100, Connections: 1, Value: Gauge}
	l := newLines(&a, 0, Timeline{Start: 1_700_000_000e9, Step: 1e9})
	buf := make([]byte, 0, 1<<16)
	if n := testing.AllocsPerRun(100, func() { buf, _ = l.fill(buf[:0], 250, 1<<16, true) }); n > 0 {
		t.Errorf("lines: %v allocations", n)
	}
}

// TestTextIsTheSameNumber keeps what goes out as text and what goes out as bits one value.
func TestTextIsTheSameNumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := ValueModel(rapid.IntRange(0, int(Random)).Draw(t, "model"))
		seed, g := rapid.Uint64().Draw(t, "seed"), rapid.Uint64Range(0, maxSeries).Draw(t, "series")
		round := rapid.Uint64Range(0, 1<<40).Draw(t, "round")
		v, err := strconv.ParseFloat(string(m.AppendText(nil, seed, g, round)), 64)
		if err != nil || math.Float64bits(v) != m.Bits(seed, g, round) {
			t.Fatalf("text %s, bits of %v: %v", m.AppendText(nil, seed, g, round), math.Float64frombits(m.Bits(seed, g, round)), err)
		}
		next := math.Float64frombits(m.Bits(seed, g, round+1))
		switch m {
		case Int100:
			if v < 0 || v > 99 || v != math.Trunc(v) {
				t.Fatalf("int100: %v", v)
			}
		case Counter:
			if next < v {
				t.Fatalf("counter falls from %v to %v", v, next)
			}
		case Gauge:
			if v < 0 || v > 100 {
				t.Fatalf("gauge: %v", v)
			}
		}
	})
}

func TestValuesSpread(t *testing.T) {
	var seen [100]int
	for g := range uint64(10_000) {
		seen[int(math.Float64frombits(Int100.Bits(1, g, g%7)))]++
	}
	for v, n := range seen {
		if n < 50 || n > 170 {
			t.Errorf("value %d comes %d times in 10000", v, n)
		}
	}
}

func TestFleetCheck(t *testing.T) {
	for _, change := range []func(*Fleet){
		func(f *Fleet) { f.Targets = 0 }, func(f *Fleet) { f.Series = -1 }, func(f *Fleet) { f.Name = "9x" },
		func(f *Fleet) { f.Name = "a b" }, func(f *Fleet) { f.Labels = -1 }, func(f *Fleet) { f.Targets = maxSeries },
	} {
		f := testFleet()
		change(&f)
		if f.Check() == nil {
			t.Errorf("%+v passes", f)
		}
	}
}

// BenchmarkBody is the generator's CPU budget: at most 400 ns for a sample with everything else that sends it.
func BenchmarkBody(b *testing.B) {
	f := Fleet{Seed: 1, Targets: 1000, Metrics: 10, Series: 100, Labels: 10, Name: "load_metric"}
	body := newBody(&f)
	for i := 0; b.Loop(); i++ {
		body.fill(int64(i%500)*2000, 2000, i, 1_700_000_000_000)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2000, "ns/sample")
}

// BenchmarkLines is the generator's CPU budget: at most 100 ns for a point with everything else that sends it.
func BenchmarkLines(b *testing.B) {
	a := Agents{Prefix: "load", Agents: 100, Metrics: 1000, Connections: 4}
	l := newLines(&a, 0, Timeline{Start: 1_700_000_000e9, Step: 1e9})
	buf, points := make([]byte, 0, writeBytes+1024), 0
	for b.Loop() {
		var n int
		buf, n = l.fill(buf[:0], 1<<30, writeBytes, true)
		points += n
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(points), "ns/point")
}
