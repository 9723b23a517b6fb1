package pressure

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

// TestShare: pressure halves the share, without it the share grows, and neither passes its bounds.
func TestShare(t *testing.T) {
	now, waited := time.Unix(0, 0), time.Duration(0)
	s := newShare(2, 12, 4, func() time.Duration { return waited }, func() time.Time { return now })
	want := func(what string, n int) {
		t.Helper()
		if s.Allows(s.of + 10); s.of != n {
			t.Errorf("%s: %d, want %d", what, s.of, n)
		}
		if !s.Allows(n-1) || s.Allows(n) {
			t.Errorf("%s: a share of %d allows %t and %t", what, n, s.Allows(n-1), s.Allows(n))
		}
	}
	step := func(d time.Duration, waiting float64) {
		now = now.Add(d)
		waited += time.Duration(waiting * float64(d))
	}
	want("at the start", 2)
	s.of = 12
	for _, n := range []int{6, 3, 2, 2} {
		step(every, 2.1)
		want("pressure", n)
	}
	want("too soon", 2)
	step(every, 0)
	want("no pressure, too soon", 2)
	step(calm, 2)
	want("little pressure for long enough", 4)
	step(every, 2.1)
	want("pressure after growth", 2)
	step(calm, 0)
	want("not so soon again", 2)
	step(calm, 1)
	want("little pressure", 4)
	step(2*calm, 0)
	want("no pressure after growth", 8)
	step(calm, 0)
	want("at the end", 12)
	for range 20 {
		s.of = 2
		s.wanted = true
		step(time.Hour, 0)
		s.Allows(0)
		step(every, 4)
		s.Allows(0)
	}
	if s.calm != mostCalm {
		t.Errorf("the calm before growth is %s", s.calm)
	}
	s.of, s.wanted = 2, false
	step(time.Hour, 0)
	if s.Allows(0); s.of != 2 {
		t.Errorf("a share that is large enough has grown to %d", s.of)
	}
	if s := New(5, 3); !s.Allows(4) || s.Allows(5) {
		t.Error("a share of at least 5 is not 5")
	}
}

// TestScheduler: more goroutines than processors, none of which gives its processor up, wait long.
func TestScheduler(t *testing.T) {
	read := scheduler()
	before := read()
	stop := make(chan struct{})
	var done sync.WaitGroup
	for range 8 * runtime.GOMAXPROCS(0) {
		done.Go(func() {
			for n := 0; ; n++ {
				if n%(1<<16) == 0 {
					select {
					case <-stop:
						return
					default:
					}
				}
			}
		})
	}
	begin, after := time.Now(), before
	for after-before < time.Second && time.Since(begin) < 10*time.Second {
		time.Sleep(20 * time.Millisecond)
		after = read()
	}
	waiting := float64(after-before) / float64(time.Since(begin))
	close(stop)
	done.Wait()
	if n := float64(runtime.GOMAXPROCS(0)); waiting < tooMany*n || waiting > 20*n {
		t.Errorf("%v goroutines wait for %v processors", waiting, n)
	}
}
