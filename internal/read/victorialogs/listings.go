package victorialogs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/shaledb/shale/internal/model"
)

const (
	// listedStreams bounds the streams of an account of which one list serves all selectors. Where there are
	// more, or some cannot be grouped, each selector has a list of its own, for ownListFor.
	listedStreams = 5000
	ownListFor    = 10 * time.Minute
	// listedBytes bounds the lists that are kept.
	listedBytes = 8 << 20
)

// listings are the lists of streams that queries have asked for lately. The panels of a page share one: while
// a query is asking, others wait for its list. It is safe for concurrent use.
type listings struct {
	// every is how long a list is used, for ranges within its own.
	every time.Duration

	mu    sync.Mutex
	of    map[string]*listing
	bytes int
	own   map[string]time.Time // those for which each selector has its own list, until when
}

// listing is a list of streams. What it has is set when ended is closed.
type listing struct {
	model.TimeRange
	began time.Time
	ended chan struct{}
	all   [][]byte // spellings
	bytes int      // of those that are kept, else 0
	many  bool     // there are more
	err   error
}

// get returns the streams of a request, and whether others of its account may be among them.
func (k *listings) get(ctx context.Context, d *directory) (all [][]byte, others bool, err error) {
	// A list waits for the turn of its caller. Those of another tenant are not to wait for that.
	account := d.owner(ctx)
	if k.every <= 0 || d.req.Cost.Fresh || k.isOwn(account) {
		return k.alone(ctx, d)
	}
	l, found := k.find(account, d.req.Range)
	if !found {
		if err := k.fill(ctx, account, l, d); err != nil {
			return nil, false, err
		}
	}
	select {
	case <-l.ended:
	case <-ctx.Done():
		return nil, false, context.Cause(ctx)
	}
	if l.err != nil || l.many { // an error is that of another query
		return k.alone(ctx, d)
	}
	return l.all, true, nil
}

// alone returns the streams of a request, by a request of its own.
func (k *listings) alone(ctx context.Context, d *directory) (all [][]byte, others bool, err error) {
	all, _, err = d.list(ctx, d.filter, 0)
	return all, false, err
}

// find returns the list of an account, which may be on its way. If there is none, the caller makes it.
func (k *listings) find(account string, r model.TimeRange) (l *listing, found bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l = k.of[account]; l != nil && l.Min <= r.Min && r.Max <= l.Max && time.Since(l.began) < k.every {
		return l, true
	}
	if l != nil {
		k.bytes -= l.bytes
	}
	if k.of == nil || k.bytes > listedBytes {
		k.of, k.bytes = map[string]*listing{}, 0
	}
	l = &listing{TimeRange: r, began: time.Now(), ended: make(chan struct{})}
	k.of[account] = l
	return l, false
}

// errNotListed is what a list has whose request has panicked.
var errNotListed = errors.New("streams could not be listed")

// fill asks for a list, hands it to those that wait for it, and keeps it if it is whole.
func (k *listings) fill(ctx context.Context, account string, l *listing, d *directory) error {
	all, size, err := [][]byte(nil), 0, errNotListed
	defer func() { k.end(account, l, all, size, err) }()
	all, size, err = d.list(ctx, filter{}, listedStreams+1)
	return err
}

func (k *listings) end(account string, l *listing, all [][]byte, size int, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l.all, l.many, l.err = all, len(all) > listedStreams, err
	if l.many {
		k.setOwnLocked(account)
	}
	switch {
	case k.of[account] != l: // another one is newer
	case l.err != nil || l.many || size > listedBytes/2:
		delete(k.of, account)
	default:
		l.bytes = size
		k.bytes += size
	}
	close(l.ended)
}

func (k *listings) isOwn(account string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Now().Before(k.own[account])
}

// setOwn makes each selector of an account have its own list for a while.
func (k *listings) setOwn(account string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.setOwnLocked(account)
}

func (k *listings) setOwnLocked(account string) {
	if k.own == nil || len(k.own) > listedStreams {
		k.own = map[string]time.Time{}
	}
	k.own[account] = time.Now().Add(ownListFor)
}

// list asks for the streams that pass a filter; most, if it is not 0, bounds them.
func (d *directory) list(ctx context.Context, f filter, most int) (all [][]byte, size int, err error) {
	text := f.in(d.req.Range) + " | uniq by (_stream)"
	if most > 0 {
		text += fmt.Sprintf(" limit %d", most)
	}
	err = d.source.client.query(ctx, d.account, kindStreams, text, func(row []field) error {
		spelling := bytes.Clone(valueOf(row, "_stream"))
		if err := d.req.Quota.TakeBytes(int64(len(spelling))); err != nil {
			return err
		}
		d.taken += int64(len(spelling))
		size += len(spelling)
		all = append(all, spelling)
		return nil
	})
	return all, size, err
}
