package bucketcopy

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part"
)

// windows reads an object through a few windows, so that pages that follow each other cost one request
// together. One goroutine uses it.
type windows struct {
	b    bucket.Bucket
	name string
	size int64
	open []window      // the most recently used last
	read *atomic.Int64 // counts the bytes that were read for the first time; nil: no count
	most int64         // the end of what was counted
}

type window struct {
	off   int64
	bytes []byte
}

// The verification of a block walks over index pages and then over all pages. A page at a distance from all
// windows gets a small one, so that a walk over index pages does not read the whole block.
const (
	maxWindows  = 3
	smallWindow = 64 << 10
	largeWindow = 4 << 20
)

// Range returns n bytes from off. They must not be changed.
func (w *windows) Range(ctx context.Context, off, n int64) ([]byte, error) {
	if off < 0 || n < 0 || off > w.size || n > w.size-off {
		return nil, fmt.Errorf("%w: range [%d, %d) is outside a block of %d bytes", model.ErrCorrupt, off, off+n, w.size)
	}
	ask := int64(smallWindow)
	for i := len(w.open) - 1; i >= 0; i-- {
		o := w.open[i]
		end := o.off + int64(len(o.bytes))
		if off >= o.off && off+n <= end {
			copy(w.open[i:], w.open[i+1:])
			w.open[len(w.open)-1] = o
			return o.bytes[off-o.off : off-o.off+n : off-o.off+n], nil
		}
		if off >= o.off && off <= end {
			ask = largeWindow // reading on
		}
	}
	ask = min(max(ask, n), w.size-off)
	var bytes []byte
	err := retry(ctx, func() (err error) {
		bytes, err = w.b.GetRange(ctx, w.name, off, ask)
		return err
	})
	if err != nil {
		return nil, err
	}
	if end := off + ask; w.read != nil && end > w.most && off <= w.most {
		w.read.Add(end - w.most)
		w.most = end
	}
	if len(w.open) == maxWindows {
		w.open = append(w.open[:0], w.open[1:]...)
	}
	w.open = append(w.open, window{off, bytes})
	return bytes[:n:n], nil
}

// Page returns the payload of a page.
func (w *windows) Page(ctx context.Context, a part.Addr) ([]byte, error) {
	stored, err := w.Range(ctx, a.Off, int64(a.Len))
	if err != nil {
		return nil, err
	}
	return part.DecodePage(stored)
}
