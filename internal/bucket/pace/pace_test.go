package pace

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/buckettest"
	"github.com/shaledb/shale/internal/bucket/fs"
)

func TestSuite(t *testing.T) {
	buckettest.Run(t, func(t testing.TB) bucket.Bucket {
		b, err := fs.New(vfs.NewMem(), "bucket")
		if err != nil {
			t.Fatal(err)
		}
		return Wrap(b, New(Options{Concurrent: 8}))
	})
}

// TestRateFollowsTheStore: a store takes 1,000 requests a second and is asked for as many as are allowed.
func TestRateFollowsTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Concurrent: 10_000})
		l.concurrency.limit = 10_000
		const capacity, seconds = 1000, 600
		var sent, refused, lateSent, lateRefused float64
		tokens := 100.0
		for ms := range seconds * 1000 {
			tokens = min(tokens+capacity/1000.0, 100)
			for {
				if _, _, ok := l.Take(false, "blocks/x"); !ok {
					break
				}
				l.Give()
				sent++
				late := ms > 20_000
				if late {
					lateSent++
				}
				if tokens--; tokens < 0 {
					tokens = 0
					refused++
					if late {
						lateRefused++
					}
					l.refused(false, 0)
				} else {
					l.accepted(false, -1, 0)
				}
				if sent > 1e7 {
					t.Fatal("there is no limit")
				}
				if ms == 0 && l.reads.perSecond == math.Inf(1) {
					break // an unlimited loop never ends
				}
			}
			time.Sleep(time.Millisecond)
		}
		rate := lateSent / (seconds - 20)
		if rate < 0.75*capacity || rate > 1.01*capacity {
			t.Errorf("%.0f requests a second of %d", rate, capacity)
		}
		if lateRefused > 0.005*lateSent {
			t.Errorf("%.0f of %.0f requests were refused", lateRefused, lateSent)
		}
		t.Logf("%.0f requests a second, %.0f refused in all, %.0f of %.0f after 20 s", rate, refused, lateRefused, lateSent)
	})
}

// TestOutage: a store that refuses everything for a minute gets few requests, and is used in full soon after.
func TestOutage(t *testing.T) {
	now := time.Unix(1000, 0)
	r := newRate(now, 0, growth)
	ask := func(seconds int, accepts bool) (sent int) {
		for range seconds * 1000 {
			now = now.Add(time.Millisecond)
			if r.wait(now) > 0 {
				continue
			}
			r.send()
			if sent++; accepts {
				r.accepted++
			} else {
				r.throttled(now, 0)
			}
		}
		return sent
	}
	ask(10, true)
	if sent := ask(60, false); sent > 6000 {
		t.Errorf("%d requests during an outage of a minute; 60,000 were asked for", sent)
	}
	ask(20, true)
	if sent := ask(1, true); sent < 900 {
		t.Errorf("%d requests in a second, 20 s after an outage; 1000 are asked for", sent)
	}
}

// TestStrayRefusals: a store that refuses each hundredth request, however few they are, is used in full.
func TestStrayRefusals(t *testing.T) {
	now := time.Unix(1000, 0)
	r := newRate(now, 0, growth)
	sent := 0
	for range 600_000 {
		now = now.Add(time.Millisecond)
		if now.UnixMilli()%10 != 0 || r.wait(now) > 0 { // 100 a second are asked for
			continue
		}
		r.send()
		if sent++; sent%100 == 0 {
			r.throttled(now, 0)
		} else {
			r.accepted++
		}
	}
	if sent < 59_000 {
		t.Errorf("%d requests in 10 minutes, 60,000 were asked for", sent)
	}
}

// TestOncePerWindow: a burst of refusals lowers the rate once.
func TestOncePerWindow(t *testing.T) {
	now := time.Unix(1000, 0)
	r := newRate(now, 1000, growth)
	for range 900 {
		r.send()
	}
	now = now.Add(900 * time.Millisecond)
	for range 100 {
		r.throttled(now, 0)
	}
	if r.perSecond < 0.65*1000 || r.perSecond > 0.71*1000 {
		t.Errorf("a rate of %.0f", r.perSecond)
	}
	r.throttled(now.Add(100*time.Millisecond), 3*time.Second)
	if wait := r.wait(now.Add(time.Second)); wait != 2100*time.Millisecond {
		t.Errorf("waits for %s, the store asked for 3 s", wait)
	}
}

// TestRamp: on Google's store a rate beyond the first one doubles in 20 minutes and no sooner.
func TestRamp(t *testing.T) {
	rules := RulesOf("gs")
	now := time.Unix(1000, 0)
	r := newRate(now, rules.Reads, rules.Ramp)
	for second := range 1200 {
		for range int(r.perSecond) {
			r.send()
		}
		now = now.Add(time.Second)
		r.turn(now)
		if most := rules.Reads * math.Pow(2, float64(second+1)/1200); r.perSecond > most*1.0001 {
			t.Fatalf("a rate of %.0f after %d s, at most %.0f is allowed", r.perSecond, second+1, most)
		}
	}
	if r.perSecond < 1.9*rules.Reads {
		t.Errorf("a rate of %.0f after 20 minutes", r.perSecond)
	}
	idle := r.perSecond
	for range 100 {
		now = now.Add(time.Second)
		r.turn(now)
	}
	if r.perSecond != idle {
		t.Error("a rate that is not used rises")
	}
}

// TestPrefix: the requests to one folder have a rate of their own.
func TestPrefix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Concurrent: 100_000, Rules: Rules{PrefixReads: 100}})
		l.concurrency.limit = 100_000
		sent := map[string]int{}
		for range 1000 {
			for _, name := range []string{"blocks/a1", "blocks/a2", "blocks/b1"} {
				if _, _, ok := l.Take(false, name); ok {
					l.Give()
					sent[prefixOf(name)]++
				}
			}
			time.Sleep(10 * time.Millisecond)
		}
		if a, b := sent["blocks/a"], sent["blocks/b"]; a < 980 || a > 1020 || b < 980 || b > 1020 {
			t.Errorf("in 10 s of 100 a second: %v", sent)
		}
	})
}

// TestConcurrency: the limit rises while the store keeps up, and falls when its responses slow down.
func TestConcurrency(t *testing.T) {
	now := time.Unix(1000, 0)
	c := newConcurrency(200)
	run := func(seconds int, latency func(i int) time.Duration) {
		for i := range seconds * 100 {
			for c.free() {
				c.start()
			}
			c.observe(now, 100_000, latency(i))
			now = now.Add(10 * time.Millisecond)
			c.running = 0
		}
	}
	run(40, func(int) time.Duration { return 20 * time.Millisecond })
	if c.limit != 200 {
		t.Errorf("a limit of %.0f while the store keeps up", c.limit)
	}
	run(20, func(i int) time.Duration {
		if i%100 == 0 {
			return 2 * time.Second
		}
		return 20 * time.Millisecond
	})
	if c.limit != 200 {
		t.Errorf("a limit of %.0f with 1 %% of stalls", c.limit)
	}
	run(10, func(int) time.Duration { return 200 * time.Millisecond })
	if c.limit > 20 || c.limit < leastConcurrent {
		t.Errorf("a limit of %.0f after responses slowed down", c.limit)
	}
	run(300, func(int) time.Duration { return 200 * time.Millisecond })
	if c.limit != 200 {
		t.Errorf("a limit of %.0f long after that", c.limit)
	}
}

// refusing refuses every write.
type refusing struct{ bucket.Bucket }

func (refusing) PutIfAbsent(context.Context, string, []byte) (bool, error) {
	return false, &bucket.ThrottledError{After: time.Minute, Err: errors.New("503")}
}

// TestWritesApart: a store that throttles writes is still read.
func TestWritesApart(t *testing.T) {
	l := New(Options{Concurrent: 8})
	b := Wrap(refusing{}, l)
	if _, err := b.PutIfAbsent(t.Context(), "x", nil); err == nil || !l.Throttled() {
		t.Error(err)
	}
	if wait, _, ok := l.Take(true, "x"); ok || wait < 50*time.Second {
		t.Errorf("a write may be sent after %s, %v", wait, ok)
	}
	if _, _, ok := l.Take(false, "x"); !ok {
		t.Error("no read may be sent")
	}
}
