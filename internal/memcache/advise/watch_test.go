package advise

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/load/progress"
	"github.com/shaledb/shale/internal/memcache/memcachetest"
	"github.com/shaledb/shale/internal/memcache/whatif"
)

// TestWatch watches a server for a while, with a client that stores what it does not find.
func TestWatch(t *testing.T) {
	s := memcachetest.Start(t, "-m", "16")
	c, err := dial(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	var load sync.WaitGroup
	load.Go(func() {
		r := rand.New(rand.NewPCG(1, 1))
		for ctx.Err() == nil {
			keys := []int{r.IntN(50), r.IntN(50), r.IntN(1000), r.IntN(1000)}
			if err := c.round(keys, func(int) int { return 100 }); err != nil {
				t.Error(err)
				return
			}
			time.Sleep(time.Millisecond)
		}
	})
	defer func() {
		end()
		load.Wait()
		_ = c.conn.Close()
	}()
	var lines atomic.Int64
	w, err := Watch(t.Context(), s.Addr, 30*time.Second, 2*time.Second, 10_000, &lines)
	if err != nil {
		t.Fatal(err)
	}
	if w.Lines != lines.Load() || w.Gets == 0 || w.Memory != 16<<20 || len(w.Sizes) != 4 || w.Wrong > 0 || w.Keys == 0 {
		t.Errorf("%+v", w)
	}
	for _, json := range []bool{false, true} {
		var out bytes.Buffer
		c := &Command{From: []string{s.Addr}, Watch: time.Second, Keys: 10_000, Timeout: 30 * time.Second, JSON: json}
		if err := c.Run(t.Context(), &out, progress.Progress{}); err != nil {
			t.Fatal(err)
		}
		if text := out.String(); !strings.Contains(text, map[bool]string{false: "16.0 MiB", true: `"hit_ratio_measured"`}[json]) {
			t.Error(text)
		}
	}
	flat := memcachetest.Start(t, "-o", "no_modern")
	if _, err := Watch(t.Context(), flat.Addr, 30*time.Second, time.Second, 1000, &lines); err == nil || !strings.Contains(err.Error(), "segmented") {
		t.Errorf("a flat LRU: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Watch(ended, s.Addr, 30*time.Second, time.Hour, 1000, &lines); err == nil {
		t.Error("a watch that was interrupted at once")
	}
}

func TestWatchedText(t *testing.T) {
	w := &Watched{Addr: "a:1", Memory: 64 << 20, Seconds: 600, Measured: 0.8, Gets: 1000, Moved: 3, Disk: true}
	w.Skipped, w.Lines, w.Wrong, w.Keys, w.Share = 5, 1995, 2, 100_000, 0.25
	w.Result.Sizes = append(w.Result.Sizes,
		whatif.Size{Factor: 0.5, HitRatio: 0.7, AtMost: 0.7}, whatif.Size{Factor: 1, HitRatio: 0.75, AtMost: 0.75}, whatif.Size{Factor: 2, HitRatio: 0.9, AtMost: 0.95})
	var out bytes.Buffer
	if err := w.Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"90.0 to 95.0 %", "do not rely", "left out 5 of 2,000 lines", "2 lines of unknown form", "3 pages moved", "does not log deletes", "disk of extstore does not count", "25 % of all"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("%q is missing: %s", part, out.String())
		}
	}
}

func TestWatchFlags(t *testing.T) {
	good := Command{From: []string{"a"}, Items: 1, Timeout: 1, Keys: 1000}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for _, change := range []func(*Command){
		func(c *Command) { c.Watch = time.Millisecond }, func(c *Command) { c.Keys = 1 },
		func(c *Command) { c.Watch, c.From = time.Minute, []string{"a", "b"} }, func(c *Command) { c.Watch, c.Emit = time.Minute, true },
	} {
		c := good
		if change(&c); c.Validate() == nil {
			t.Errorf("%+v", c)
		}
	}
}
