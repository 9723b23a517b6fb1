package progress

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// Progress shows how far a load or a verification is: a bar on a terminal, or else a line now and then.
type Progress struct {
	Out      io.Writer // nil: nothing is shown
	Terminal bool
}

// Meter is the value that a Progress shows.
type Meter struct {
	Name string
	// Total is the value at which the meter is full; 0: unknown.
	Total int64
	Read  func() int64
	// Detail adds a few words.
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
	// A bar that is made with its total is complete when it reaches it, and never if it does not: a load may
	// be cut short.
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
