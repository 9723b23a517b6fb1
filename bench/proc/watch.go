package proc

import (
	"context"
	"sync"
	"time"
)

// Point is a value at a time in seconds since the beginning.
type Point [2]float64

// Watch reads values at intervals in the background.
type Watch struct {
	began time.Time
	read  func() (map[string]float64, error)
	stop  context.CancelFunc
	wg    sync.WaitGroup

	mu     sync.Mutex
	curves map[string][]Point
}

// StartWatch calls read at once and then at each interval, until Stop. Failed reads are left out.
func StartWatch(interval time.Duration, read func() (map[string]float64, error)) *Watch {
	ctx, stop := context.WithCancel(context.Background())
	w := &Watch{began: time.Now(), read: read, stop: stop, curves: map[string][]Point{}}
	w.wg.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			w.look()
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return w
}

func (w *Watch) look() {
	values, err := w.read()
	if err != nil {
		return
	}
	at := time.Since(w.began).Seconds()
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, v := range values {
		w.curves[name] = append(w.curves[name], Point{at, v})
	}
}

// Since returns how long the watch has been running, in seconds: the time of a point that would be read now.
func (w *Watch) Since() float64 { return time.Since(w.began).Seconds() }

// Stop ends the watch and returns the readings by name.
func (w *Watch) Stop() map[string][]Point {
	w.stop()
	w.wg.Wait()
	return w.curves
}
