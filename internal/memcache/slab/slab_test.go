package slab

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

func with(factor float64) Config {
	c := Default()
	c.Factor = factor
	return c
}

// TestReport has the tables and figures of a report of 2015 by operators of memcached, which made 1.07 of
// 1.25.
func TestReport(t *testing.T) {
	for factor, want := range map[float64]map[int]uint32{
		1.25: {12: 1184, 13: 1480, 14: 1856, 15: 2320},
		1.07: {36: 1352, 37: 1448, 38: 1552, 39: 1664, 40: 1784},
	} {
		table := with(factor).Table()
		for id, size := range want {
			if got := table[id-1]; got.Size != size || got.ID != id {
				t.Errorf("factor %g: class %d has %d bytes, want %d", factor, id, got.Size, size)
			}
		}
	}
	table := with(1.25).Table()
	if class := table.Of(1857); class.Size-1857 != 463 {
		t.Errorf("an item of 1,857 bytes wastes %d, want 463", class.Size-1857)
	}
	if gb := 120 * (Expected(1.25) - Expected(1.07)); gb < 8 || gb > 9 {
		t.Errorf("1.07 instead of 1.25 saves %.1f of 120 GB, the report says 8 to 9", gb)
	}
	if trap, is := with(1.07).Trap(); !is || trap.Below != 8032 || trap.Above != 524288 {
		t.Errorf("1.07 ends in %+v, %v", trap, is)
	}
	for _, fine := range []float64{1.15, 1.25, 2} {
		if trap, is := with(fine).Trap(); is {
			t.Errorf("%g ends in %+v", fine, trap)
		}
	}
}

// TestExpected compares the formula with items of random sizes.
func TestExpected(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, factor := range []float64{1.25, 1.15} {
		table, chunks, items := with(factor).Table(), 0.0, 0.0
		for range 200_000 {
			size := uint32(1000 * math.Exp(r.Float64()*4))
			// Each byte of memory is as likely in any class, so that a large item counts less.
			chunks += 1
			items += float64(size) / float64(table.Of(size).Size)
		}
		if got, want := 1-items/chunks, Expected(factor); math.Abs(got-want) > 0.01 {
			t.Errorf("factor %g: %.3f of the chunks is wasted, the formula says %.3f", factor, got, want)
		}
	}
}

// TestRealTables compares tables with those that memcached prints.
func TestRealTables(t *testing.T) {
	if _, err := exec.LookPath("memcached"); err != nil {
		t.Skip("memcached is not installed: run .ci/tools")
	}
	plan := func(c Config) Config {
		c.Sizes = c.BestSizes(c.Demand([]Items{{1530, 70, 1e6}, {200, 70, 1e5}, {90_000, 70, 1e3}}), MaxClasses-1)
		return c
	}
	chained := Config{Factor: 1.07, MinSize: 48, ChunkMax: 8192, ItemMax: 1 << 20}
	for _, c := range []Config{
		with(1.25), with(1.07), with(1.05), with(1.5), with(2), with(1.08), chained,
		{Factor: 1.25, MinSize: 100, ChunkMax: 1 << 19, ItemMax: 1 << 20}, {Factor: 1.1, MinSize: 5, ChunkMax: 1 << 16, ItemMax: 1 << 21},
		plan(Default()), plan(chained), {MinSize: 48, ChunkMax: 1 << 19, ItemMax: 1 << 20, Sizes: []uint32{99, 120, 1000}},
	} {
		if err := c.Check(); err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		args := append([]string{"-vv", "-U", "0", "-u", "root", "-l", "127.0.0.1", "-p", "-1"}, c.Args()...)
		if got := realTable(t, args); !slices.Equal(got, c.Table()) {
			t.Errorf("memcached %s\nhas  %v\nwant %v", strings.Join(args, " "), got, c.Table())
		}
	}
}

// realTable returns what memcached prints at its start.
func realTable(t *testing.T, args []string) (table Table) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "memcached", args...)
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		fmt.Fprintln(&text, lines.Text())
		var c Class
		if _, err := fmt.Sscanf(lines.Text(), "slab class %d: chunk size %d perslab %d", &c.ID, &c.Size, &c.PerPage); err != nil {
			break // the table is complete
		}
		table = append(table, c)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if len(table) == 0 {
		t.Fatalf("memcached prints no table: %s", text.String())
	}
	return table
}

// TestRefused compares what is refused with what memcached refuses.
func TestRefused(t *testing.T) {
	if _, err := exec.LookPath("memcached"); err != nil {
		t.Skip("memcached is not installed: run .ci/tools")
	}
	for _, c := range []Config{
		with(1), with(0.5), {Factor: 1.25, MinSize: 48, ChunkMax: 1 << 19, ItemMax: 1000}, {Factor: 1.25, MinSize: 48, ChunkMax: 3 << 17, ItemMax: 1 << 20},
		{Factor: 1.25, MinSize: 48, ChunkMax: 1 << 21, ItemMax: 1 << 20}, {MinSize: 48, ChunkMax: 1 << 19, ItemMax: 1 << 20, Sizes: []uint32{100, 108}},
		{MinSize: 48, ChunkMax: 1 << 19, ItemMax: 1 << 20, Sizes: []uint32{40}}, {MinSize: 48, ChunkMax: 1 << 19, ItemMax: 1 << 20, Sizes: many(63)},
	} {
		if c.Check() == nil {
			t.Errorf("%+v is taken", c)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		err := exec.CommandContext(ctx, "memcached", append([]string{"-U", "0", "-u", "root", "-l", "127.0.0.1", "-p", "-1"}, c.Args()...)...).Run()
		if ctx.Err() != nil || err == nil {
			t.Errorf("memcached takes %v", c.Args())
		}
		cancel()
	}
}

func many(n int) (sizes []uint32) {
	for i := range n {
		sizes = append(sizes, uint32(100+16*i))
	}
	return sizes
}

// TestBestSizes compares the dynamic program with random choices of sizes: none is better.
func TestBestSizes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	c := Default()
	c.ChunkMax = 1 << 14
	for range 5 {
		var items []Items
		for range 1 + r.IntN(30) {
			items = append(items, Items{uint32(100 + r.IntN(20_000)), 80, float64(1 + r.IntN(1e6))})
		}
		demand := c.Demand(items)
		best := c
		best.Sizes = c.BestSizes(demand, 12)
		if err := best.Check(); err != nil {
			t.Fatal(err)
		}
		bounds := candidates(c.ChunkMax)
		cost := func(sizes []uint32) float64 {
			c := c
			c.Sizes = sizes
			table, upTo, total, before := c.Table(), chunksUpTo(bounds, demand), 0.0, 0.0
			for _, class := range table {
				at, _ := slices.BinarySearch(bounds, class.Size)
				total += (upTo[at]-before)*class.Cost() + Page/2
				before = upTo[at]
			}
			return total
		}
		least := cost(best.Sizes)
		for range 2000 {
			chosen := map[uint32]bool{}
			for range 1 + r.IntN(12) {
				chosen[bounds[r.IntN(len(bounds)-1)]] = true
			}
			var sizes []uint32
			for _, b := range bounds {
				if chosen[b] && (len(sizes) == 0 || b > sizes[len(sizes)-1]+align) {
					sizes = append(sizes, b)
				}
			}
			if got := cost(sizes); got < least-1 {
				t.Fatalf("%v cost %.0f, and %v only %.0f", best.Sizes, least, sizes, got)
			}
		}
	}
}

func TestDemand(t *testing.T) {
	// 700,000 bytes with a key of 3, as a real server lays it out: a head of 120, a full chunk, and the rest.
	size := ItemSize(3, 700_000, 0, true)
	demand := Default().Demand([]Items{{uint32(size), uint32(size - 700_002), 1}})
	want := []Chunks{{60 + 48, 1}, {175_762 + 48, 1}, {524_288, 1}}
	if size != 700_062 || !slices.Equal(demand, want) {
		t.Errorf("an item of %d bytes asks for %v, want %v", size, demand, want)
	}
	reported := []Chunks{{1352, 7}, {1448, 15}, {1552, 907}, {1664, 225}, {1784, 13}}
	if best := Default().BestFactor(reported); with(best).Table().Bytes(reported) > with(1.25).Table().Bytes(reported) {
		t.Errorf("best factor %g", best)
	}
	for chunkMax, want := range map[uint32]float64{1 << 19: 1.145, 1 << 14: 1.082, 1 << 13: 1.07} {
		c := Default()
		c.ChunkMax = chunkMax
		if got := c.LeastFactor(); math.Abs(got-want) > 0.004 {
			t.Errorf("slab_chunk_max %d: the least factor is %g, want about %g", chunkMax, got, want)
		}
	}
}

func BenchmarkBestSizes(b *testing.B) {
	c, r := Default(), rand.New(rand.NewPCG(5, 6))
	var items []Items
	for range 5000 {
		items = append(items, Items{uint32(60 + math.Exp(r.Float64()*13)), 60, 1})
	}
	for b.Loop() {
		c.BestSizes(c.Demand(items), MaxClasses-1)
	}
}
