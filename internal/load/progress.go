package load

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// Progress shows how far a load or a verification is: as a bar on a terminal, as a line now and then elsewhere.
type Progress struct {
	Out      io.Writer // nil: nothing is shown
	Terminal bool
}

// Meter is what a progress shows.
type Meter struct {
	Name string
	// Total is the value at which the meter is full; 0 if nobody knows.
	Total int64
	Read  func() int64
	// Detail says more, in a few words.
	Detail func() string
}

// How often a meter is read.
const (
	barInterval  = 200 * time.Millisecond
	lineInterval = 10 * time.Second
)

// During shows a meter while fn runs.
func (p Progress) During(m Meter, fn func()) {
	if p.Out == nil {
		fn()
		return
	}
	show, interval, finish := p.line(m), lineInterval, func() {}
	if p.Terminal {
		interval = barInterval
		show, finish = p.bar(m)
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				show()
			case <-done:
				return
			}
		}
	})
	defer func() {
		close(done)
		wg.Wait()
		finish()
	}()
	fn()
}

func (p Progress) line(m Meter) func() {
	return func() {
		n, share := m.Read(), ""
		if m.Total > 0 {
			share = fmt.Sprintf(" %3.0f %%", 100*float64(n)/float64(m.Total))
		}
		_, _ = fmt.Fprintf(p.Out, "%s:%s %s\n", m.Name, share, m.Detail())
	}
}

func (p Progress) bar(m Meter) (show, finish func()) {
	bars := mpb.New(mpb.WithOutput(p.Out), mpb.WithWidth(40), mpb.WithRefreshRate(barInterval))
	// A bar that is made with its total is complete when it reaches it, and never if it does not: a load may be cut short.
	bar := bars.AddBar(0,
		mpb.PrependDecorators(decor.Name(m.Name+" ")),
		mpb.AppendDecorators(
			decor.Percentage(decor.WCSyncSpace),
			decor.Any(func(decor.Statistics) string { return " " + m.Detail() }),
		))
	bar.SetTotal(m.Total, false)
	show = func() {
		if n := m.Read(); m.Total == 0 || n < m.Total {
			bar.SetCurrent(n)
		}
	}
	return show, func() {
		bar.SetTotal(max(1, m.Read()), true)
		bars.Wait()
	}
}

// Detail says in a few words how a load is doing: the rate of late, the lag, and trouble that is new.
func (t *Tally) Detail() func() string {
	var mu sync.Mutex
	last, at := int64(0), time.Now()
	text := ""
	var shown *string
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		// A bar asks more often than a rate is worth reading.
		if took := time.Since(at); took >= time.Second || text == "" {
			sent := t.sent.Load()
			rate := 0.0
			if took > 0 {
				rate = float64(sent-last) / took.Seconds()
			}
			last, at = sent, time.Now()
			text = fmt.Sprintf("%d samples, %.0f/s, lag %.1f s, %d retries", sent, rate, time.Duration(t.lag.Load()).Seconds(), t.retries.Load())
			if c := t.complaint.Load(); c != shown {
				text += ": " + *c
				shown = c
			}
		}
		return text
	}
}
