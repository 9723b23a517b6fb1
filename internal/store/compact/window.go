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
// and a window that is read on without a gap grows.
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
}

func (w *window) holds(off, n int64) bool {
	return off >= w.off && off+n <= w.off+int64(len(w.bytes))
}

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
		if end := w.off + int64(len(w.bytes)); at < 0 && off >= w.off && off <= end+windowGap {
			at = i
		}
	}
	ahead := min(leastWindow, ws.most)
	switch {
	case at >= 0:
		ahead = ws.open[at].next
	case len(ws.open) == windowsPerInput:
		at = 0
	default:
		ws.open = append(ws.open, window{})
		at = len(ws.open) - 1
	}
	b, err := ws.m.fetch(ctx, ws.object, off, min(max(ahead, n), ws.size-off))
	if err != nil {
		return nil, err
	}
	ws.open[at] = window{off: off, bytes: b, next: min(2*ahead, ws.most)}
	found := ws.open[at].slice(off, n)
	ws.touch(at)
	return found, nil
}

func (w *window) slice(off, n int64) []byte {
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
