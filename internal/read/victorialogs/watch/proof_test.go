package watch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shaledb/shale/internal/model"
)

// TestProof: windows without copies are known for as long as their count is the same, and others are looked
// at in each query.
func TestProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounts(t)
		first := floorDiv(time.Now().UnixNano(), Window) - 20
		r := model.TimeRange{Min: first * Window, Max: (first+10)*Window - 1}
		for at := first; at < first+20; at++ {
			c.lines[at] = counted{lines: 10, sum: 1, summed: true}
		}
		times, proved, broken := map[int64]int64{}, []string(nil), false
		c.Prove = func(_ context.Context, _ Account, r model.TimeRange, each func(w, lines, times int64)) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			proved = append(proved, fmt.Sprint(r.Min/Window-first, "+", (r.Max+1-r.Min)/Window))
			if broken {
				return errors.New("broken")
			}
			for at, n := range c.lines {
				each(at, n.lines-4, n.lines-4-times[at]) // by streams
				each(at, 4, 4)
			}
			return nil
		}
		look := func(want string) {
			t.Helper()
			got := "none"
			if u := c.Unproven(context.Background(), Account{}, r); u.Min <= u.Max {
				got = fmt.Sprint((u.Min-first*Window)/Window, "-", (u.Max+1-first*Window)/Window)
			}
			synctest.Wait()
			if got != want {
				t.Errorf("%s is unproven, want %s", got, want)
			}
			time.Sleep(11 * time.Second)
		}
		look("0-10") // nothing was counted; copies are looked for at once
		look("none")
		times[first+3], times[first+6] = 1, 2 // as many lines
		look("none")
		c.mu.Lock()
		c.lines[first+3], c.lines[first+6] = counted{lines: 11, sum: 1, summed: true}, counted{lines: 12, sum: 1, summed: true}
		c.mu.Unlock()
		look("3-7") // late lines
		look("3-7") // two of them are copies
		look("3-7")
		c.mu.Lock()
		c.lines[first+6] = counted{lines: 13, sum: 2, summed: true}
		delete(times, first+6)
		broken = true
		c.mu.Unlock()
		look("3-7")
		look("3-7")
		c.mu.Lock()
		broken = false
		c.mu.Unlock()
		for range 60 { // after a pause
			c.Unproven(context.Background(), Account{}, r)
			time.Sleep(11 * time.Second)
		}
		look("3-4")
		// Twice each: a sum that is new is a change, too.
		if got := strings.Join(proved, " "); got != "0+10 6+1 3+1 6+1 6+1 6+1 3+1" {
			t.Errorf("copies were looked for in %s", got)
		}
		r.Max = time.Now().UnixNano() // the newest lines are unproven
		u := c.Unproven(context.Background(), Account{}, r)
		synctest.Wait()
		if u.Min != (first+3)*Window || u.Max != r.Max {
			t.Errorf("%v is unproven", u)
		}
	})
}

// TestUnprovenForever: a range without an end, of windows that have copies, is unproven to its end.
func TestUnprovenForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounts(t)
		first := floorDiv(time.Now().UnixNano(), Window) - 20
		for at := first; at < first+20; at++ {
			c.lines[at] = counted{lines: 10, sum: 1, summed: true}
		}
		c.Prove = func(_ context.Context, _ Account, _ model.TimeRange, each func(w, lines, times int64)) error {
			for at, n := range c.lines {
				each(at, n.lines, n.lines-1)
			}
			return nil
		}
		for range 5 {
			r := model.TimeRange{Min: first * Window, Max: math.MaxInt64}
			if u := c.Unproven(context.Background(), Account{}, r); u != r {
				t.Errorf("%v is unproven", u)
			}
			synctest.Wait()
			time.Sleep(11 * time.Second)
		}
	})
}

// TestProofInParts: a week of several accounts is searched in parts that the server can do in time, one at a
// time, newest windows first, while the counts of all go on. A window that is too large leaves others proven.
func TestProofInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const week, accounts, each5m = 7 * 288, 6, 4000
		c := newCounts(t)
		last := floorDiv(time.Now().UnixNano(), Window) - 1
		first := last - week
		for at := first; at < last; at++ {
			c.lines[at] = counted{lines: each5m, sum: 1, summed: true}
		}
		huge := last - 1000
		c.lines[huge] = counted{lines: 10 * proofLines, sum: 1, summed: true}
		running, searches, late, newest := 0, 0, 0, map[Account]int64{}
		c.Prove = func(ctx context.Context, a Account, r model.TimeRange, each func(w, lines, times int64)) error {
			c.mu.Lock()
			from, to, lines := r.Min/Window, (r.Max+1)/Window, int64(0)
			for at := from; at < to; at++ {
				lines += c.lines[at].lines
			}
			if newest[a] == 0 {
				newest[a] = to
			}
			if running++; running > 1 || lines > proofLines && to-from > 1 {
				t.Errorf("%d searches at one time, one of %d lines in %d windows", running, lines, to-from)
			}
			searches++
			c.mu.Unlock()
			defer func() {
				c.mu.Lock()
				defer c.mu.Unlock()
				running--
			}()
			select { // a server that does 50,000 lines a second
			case <-time.After(time.Duration(lines) * 20 * time.Microsecond):
			case <-ctx.Done():
				c.mu.Lock()
				defer c.mu.Unlock()
				late++
				return ctx.Err()
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			for at := from; at < to; at++ {
				each(at, c.lines[at].lines, c.lines[at].lines)
			}
			return nil
		}
		r := model.TimeRange{Min: first * Window, Max: last*Window - 1}
		failed, unproven := 0, map[Account]model.TimeRange{}
		for i := range 6 * 60 { // an hour
			for a := range accounts {
				a := Account{ID: uint32(a)}
				if _, ok := c.Check(context.Background(), []Account{a}, r); !ok && i > 2 {
					failed++
				}
				unproven[a] = c.Unproven(context.Background(), a, r)
			}
			time.Sleep(10 * time.Second)
		}
		t.Logf("%d searches, %d were late", searches, late)
		for a := range accounts {
			a := Account{ID: uint32(a)}
			if want := (model.TimeRange{Min: huge * Window, Max: (huge+1)*Window - 1}); unproven[a] != want {
				t.Errorf("account %d: %d windows are unproven, from %d on", a.ID, (unproven[a].Max+1-unproven[a].Min)/Window, unproven[a].Min/Window-first)
			}
			if newest[a] != last {
				t.Errorf("the first search ends in window %d, want the newest", newest[a]-first)
			}
		}
		if failed > 0 {
			t.Errorf("%d checks found no count", failed)
		}
	})
}

// TestUnprovenBefore: nothing is known of windows before those that are counted, which another count may have
// given up a moment ago.
func TestUnprovenBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounts(t)
		first := floorDiv(time.Now().UnixNano(), Window) - 20
		c.accounts[Account{}] = &Ledger{from: first, to: first + 4, settled: first + 4, windows: make([]counted, 4)}
		for before, want := range []bool{false, true} {
			r := model.TimeRange{Min: (first - int64(before)) * Window, Max: (first+2)*Window - 1}
			c.Watch.mu.Lock()
			u := c.unprovenLocked(Account{}, r)
			c.Watch.mu.Unlock()
			if (u == r) != want {
				t.Errorf("%v of %v is unproven", u, r)
			}
		}
	})
}

// TestProofAtOnce: copies are looked for when the first count ends, whether or not somebody asks again.
func TestProofAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounts(t)
		first := floorDiv(time.Now().UnixNano(), Window) - 20
		for at := first; at < first+20; at++ {
			c.lines[at] = counted{lines: 10, sum: 1, summed: true}
		}
		proved := 0
		c.Prove = func(_ context.Context, _ Account, _ model.TimeRange, each func(w, lines, times int64)) error {
			proved++
			for at, n := range c.lines {
				each(at, n.lines, n.lines)
			}
			return nil
		}
		r := model.TimeRange{Min: first * Window, Max: (first+10)*Window - 1}
		if _, ok := c.Lines(Account{}, r); ok {
			t.Error("lines were counted before anybody asked")
		}
		if u := c.Unproven(context.Background(), Account{}, r); u != r {
			t.Errorf("%v is unproven", u)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if proved != 1 {
			t.Errorf("%d searches", proved)
		}
		if n, ok := c.Lines(Account{}, r); n != 100 || !ok {
			t.Errorf("%d lines, %v", n, ok)
		}
		for _, o := range []model.TimeRange{{Min: r.Min - Window, Max: r.Max}, {Min: r.Min + 30*Window, Max: r.Max + 30*Window}} {
			if n, ok := c.Lines(Account{}, o); ok {
				t.Errorf("%d lines of %v", n, o)
			}
		}
	})
}
