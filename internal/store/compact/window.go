package compact

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part"
)

// A request is tried at most tries times, with pauses that begin with firstPause and grow fourfold.
const (
	tries      = 5
	firstPause = 50 * time.Millisecond
)

// retry repeats do while its error is transient.
func retry(ctx context.Context, pause time.Duration, do func() error) error {
	for try := 1; ; try++ {
		err := do()
		if err == nil || try == tries || !errors.Is(err, model.ErrTransient) || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
			pause *= 4
		}
	}
}

// The windows of a block. The pages of small tenants follow each other, all sections of each; in a large
// tenant, keys and labels are megabytes before the rows. So there are a few windows. Each follows one offset,
// and a window that is read on without a gap grows. A window with bytes that are skipped stays: of a group of
// units, the first lines are read before the other rows.
const (
	windowsPerInput = 4
	leastWindow     = 64 << 10
	greatestWindow  = 4 << 20
	// windowGap is the greatest distance from the end of a window to the next read that still counts as
	// reading on: pages of other sections are in between.
	windowGap = 256 << 10
)

// windows reads an object through a bounded number of bytes.
type windows struct {
	m      *merge
	block  string
	object string
	size   int64
	// most is the greatest size of one window.
	most int64
	open []window // the most recently used last
}

// window is a range of the object. Its bytes never change, because pages read from it may alias them.
type window struct {
	off   int64
	bytes []byte
	// next is the size of the following window.
	next int64
	// since is where the first window began that was read on without a gap, and last the end of the last read.
	since, last int64
}

func (w *window) end() int64 { return w.off + int64(len(w.bytes)) }

func (w *window) holds(off, n int64) bool {
	return off >= w.off && off+n <= w.end()
}

// isSkipped reports whether a read from off on leaves bytes of the window out that have not been read.
func (w *window) isSkipped(off int64) bool { return w.last < min(off, w.end()) }

// read returns n bytes of the object from off. They must not be changed.
func (ws *windows) read(ctx context.Context, off, n int64) ([]byte, error) {
	if off < 0 || n < 0 || off > ws.size || n > ws.size-off {
		return nil, fmt.Errorf("%w: range [%d, %d) is outside a block of %d bytes", model.ErrCorrupt, off, off+n, ws.size)
	}
	at := -1
	for i := len(ws.open) - 1; i >= 0; i-- {
		w := &ws.open[i]
		if w.holds(off, n) {
			found := w.slice(off, n)
			ws.touch(i) // this moves w
			return found, nil
		}
		if at < 0 && off >= w.off && off <= w.end()+windowGap {
			at = i
		}
	}
	ahead, since := min(leastWindow, ws.most), off
	if at >= 0 {
		ahead, since = ws.open[at].next, ws.open[at].since
	}
	if at < 0 || ws.open[at].isSkipped(off) {
		at, since = ws.other(at), off
	}
	b, err := ws.m.fetch(ctx, ws.object, off, ws.until(off, n, ahead, at)-off)
	if err != nil {
		return nil, err
	}
	ws.open[at] = window{off: off, bytes: b, next: min(2*ahead, ws.most), since: since}
	found := ws.open[at].slice(off, n)
	ws.touch(at)
	return found, nil
}

// other returns a new window, or the one that was used least recently, but not that at an index.
func (ws *windows) other(than int) int {
	switch {
	case len(ws.open) < windowsPerInput:
		ws.open = append(ws.open, window{})
		return len(ws.open) - 1
	case than == 0:
		return 1
	}
	return 0
}

// until returns where a window of about that size ends which takes the place of another one. It does not
// reach into what the others have read, unless the first n bytes do.
func (ws *windows) until(off, n, size int64, place int) int64 {
	end := min(off+max(n, size), ws.size)
	for i := range ws.open {
		if w := &ws.open[i]; i != place && w.since > off {
			end = max(min(end, w.since), off+n)
		}
	}
	return end
}

// slice returns bytes that the window holds.
func (w *window) slice(off, n int64) []byte {
	w.last = off + n
	from := off - w.off
	return w.bytes[from : from+n : from+n]
}

// touch moves a window to the end.
func (ws *windows) touch(i int) {
	w := ws.open[i]
	copy(ws.open[i:], ws.open[i+1:])
	ws.open[len(ws.open)-1] = w
}

// Page returns a decoded page.
func (ws *windows) Page(ctx context.Context, a part.Addr) ([]byte, error) {
	stored, err := ws.read(ctx, a.Off, int64(a.Len))
	if err != nil {
		return nil, err
	}
	payload, err := part.DecodePage(stored)
	if err != nil {
		return nil, fmt.Errorf("page at %d: %w", a.Off, err)
	}
	return payload, nil
}

var _ part.TextBlamer = (*windows)(nil)

// Blame is that of [part.TextBlamer].
func (ws *windows) Blame() { ws.m.reading = ws.block }
