//go:build e2e

package advise

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/memcache/memcachetest"
	"github.com/shaledb/shale/internal/memcache/stats"
	"github.com/shaledb/shale/internal/memcache/whatif"
)

const (
	requests = 200_000
	batch    = 50
	marker   = "marker"
)

// trace is a workload: what is asked for, and how large the value of a key is.
type trace struct {
	name string
	key  func(r *rand.Rand, zipf *rand.Zipf, i int) int
	size func(key int) int
	keys uint64
}

var traces = []trace{
	{"zipf", func(_ *rand.Rand, z *rand.Zipf, _ int) int { return int(z.Uint64()) }, func(int) int { return 1700 }, 250_000},
	{"scan", func(r *rand.Rand, z *rand.Zipf, i int) int {
		if r.IntN(10) < 3 {
			return 1_000_000 + i/3%27_000
		}
		return int(z.Uint64())
	}, func(int) int { return 900 }, 60_000},
	{"moving", func(r *rand.Rand, _ *rand.Zipf, i int) int {
		// Half of the requests are for a set of keys of which a new one replaces the oldest now and then.
		if r.IntN(2) == 0 {
			return i/20 + int(math.Abs(r.NormFloat64())*8000)
		}
		return 1_000_000 + int(r.ExpFloat64()*12_000)
	}, func(key int) int { return []int{150, 600, 1500, 4000}[key*7919%4] }, 10},
}

// mark asks for a key that is not there, and waits for the response: all before it was carried out.
func (c *client) mark() error {
	if _, err := io.WriteString(c.conn, "get "+marker+"\r\n"); err != nil {
		return err
	}
	line, err := c.r.ReadString('\n')
	if err == nil && line != "END\r\n" {
		err = fmt.Errorf("got %q", line)
	}
	return err
}

// replay sends a trace, and returns the hit ratio of its second half. wait is called between batches.
func (tr trace) replay(addr string, wait func(lines int64) error) (ratio float64, err error) {
	c, err := dial(addr)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.conn.Close()) }()
	r := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(r, 1.05, 1, tr.keys-1)
	for i := 0; i < requests; i += batch {
		if i == requests/2 {
			if err := c.mark(); err != nil {
				return 0, err
			}
			c.gets, c.hits = 0, 0
		}
		keys := make([]int, batch)
		for at := range keys {
			keys[at] = tr.key(r, zipf, i+at)
		}
		if err := errors.Join(c.round(keys, tr.size), wait(c.lines)); err != nil {
			return 0, err
		}
	}
	return float64(c.hits) / float64(c.gets), c.mark()
}

// predict replays a trace on a server that is watched. The load is as fast as the log: it is never more than
// so many lines ahead.
func predict(t *testing.T, tr trace, keys int, ahead int64) (r whatif.Result, measured float64) {
	t.Helper()
	s := memcachetest.Start(t, "-m", "32")
	defer s.Kill()
	c, err := stats.Dial(t.Context(), s.Addr, 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	answers, err := AskAll(c)
	if err != nil {
		t.Fatal(err)
	}
	known, err := Known(s.Addr, answers)
	if err != nil {
		t.Fatal(err)
	}
	m, err := model(known, keys)
	if err != nil {
		t.Fatal(err)
	}
	var seen atomic.Int64
	var ended atomic.Bool
	marks := 0
	var reads sync.WaitGroup
	var failed error
	reads.Go(func() {
		defer ended.Store(true)
		failed = c.Watch([]string{"fetchers", "mutations"}, func(line []byte) bool {
			e, err := whatif.Parse(line)
			switch {
			case err != nil:
				t.Errorf("%q: %v", line, err)
			case e.Kind == whatif.Skipped:
				seen.Add(e.Lines)
			case string(e.Key) == marker:
				if marks++; marks == 1 {
					m.Begin()
				}
				return marks < 2
			default:
				seen.Add(1)
			}
			m.Line(line)
			return true
		})
	})
	// The watch has begun when a line comes.
	measured, err = tr.replay(s.Addr, func(lines int64) error {
		for lines-seen.Load() > ahead {
			if ended.Load() {
				return errors.New("the watch ended")
			}
			time.Sleep(100 * time.Microsecond)
		}
		return nil
	})
	if err != nil {
		s.Kill()
		reads.Wait()
		t.Fatal(err, failed)
	}
	reads.Wait()
	if failed != nil {
		t.Fatal(failed)
	}
	return m.Result(), measured
}

func TestPrediction(t *testing.T) {
	for _, tr := range traces {
		t.Run(tr.name, func(t *testing.T) {
			r, measured := predict(t, tr, 30_000, 300)
			for ahead := int64(100); r.Skipped > 0 && ahead > 10; ahead /= 2 {
				t.Logf("%d lines were left out: slower", r.Skipped)
				r, measured = predict(t, tr, 30_000, ahead)
			}
			for _, size := range r.Sizes {
				real := measured
				if size.Factor != 1 {
					s := memcachetest.Start(t, "-m", strconv.Itoa(int(32*size.Factor)))
					var err error
					if real, err = tr.replay(s.Addr, func(int64) error { return nil }); err != nil {
						t.Fatal(err)
					}
					s.Kill()
				}
				t.Logf("%s, %g times the memory: predicted %.2f %%, measured %.2f %%: %+.2f points", tr.name, size.Factor, 100*size.HitRatio, 100*real, 100*(size.HitRatio-real))
				// It is mostly within half a point, and was at most 1.4 points off in all runs.
				if math.Abs(size.HitRatio-real) > 0.03 {
					t.Errorf("%g times the memory: more than 3 points", size.Factor)
				}
			}
			t.Logf("%d keys, %.1f %% of all; %d lines, %d skipped, %d wrong", r.Keys, 100*r.Share, r.Lines, r.Skipped, r.Wrong)
		})
	}
}
