package peer

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/journal"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/remote/wire"
)

// Tailed is a Partition whose new rows can be followed.
type Tailed interface {
	Partition
	// Watch calls fn with each batch after queries see it, and ended when the partition ends. label gives the
	// batch labels of some of its series, ascending indexes. fn neither waits nor keeps any part of the batch.
	// After cancel returns, no call is running and none begins.
	Watch(fn func(b *model.Batch, label func(some []uint32) error), ended func()) (cancel func())
}

const (
	// tailBytes and tailRows bound what waits for one asker.
	tailBytes = 4 << 20
	tailRows  = 10_000
	// maxLost bounds how many lines of one frame are said to be left out.
	maxLost = 1000
	// maxMet bounds the streams of which it is remembered whether they are followed.
	maxMet = 1 << 16
	// tailPause gathers lines into frames.
	tailPause = 50 * time.Millisecond
	// tailPatience is how long an asker may take for one frame.
	tailPatience = 30 * time.Second
)

// tail streams lines as they are applied, until the asker closes the connection or a partition ends.
func (h *Handler) tail(rw http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	w := newAnswer(ctx, rw)
	defer w.done()
	_ = w.rc.SetReadDeadline(time.Time{}) // it would end the request
	h.end(w, func() error {
		select {
		case h.tails <- struct{}{}:
			defer func() { <-h.tails }()
		default:
			return fmt.Errorf("%w: %d requests follow lines", wire.ErrOverloaded, h.o.MaxTails)
		}
		c := &call{h: h, w: w}
		if err := c.begin(ctx, r); err != nil {
			return err
		}
		defer c.req.Quota.Release()
		t := &tailing{req: c.req, lost: h.metrics.lost.Inc, wake: make(chan struct{}, 1), met: map[model.Key]model.Labels{}}
		defer t.release()
		for i, p := range c.asked {
			of, ok := p.(Tailed)
			if !ok {
				return fmt.Errorf("%w: this process does not tell of new lines", model.ErrInvalid)
			}
			ended := fmt.Errorf("%w: %s of epoch %d has left this process", wire.ErrWrongJournal, c.held[i].Node, c.held[i].Epoch)
			defer of.Watch(t.see, func() { cancel(ended) })()
		}
		if err := c.head(""); err != nil {
			return err
		}
		return t.stream(ctx, w)
	}())
}

// tailing is what one asker follows.
type tailing struct {
	req  *model.Request
	lost func()
	wake chan struct{} // has one while there may be something

	mu sync.Mutex
	// met has the labels of the streams that were met, nil of those that are not followed.
	met map[model.Key]model.Labels
	// lines and dropped wait for the asker. taken is what they take of the quota.
	lines, dropped model.Batch
	taken          int64
	err            error
}

// see takes what is wanted of a batch.
func (t *tailing) see(b *model.Batch, label func(some []uint32) error) {
	if b.Signal != model.Logs || b.Tenant != t.req.Tenant {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return
	}
	if t.err = t.meetLocked(b, label); t.err == nil {
		for i, k := range b.Keys {
			if l := t.met[k]; l != nil {
				t.takeLocked(k, l, &b.Text, i)
			}
		}
	}
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// meetLocked finds the labels of streams that are met for the first time.
func (t *tailing) meetLocked(b *model.Batch, label func(some []uint32) error) error {
	if len(t.met)+len(b.Keys) > maxMet {
		clear(t.met)
	}
	var first []uint32
	for i, k := range b.Keys {
		if _, met := t.met[k]; !met {
			first = append(first, uint32(i))
		}
	}
	if len(first) == 0 {
		return nil
	}
	if err := label(first); err != nil {
		return err
	}
	for _, i := range first {
		at, has := slices.BinarySearch(b.Labels.Series, i)
		if !has {
			continue
		}
		var own model.Labels
		if l := b.Labels.At(at); matches(t.req.Matchers, l) {
			own = slices.Clone(l)
		}
		t.met[b.Keys[i]] = own
	}
	return nil
}

func matches(ms []model.Matcher, l model.Labels) bool {
	for i := range ms {
		if !ms[i].Match(string(l.Get(ms[i].Name))) {
			return false
		}
	}
	return true
}

// takeLocked copies the rows of a series, or notes them as dropped where there is no room.
func (t *tailing) takeLocked(k model.Key, l model.Labels, c *model.Columns, i int) {
	from, to := int(c.Begin(i)), int(c.End(i))
	if from >= to {
		return
	}
	size := int64(len(l) + seriesBytes)
	for row := from; row < to; row++ {
		size += int64(len(c.Blob(row)) + rowBytes)
	}
	if t.lines.Text.Len()+to-from > tailRows || t.taken+size > tailBytes || t.req.Quota.TakeBytes(size) != nil {
		for row := from; row < to; row++ {
			t.lost()
		}
		if n := maxLost - t.dropped.Text.Len(); n > 0 {
			t.dropped.Labels.Append(uint32(len(t.dropped.Keys)), l)
			for row := from; row < min(to, from+n); row++ {
				t.dropped.Text.AppendBlob(c.Times[row], model.KindText, model.AppendLine(nil, &model.Line{}), 0)
			}
			t.dropped.EndSeries(k)
		}
		return
	}
	t.taken += size
	t.lines.Labels.Append(uint32(len(t.lines.Keys)), l)
	t.lines.Text.AppendRows(&c.Rows, from, to)
	t.lines.EndSeries(k)
}

// frames returns what waits as frames; empty: nothing does.
func (t *tailing) frames() (lines, dropped []byte, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	encode := func(b *model.Batch) (frame []byte) {
		if len(b.Keys) > 0 {
			b.Tenant, b.Signal = t.req.Tenant, model.Logs
			frame = journal.EncodeBatch(nil, b)
			b.Reset()
		}
		return frame
	}
	lines, dropped = encode(&t.lines), encode(&t.dropped)
	_ = t.req.Quota.TakeBytes(-t.taken) // giving back never fails
	t.taken = 0
	return lines, dropped, t.err
}

// release gives back what waits.
func (t *tailing) release() {
	_, _, _ = t.frames()
}

// stream writes frames.
func (t *tailing) stream(ctx context.Context, w *answer) error {
	pulse := time.NewTicker(wire.TailPulse)
	defer pulse.Stop()
	for {
		alive := false
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.wake:
			select { // others come with it
			case <-ctx.Done():
			case <-time.After(tailPause):
			}
		case <-pulse.C:
			alive = true
		}
		lines, dropped, err := t.frames()
		if err != nil {
			return err
		}
		if len(lines)+len(dropped) == 0 && !alive {
			continue
		}
		_ = w.rc.SetWriteDeadline(time.Now().Add(tailPatience))
		switch {
		case len(lines) > 0:
			err = w.write(wire.Record, lines)
		case len(dropped) == 0:
			err = w.write(wire.Strings, nil)
		}
		if err == nil && len(dropped) > 0 {
			err = w.write(wire.Dropped, dropped)
		}
		if err == nil {
			err = w.flush()
		}
		if err != nil {
			return err
		}
	}
}
