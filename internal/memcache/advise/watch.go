package advise

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shaledb/shale/internal/memcache/stats"
	"github.com/shaledb/shale/internal/memcache/whatif"
)

// sizes are the sizes of the memory that are predicted, in times what the server has.
var sizes = []float64{0.5, 1, 2, 4}

// Watched is what a watch of a server says of other sizes of its memory.
type Watched struct {
	Addr    string  `json:"addr"`
	Memory  int64   `json:"memory_bytes"`
	Seconds float64 `json:"seconds"`
	whatif.Result
	// Measured is the hit ratio of the server itself in the second half of the watch, by its counters.
	Measured float64 `json:"hit_ratio_measured"`
	Gets     int64   `json:"gets_measured"`
	// Moved is how many pages went from one slab class to another.
	Moved int64 `json:"pages_moved"`
	// Disk says that the server keeps values on disk too.
	Disk bool `json:"extstore"`
	// Deletes says whether the server logs them.
	Deletes bool `json:"deletes_logged"`
}

// model returns the model of a server.
func model(s *Server, keys int) (*whatif.Model, error) {
	if s.Settings["lru_segmented"] != "yes" || s.Settings["lru_maintainer_thread"] != "yes" {
		return nil, fmt.Errorf("memcached %s: expected a segmented LRU (-o lru_maintainer,lru_segmented), which is the only one that the model knows", s.Addr)
	}
	c := whatif.Config{
		Factors: sizes, Memory: s.Memory, Table: s.Config.Table(), Pages: map[int]float64{}, CAS: s.Settings["cas_enabled"] != "no",
		Empty: number(s.Stats, "curr_items") == 0, Evicted: number(s.Stats, "evictions") > 0, Limits: whatif.Defaults(), Keys: keys,
	}
	for _, class := range s.Classes {
		c.Pages[class.ID] = float64(class.Pages)
	}
	for name, limit := range map[string]*float64{"hot_lru_pct": &c.Limits.HotShare, "warm_lru_pct": &c.Limits.WarmShare} {
		if n, err := strconv.ParseFloat(s.Settings[name], 64); err == nil && n > 0 && n <= 100 {
			*limit = n / 100
		}
	}
	for name, limit := range map[string]*float64{"hot_max_factor": &c.Limits.HotAge, "warm_max_factor": &c.Limits.WarmAge} {
		if n, err := strconv.ParseFloat(s.Settings[name], 64); err == nil && n > 0 {
			*limit = n
		}
	}
	return whatif.New(c)
}

// Watch reads the log of a server for a while. The first half warms the model, and the second one counts. A
// watch that is interrupted in its second half counts until then. lines is how many lines were read.
func Watch(ctx context.Context, addr string, patience, long time.Duration, keys int, lines *atomic.Int64) (*Watched, error) {
	c, err := stats.Dial(ctx, addr, patience)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	answers, err := AskAll(c)
	if err != nil {
		return nil, err
	}
	s, err := Known(c.Addr, answers)
	if err != nil {
		return nil, err
	}
	m, err := model(s, keys)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	half, deletes, err := follow(ctx, c, m, long, lines)
	if err != nil {
		return nil, err
	}
	if answers, err = AskAll(c); err != nil {
		return nil, err
	}
	after, err := Known(c.Addr, answers)
	if err != nil {
		return nil, err
	}
	if (after.Config.Sizes == nil) != (s.Config.Sizes == nil) {
		return nil, fmt.Errorf("memcached %s: its slab classes were not known when the watch began: start it again", c.Addr)
	}
	now := after.Stats
	w := &Watched{
		Addr: c.Addr, Memory: s.Memory, Seconds: time.Since(begun).Seconds(), Result: m.Result(), Deletes: deletes,
		Moved: number(now, "slabs_moved") - number(s.Stats, "slabs_moved"),
	}
	_, w.Disk = s.Stats["extstore_bytes_written"]
	hits := number(now, "get_hits") - number(half, "get_hits")
	if w.Gets = hits + number(now, "get_misses") - number(half, "get_misses"); w.Gets > 0 {
		w.Measured = float64(hits) / float64(w.Gets)
	}
	return w, nil
}

// follow gives the model what the server logs, and returns the counters of the server at half of the time.
func follow(ctx context.Context, c *stats.Conn, m *whatif.Model, long time.Duration, lines *atomic.Int64) (half map[string]string, deletes bool, err error) {
	during, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	var counts atomic.Bool
	var failed error
	var asks sync.WaitGroup
	asks.Go(func() {
		select {
		case <-during.Done():
		case <-time.After(long / 2):
			var all stats.Stats
			all, failed = c.Ask("")
			half = all.Map()
			counts.Store(true)
		}
	})
	begun := false
	take := func(line []byte) bool {
		if !begun && counts.Load() {
			begun = true
			m.Begin()
		}
		m.Line(line)
		lines.Add(1)
		return true
	}
	// Servers before 1.6.22 do not log what is deleted.
	for _, names := range [][]string{{"fetchers", "mutations", "deletions"}, {"fetchers", "mutations"}} {
		deletes = len(names) == 3
		if err = tail(during, c, names, take); !errors.Is(err, stats.ErrUnsupported) {
			break
		}
	}
	over := during.Err() != nil
	cancel()
	asks.Wait()
	switch {
	case !over && err != nil:
		return nil, false, err
	case failed != nil:
		return nil, false, failed
	case half == nil:
		return nil, false, errors.New("the watch was interrupted before it counted anything: its first half only warms the model")
	}
	return half, deletes, nil
}

// tail watches a server on a connection of its own, until the context ends.
func tail(ctx context.Context, c *stats.Conn, names []string, take func([]byte) bool) error {
	log, err := stats.Dial(ctx, c.Addr, c.Patience)
	if err != nil {
		return err
	}
	defer log.Close()
	stop := context.AfterFunc(ctx, log.Close)
	defer stop()
	return log.Watch(names, take)
}
