package watch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// counts is a server that counts lines by windows, and a watch over it. Its clock is that of synctest.
type counts struct {
	*Watch
	mu    sync.Mutex
	lines map[int64]counted
	asked []string // the requests, and what they found
	noted []string
	serve func(ctx context.Context) error // nil: at once
}

func newCounts(t *testing.T) *counts {
	c := &counts{lines: map[int64]counted{}}
	none := func(string) {}
	c.Watch = New(Options{Every: 10 * time.Second, Lag: 2 * time.Minute, Counts: 4, Counted: none, Proved: none})
	c.Count = func(ctx context.Context, _ Account, r model.TimeRange, sums bool, each func(w, lines int64, sum float64)) error {
		if c.serve != nil {
			if err := c.serve(ctx); err != nil {
				return err
			}
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.asked = append(c.asked, fmt.Sprint((r.Max+1-r.Min)/Window, sums))
		for w, n := range c.lines {
			each(w, n.lines, n.sum)
		}
		return nil
	}
	c.Note = func(_ Account, r model.TimeRange) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.noted = append(c.noted, fmt.Sprint(r.Min/Window-c.first(), "+", (r.Max+1-r.Min)/Window))
	}
	t.Cleanup(c.Close)
	return c
}

// first is the window of the beginning of synctest's clock, less 100.
func (c *counts) first() int64 { return 946684800e9/Window - 100 }

// set sets the lines of a window.
func (c *counts) set(w int64, lines int64, sum float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines[c.first()+w] = counted{lines: lines, sum: sum}
}

// news returns what was noted since it was called.
func (c *counts) news() string {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	out := fmt.Sprint(c.noted)
	c.noted = nil
	return out
}

// last returns how often the server was asked, and the last request.
func (c *counts) last() (n int, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n = len(c.asked); n > 0 {
		text = c.asked[n-1]
	}
	return n, text
}

// look checks all windows from one on.
func (c *counts) look(w int64) (until int64, ok bool) {
	until, ok = c.Check(context.Background(), []Account{{}}, model.TimeRange{Min: (c.first() + w) * Window, Max: 1 << 62})
	return (until+1)/Window - c.first(), ok
}

func (c *counts) mustLook(t *testing.T, w int64, want bool) {
	t.Helper()
	if _, ok := c.look(w); ok != want {
		t.Fatalf("%v, want %v", ok, want)
	}
}

// warm asks until everything from a window on is counted and settled.
func (c *counts) warm(t *testing.T, w int64) {
	t.Helper()
	c.mustLook(t, w, false)
	synctest.Wait()
	time.Sleep(10 * time.Second)
	c.mustLook(t, w, true)
	c.news()
}

// TestWatch: the first count notes all windows, and once more when they have settled; then only those that
// have another number.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounts(t)
		c.set(50, 10, 5)
		c.mustLook(t, 40, false)
		if got := c.news(); got != "[40+59]" {
			t.Errorf("the first count notes %s", got) // the newest window, which ends now, is too young
		}
		c.mustLook(t, 40, false) // it has not settled
		time.Sleep(10 * time.Second)
		until, ok := c.look(40)
		if got := c.news(); got != "[40+59]" || !ok || until != 99 {
			t.Errorf("the second count notes %s, until %d, %v", got, until, ok)
		}
		time.Sleep(9 * time.Second)
		c.mustLook(t, 40, true)
		if n, _ := c.last(); n != 2 {
			t.Errorf("%d counts within the interval", n)
		}
		c.set(50, 11, 6)
		c.set(51, 1, 1)
		c.set(60, 1, 1)
		time.Sleep(time.Second)
		c.mustLook(t, 40, true)
		if got := c.news(); got != "[50+2 60+1]" {
			t.Errorf("late lines: %s", got)
		}
		time.Sleep(10 * time.Second)
		c.mustLook(t, 40, true)
		if got := c.news(); got != "[50+2 60+1]" {
			t.Errorf("late lines that have settled: %s", got)
		}
		c.set(60, 0, 0) // deleted
		time.Sleep(10 * time.Second)
		c.mustLook(t, 40, true)
		if got := c.news(); got != "[60+1]" {
			t.Errorf("a deletion: %s", got)
		}
	})
}

// TestWatchReplaced: lines that were replaced by as many others are seen by the sum of hashes, which is asked
// for once a minute, and after a gap.
func TestWatchReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounts(t)
		c.set(50, 10, 5)
		c.warm(t, 40)
		c.set(50, 10, 6)
		for i := range 6 {
			time.Sleep(10 * time.Second)
			c.mustLook(t, 40, true)
			if got := c.news(); (got != "[]") != (i == 4) && i < 5 {
				t.Errorf("count %d: %s", i, got)
			}
		}
		c.set(50, 10, 7)
		time.Sleep(time.Hour)
		c.mustLook(t, 40, true)
		if got := c.news(); got != "[50+1]" {
			t.Errorf("after an hour: %s", got)
		}
	})
}

// TestWatchReplacedUnsummed: lines that are replaced are seen in windows, too, that are new or have changed
// in a count without sums: the next count with sums notes those windows, whatever it finds.
func TestWatchReplacedUnsummed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounts(t)
		c.set(50, 10, 5)
		c.set(99, 10, 5)
		time.Sleep(115 * time.Second)
		c.warm(t, 40)
		replace := func(w, before, after int64, first string) {
			t.Helper()
			time.Sleep(10 * time.Second)
			c.set(w, before, 6)
			c.mustLook(t, 40, true)
			if got := c.news(); got != first {
				t.Errorf("the count notes %s, want %s", got, first)
			}
			time.Sleep(10 * time.Second)
			c.mustLook(t, 40, true)
			c.news() // it has settled
			c.set(w, after, 7)
			n, want := 0, fmt.Sprintf("[%d+1]", w)
			for range 6 {
				time.Sleep(10 * time.Second)
				c.mustLook(t, 40, true)
				if got := c.news(); got == want {
					n++
				} else if got != "[]" {
					t.Errorf("noted %s", got)
				}
			}
			if n == 0 {
				t.Errorf("as many other lines of window %d were not seen", w)
			}
		}
		replace(99, 10, 10, "[]") // it has closed since the count with sums
		for text := ""; text != "60 true"; _, text = c.last() {
			time.Sleep(10 * time.Second)
			c.mustLook(t, 40, true)
		}
		c.news()
		replace(50, 11, 11, "[50+1]") // it has got a late line
	})
}

// TestWatchSetBack: a clock that is set back makes no count last longer, and windows that have not begun yet
// are counted as new ones later.
func TestWatchSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounts(t)
		var back atomic.Int64
		c.Options.Now = func() int64 { return time.Now().UnixNano() - back.Load() }
		c.warm(t, 40)
		n, _ := c.last()
		back.Store(int64(time.Hour))
		c.mustLook(t, 40, true) // by a count that is fresh
		time.Sleep(10 * time.Second)
		until, ok := c.look(40)
		if m, text := c.last(); !ok || until != 87 || m != n+1 || text != "47 false" {
			t.Errorf("%d counts, of %s; it holds until %d, %v", m-n, text, until, ok)
		}
		if got := c.news(); got != "[87+12]" {
			t.Errorf("a count notes %s of windows that it has left out", got)
		}
		back.Store(0)
		for range 9 { // until all windows have sums
			time.Sleep(10 * time.Second)
			until, ok = c.look(40)
		}
		if !ok || until != 99 {
			t.Errorf("when the clock is right again, it holds until %d, %v", until, ok)
		}
		c.news()
		c.set(95, 1, 1)
		time.Sleep(10 * time.Second)
		c.mustLook(t, 40, true)
		if got := c.news(); got != "[95+1]" {
			t.Errorf("a late line: %s", got)
		}
		back.Store(-int64(1000 * 24 * time.Hour)) // far ahead
		time.Sleep(10 * time.Second)
		c.Check(context.Background(), []Account{{}}, model.TimeRange{Min: c.Now() - int64(time.Hour), Max: 1 << 62})
		synctest.Wait()
		if _, text := c.last(); text != fmt.Sprint(maxWindows, " true") && text != fmt.Sprint(maxWindows, " false") {
			t.Errorf("far ahead the count is of %s windows", text)
		}
	})
}

// TestWatchWithoutSums: without sums, numbers are not believed after a gap.
func TestWatchWithoutSums(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounts(t)
		counting := c.Count
		c.Count = func(ctx context.Context, a Account, r model.TimeRange, sums bool, each func(w, lines int64, sum float64)) error {
			if sums {
				return context.DeadlineExceeded
			}
			return counting(ctx, a, r, sums, each)
		}
		c.set(50, 10, 5)
		c.warm(t, 40) // the first count fails with sums, and is made without them at once
		time.Sleep(30 * time.Second)
		c.mustLook(t, 40, true)
		if got := c.news(); got != "[]" {
			t.Errorf("without a gap: %s", got)
		}
		time.Sleep(2 * time.Minute)
		c.mustLook(t, 40, true)
		if got := c.news(); got != "[40+59]" {
			t.Errorf("after a gap: %s", got)
		}
	})
}

// TestWatchAhead: a count is renewed while it still holds, if somebody asks late enough, so that no
// request waits.
func TestWatchAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounts(t)
		c.warm(t, 40)
		before, _ := c.last()
		c.serve = func(context.Context) error {
			time.Sleep(2 * time.Second)
			return nil
		}
		for i, pause := range []time.Duration{4, 5, 4, 4} { // counts begin at the second look and the last
			time.Sleep(pause * time.Second)
			began := time.Now()
			c.mustLook(t, 40, true)
			if took := time.Since(began); took != 0 {
				t.Errorf("look %d has waited for %v", i, took)
			}
		}
		time.Sleep(3 * time.Second)
		if n, _ := c.last(); n-before != 2 {
			t.Errorf("%d counts, want 2", n-before)
		}
	})
}

// TestWatchSlow: a count that takes too long is given up, and not tried again before the interval is over;
// meanwhile nothing that was kept is used. Later counts are rarer.
func TestWatchSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounts(t)
		c.warm(t, 40)
		c.accounts[Account{}].noSums = 1 << 62
		begun := 0
		c.serve = func(ctx context.Context) error {
			begun++
			<-ctx.Done()
			return ctx.Err()
		}
		time.Sleep(10 * time.Second)
		began := time.Now()
		c.mustLook(t, 40, false)
		if took := time.Since(began); took != countLimit { // by the clock of synctest
			t.Errorf("it took %v", took)
		}
		synctest.Wait()
		for range 9 {
			c.mustLook(t, 40, false)
			time.Sleep(time.Second)
		}
		if begun != 1 {
			t.Errorf("%d counts within the interval", begun)
		}
		for range 600 {
			c.mustLook(t, 90, false) // less is asked for from now on
			time.Sleep(time.Second)
		}
		if begun > 10 {
			t.Errorf("%d counts in ten minutes", begun)
		}
		c.serve = nil
		time.Sleep(longestPause)
		c.look(90)
		synctest.Wait()
		if _, text := c.last(); text != fmt.Sprint(floorDiv(c.Now()-int64(c.Lag), Window)-c.first()-90, false) {
			t.Errorf("the count after failures is of %s windows", text)
		}
	})
}

// TestWatchGivenUp: a query that waits for a count may give up, and the count goes on for others.
func TestWatchGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounts(t)
		c.warm(t, 40)
		release := make(chan struct{})
		c.serve = func(context.Context) error { <-release; return nil }
		time.Sleep(10 * time.Second)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, ok := c.Check(ctx, []Account{{}}, model.TimeRange{Min: (c.first() + 40) * Window, Max: 1 << 62}); ok {
			t.Error("an old count is believed")
		}
		close(release)
		synctest.Wait()
		c.mustLook(t, 40, true)
	})
}

// TestWatchFails: while the server fails, nothing that was kept is used.
func TestWatchFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounts(t)
		c.warm(t, 40)
		down := true
		c.serve = func(context.Context) error {
			if down {
				return errors.New("down")
			}
			return nil
		}
		time.Sleep(10 * time.Second)
		c.mustLook(t, 40, false)
		down = false
		c.mustLook(t, 40, false)
		time.Sleep(20 * time.Second)
		c.mustLook(t, 40, true)
		if got := c.news(); got != "[]" {
			t.Errorf("noted %s", got)
		}
	})
}

// TestWatchSumsFail: sums are left out after a count with sums that took too long or was refused, and after
// no other failure.
func TestWatchSumsFail(t *testing.T) {
	for name, test := range map[string]struct {
		takes time.Duration
		err   error
		next  string
	}{
		"late":                     {time.Hour, nil, "60 false"},
		"given up by the server":   {2900 * time.Millisecond, model.ErrTransient, "60 false"},
		"refused":                  {0, model.ErrInvalid, "60 false"},
		"a connection that failed": {0, model.ErrTransient, "60 true"},
		"a count that is not one":  {0, model.ErrCorrupt, "60 true"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCounts(t)
				c.warm(t, 40)
				c.serve = func(ctx context.Context) error {
					select {
					case <-ctx.Done():
						return ctx.Err()
					case <-time.After(test.takes):
						return test.err
					}
				}
				time.Sleep(2 * time.Minute)
				c.mustLook(t, 40, false)
				synctest.Wait()
				c.serve = nil
				time.Sleep(30 * time.Second)
				c.mustLook(t, 40, true)
				if _, text := c.last(); text != test.next {
					t.Errorf("the next count is of %s, want %s", text, test.next)
				}
			})
		})
	}
}

// TestWatchShort: where a count takes longer than it holds, those who waited for it use what was kept, and no
// more than half of the time is spent counting.
func TestWatchShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounts(t)
		c.every = int64(time.Second)
		c.warm(t, 40)
		c.serve = func(context.Context) error { time.Sleep(2 * time.Second); return nil }
		time.Sleep(10 * time.Second)
		before, _ := c.last()
		used := 0
		for range 600 {
			if _, ok := c.look(40); ok {
				used++
			}
			time.Sleep(100 * time.Millisecond)
		}
		n, _ := c.last()
		if n -= before; n > 40 || used < n-1 {
			t.Errorf("%d counts, after which what was kept was used %d times", n, used)
		}
		began := c.elapsed()
		for c.elapsed()-began < int64(time.Minute) {
			c.look(40)
			time.Sleep(100 * time.Millisecond)
		}
		m, _ := c.last()
		if m -= n + before; m > 16 {
			t.Errorf("%d counts of two seconds in a minute", m)
		}
	})
}

// TestWatchAccounts: the counts of several accounts run at one time, and 4 at most.
func TestWatchAccounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounts(t)
		r := model.TimeRange{Min: (c.first() + 40) * Window, Max: 1 << 62}
		var accounts []Account
		for i := range uint32(6) {
			accounts = append(accounts, Account{ID: i})
		}
		c.Check(context.Background(), accounts, r)
		synctest.Wait()
		time.Sleep(10 * time.Second)
		var running, most atomic.Int32
		c.serve = func(context.Context) error {
			most.Store(max(most.Load(), running.Add(1)))
			time.Sleep(time.Second)
			running.Add(-1)
			return nil
		}
		began := time.Now()
		until, ok := c.Check(context.Background(), accounts, r)
		// By the clock of synctest.
		if took := time.Since(began); !ok || until != (c.first()+99)*Window-1 || took != 2*time.Second {
			t.Errorf("%d, %v, after %v", until, ok, took)
		}
		if most.Load() != int32(c.Counts) {
			t.Errorf("%d counts at one time", most.Load())
		}
	})
}

// TestWatchDrops: windows that were not asked for in 20 minutes are dropped and noted, as are those that
// were asked for longest ago while there are too many.
func TestWatchDrops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounts(t)
		c.warm(t, 40)
		time.Sleep(2*askedFor - 10*time.Second)
		ask := func(id uint32) string {
			c.Check(context.Background(), []Account{{ID: id}}, model.TimeRange{Min: (c.first() + 40) * Window, Max: 1 << 62})
			return c.news()
		}
		ask(1)
		if c.accounts[Account{}] == nil {
			t.Error("windows were dropped too early")
		}
		time.Sleep(10 * time.Second)
		if got := ask(1); got != "[40+63 40+59]" || c.accounts[Account{}] != nil || len(c.accounts) != 1 {
			t.Errorf("noted %s, and %d accounts are left", got, len(c.accounts))
		}
		c.most = 100
		time.Sleep(10 * time.Second)
		if got := ask(2); got != "[40+63 40+63]" || c.accounts[Account{ID: 1}] != nil || len(c.accounts) != 1 {
			t.Errorf("noted %s, and %d accounts are left", got, len(c.accounts))
		}
	})
}

// TestWatchRanges: windows that are asked for no more are counted no more, and are new when they are asked
// for again. The newest windows and ranges of more than 31 days are never counted.
func TestWatchRanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounts(t)
		c.warm(t, 10)
		for range 60 {
			c.look(90)
			time.Sleep(30 * time.Second)
		}
		c.news()
		if _, text := c.last(); text != "15 false" && text != "15 true" {
			t.Errorf("the last count has %s windows", text)
		}
		c.mustLook(t, 10, false)
		if got := c.news(); got != "[10+80]" {
			t.Errorf("asked for again: %s", got)
		}
		n, _ := c.last()
		now := c.Now()
		for _, r := range []model.TimeRange{
			{Min: now - int64(time.Minute), Max: now}, {Min: now - int64(32*24*time.Hour), Max: now},
			{Min: now + Window, Max: now + 2*Window}, {Min: -1 << 63, Max: 1<<63 - 1},
		} {
			if _, ok := c.Check(context.Background(), []Account{{}}, r); ok || c.Covers(Account{}, r) {
				t.Errorf("%v is counted", r)
			}
		}
		synctest.Wait()
		if m, _ := c.last(); m != n {
			t.Errorf("%d further counts", m-n)
		}
	})
}

// TestCovers: a response may be kept if all of its lines were counted before.
func TestCovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounts(t)
		r := model.TimeRange{Min: (c.first() + 50) * Window, Max: (c.first()+60)*Window - 1}
		if c.Covers(Account{}, r) {
			t.Error("nothing was counted")
		}
		synctest.Wait()
		time.Sleep(10 * time.Second)
		c.mustLook(t, 50, true)
		if !c.Covers(Account{}, r) {
			t.Error("all was counted")
		}
		r.Max = c.Now()
		if c.Covers(Account{}, r) {
			t.Error("the newest lines are not counted")
		}
	})
}
