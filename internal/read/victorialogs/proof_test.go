package victorialogs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
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
		first := floorDiv(time.Now().UnixNano(), window) - 20
		r := model.TimeRange{Min: first * window, Max: (first+10)*window - 1}
		for at := first; at < first+20; at++ {
			c.lines[at] = counted{lines: 10, sum: 1, summed: true}
		}
		times, proved, broken := map[int64]int64{}, []string(nil), false
		c.prove = func(_ context.Context, _ Account, r model.TimeRange, each func(w, lines, times int64)) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			proved = append(proved, fmt.Sprint(r.Min/window-first, "+", (r.Max+1-r.Min)/window))
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
			if u := c.unproven(context.Background(), Account{}, r); u.Min <= u.Max {
				got = fmt.Sprint((u.Min-first*window)/window, "-", (u.Max+1-first*window)/window)
			}
			synctest.Wait()
			if got != want {
				t.Errorf("%s is unproven, want %s", got, want)
			}
			time.Sleep(11 * time.Second)
		}
		look("0-10") // nothing was counted
		look("0-10") // copies were not looked for yet
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
			c.unproven(context.Background(), Account{}, r)
			time.Sleep(11 * time.Second)
		}
		look("3-4")
		// Twice each: a sum that is new is a change, too.
		if got := strings.Join(proved, " "); got != "0+10 6+1 3+1 6+1 3+1 6+1 6+1 6+1 6+1" {
			t.Errorf("copies were looked for in %s", got)
		}
		r.Max = time.Now().UnixNano() // the newest lines are unproven
		u := c.unproven(context.Background(), Account{}, r)
		synctest.Wait()
		if u.Min != (first+3)*window || u.Max != r.Max {
			t.Errorf("%v is unproven", u)
		}
	})
}

// TestUnprovenForever: a range without an end, of windows that have copies, is unproven to its end.
func TestUnprovenForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounts(t)
		first := floorDiv(time.Now().UnixNano(), window) - 20
		for at := first; at < first+20; at++ {
			c.lines[at] = counted{lines: 10, sum: 1, summed: true}
		}
		c.prove = func(_ context.Context, _ Account, _ model.TimeRange, each func(w, lines, times int64)) error {
			for at, n := range c.lines {
				each(at, n.lines, n.lines-1)
			}
			return nil
		}
		for range 5 {
			r := model.TimeRange{Min: first * window, Max: math.MaxInt64}
			u := c.unproven(context.Background(), Account{}, r)
			d := &directory{req: &model.Request{Range: r, Cells: &model.TextCells{}}, unproven: u}
			if u != r || d.looks(r) != looksEverywhere {
				t.Errorf("%v is unproven, and a count looks there: %v", u, d.looks(r))
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
		last := floorDiv(time.Now().UnixNano(), window) - 1
		first := last - week
		for at := first; at < last; at++ {
			c.lines[at] = counted{lines: each5m, sum: 1, summed: true}
		}
		huge := last - 1000
		c.lines[huge] = counted{lines: 10 * proofLines, sum: 1, summed: true}
		running, searches, late, newest := 0, 0, 0, map[Account]int64{}
		c.prove = func(ctx context.Context, a Account, r model.TimeRange, each func(w, lines, times int64)) error {
			c.mu.Lock()
			from, to, lines := r.Min/window, (r.Max+1)/window, int64(0)
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
		r := model.TimeRange{Min: first * window, Max: last*window - 1}
		failed, unproven := 0, map[Account]model.TimeRange{}
		for i := range 6 * 60 { // an hour
			for a := range accounts {
				a := Account{ID: uint32(a)}
				if _, ok := c.check(context.Background(), []Account{a}, r); !ok && i > 2 {
					failed++
				}
				unproven[a] = c.unproven(context.Background(), a, r)
			}
			time.Sleep(10 * time.Second)
		}
		t.Logf("%d searches, %d were late", searches, late)
		for a := range accounts {
			a := Account{ID: uint32(a)}
			if want := (model.TimeRange{Min: huge * window, Max: (huge+1)*window - 1}); unproven[a] != want {
				t.Errorf("account %d: %d windows are unproven, from %d on", a.ID, (unproven[a].Max+1-unproven[a].Min)/window, unproven[a].Min/window-first)
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

// TestCountsProven: where it is known that no line is there twice, times are not asked for.
func TestCountsProven(t *testing.T) {
	const row = `{"_stream":"{app=\"web\"}","_time":"2001-09-09T01:46:40Z","n":"3"`
	for _, test := range []struct {
		name, row       string
		proven          func(at int64) proof
		fresh           bool
		rows, lines     int
		contains, lacks string
	}{
		{name: "everywhere", row: row + "}", proven: func(int64) proof { return unique }, rows: 3, lacks: "times"},
		{name: "nowhere", row: row + `,"times":"3"}`, proven: func(int64) proof { return copies }, rows: 3, contains: "count_uniq(_time) times"},
		{name: "nowhere, with a copy", row: row + `,"times":"2"}`, proven: func(int64) proof { return copies }, rows: 2, lines: 1, contains: "count_uniq(_time) times"},
		{name: "for a query that wants all computed", row: row + `,"times":"3"}`, proven: func(int64) proof { return unique }, fresh: true, rows: 3, contains: "count_uniq(_time) times"},
		{name: "partly", row: row + `,"times":"1","recent":"1"}`, proven: func(at int64) proof { return proof(1 + at%2) }, rows: 3, contains: "count_uniq(_time) if (_time:[2001-09-09T01:"},
		{name: "partly, with a copy", row: row + `,"times":"1","recent":"2"}`, proven: func(at int64) proof { return proof(1 + at%2) }, rows: 2, lines: 1, contains: "count() if (_time:[2001-09-09T01:"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var asked string
			read := 0
			w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
				if q := r.FormValue("query"); strings.Contains(q, "| stats ") {
					asked = q
					io.WriteString(rw, test.row+"\n")
					return
				}
				read++
				io.WriteString(rw, rowOne+rowTwo+rowTwo)
			})
			from, now := floorDiv(1e18, window)-1, w.watch.elapsed()
			l := &ledger{from: from, to: from + 4, settled: from + 4, windows: make([]counted, 4), at: now, last: now, turned: now, asked: from, before: from, nextProof: now + int64(time.Hour)}
			for i := range l.windows {
				l.windows[i] = counted{lines: 1, proof: test.proven(int64(i))}
			}
			w.watch.every, w.watch.now = int64(time.Hour), func() int64 { return 1e18 + 4*window }
			w.watch.accounts[Account{}] = l
			req := request()
			req.Range.Max = req.Range.Min + window + window/2
			req.Cells, req.Cost.Fresh = &model.TextCells{Step: 10 * window, Phase: 1e18 - 1}, test.fresh
			cursors, err := w.SelectText(context.Background(), req)
			if err != nil || !cursors[0].Next(context.Background()) {
				t.Fatal(err)
			}
			chunks, err := cursors[0].Chunks(context.Background(), nil)
			if err != nil || len(chunks) != 1 || chunks[0].Rows != test.rows || read != test.lines {
				t.Errorf("%+v after %d reads, %v", chunks, read, err)
			}
			if !strings.Contains(asked, test.contains) || test.lacks != "" && strings.Contains(asked, test.lacks) {
				t.Errorf("asked for %s", asked)
			}
			if err := cursors[0].Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestUnprovenBefore: nothing is known of windows before those that are counted, which another count may have
// given up a moment ago.
func TestUnprovenBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounts(t)
		first := floorDiv(time.Now().UnixNano(), window) - 20
		c.accounts[Account{}] = &ledger{from: first, to: first + 4, settled: first + 4, windows: make([]counted, 4)}
		for before, want := range []bool{false, true} {
			r := model.TimeRange{Min: (first - int64(before)) * window, Max: (first+2)*window - 1}
			c.watch.mu.Lock()
			u := c.unprovenLocked(Account{}, r)
			c.watch.mu.Unlock()
			if (u == r) != want {
				t.Errorf("%v of %v is unproven", u, r)
			}
		}
	})
}
