package victorialogs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/shaledb/shale/internal/model"
)

const (
	// flightWait is how long requests wait for one over the same cells that is on its way. Where several went
	// together in the last companyAge, or others of the tenant are running, the first one waits for others for
	// companyWait.
	flightWait  = 500 * time.Millisecond
	companyWait = 20 * time.Millisecond
	companyAge  = time.Minute
	mostCompany = 1000
	// flightBytes bounds the rows that several requests have in common. After a response with more of them,
	// each is sent alone for flightPause.
	flightBytes = 16 << 20
	flightPause = time.Minute
)

// flights are the counts that are on their way. The panels of a page count the lines of different streams in
// the same cells at the same time. So while one is on its way, further ones of its tenant wait for its end,
// and then go as one request. Each takes the rows of the streams that it selects. None takes what was asked
// for before it came. It is safe for concurrent use.
type flights struct {
	client *client
	joined func()
	most   int           // bytes
	wait   time.Duration // for the one before
	linger time.Duration // for others, where some are expected
	runs   sync.WaitGroup

	mu sync.Mutex
	of map[string]*flight // the newest of its cells
	// company is when requests over some cells went together.
	company map[string]time.Time
	running map[string]int // by tenant and account
	bytes   int
	until   time.Time // until when each goes alone
}

// flight is a request that some have in common. What it has is set when ready is closed.
type flight struct {
	cells  string
	before <-chan struct{}
	ready  chan struct{}
	ended  chan struct{} // closed when the next one may begin
	gone   chan struct{} // closed if all have given up before it began

	filters []string // of streams
	sized   bool
	latest  time.Time // when the last one that takes part gives up
	endless bool      // it never does
	parts   int       // that take part
	begun   bool
	cancel  context.CancelFunc
	bytes   int

	alone bool // it is not sent: the only one that takes part sends its own
	rows  [][]field
	err   error
}

var errTooManyRows = errors.New("requests have more rows in common than are kept at one time")

// query counts the lines of a directory in a range, alone or with others.
func (k *flights) query(ctx context.Context, d *directory, r model.TimeRange, b buckets, addsOffset bool, each func(row []field) error) error {
	kind, text := kindDirectory, d.statistics(r, b, addsOffset)
	if b.groups != nil {
		kind = kindGroups
	}
	alone := func() error { return k.client.query(ctx, d.account, kind, text, each) }
	if d.req.Cells == nil || !b.counted || d.filter.lines != "" || d.req.Cost.Fresh {
		return alone()
	}
	common := text // groups are of some streams, and their rows do not say of which
	if b.groups == nil {
		common = d.selecting("", false).statistics(r, b, addsOffset)
	}
	caller := fmt.Sprintf("%s %v ", model.CallerOf(ctx).Tenant, d.account)
	f := k.join(ctx, caller, common, d, func(f *flight) string {
		if b.groups != nil {
			return text
		}
		return d.selecting(anyOf(f.filters), f.sized).statistics(r, b, addsOffset)
	}, kind)
	if f == nil {
		return alone()
	}
	defer k.leave(caller, f)
	select {
	case <-f.ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	switch {
	case f.alone:
		return alone()
	case errors.Is(f.err, model.ErrTransient):
		return f.err
	case f.err != nil: // the reason may be another one that takes part
		return alone()
	}
	k.joined()
	for _, row := range f.rows {
		if err := each(row); err != nil {
			return err
		}
	}
	return nil
}

// selecting returns a directory of other streams.
func (d *directory) selecting(streams string, sized bool) *directory {
	apart, req, cells := *d, *d.req, *d.req.Cells
	cells.Bytes, req.Cells = sized, &cells
	apart.req, apart.filter.streams = &req, streams
	return &apart
}

// anyOf returns the filter of the streams that pass one of some filters.
func anyOf(filters []string) string {
	var all []string
	for _, f := range filters {
		if f == "" {
			return ""
		}
		all = append(all, strings.TrimSuffix(strings.TrimPrefix(f, "{"), "}"))
	}
	return "{" + strings.Join(all, " or ") + "}"
}

// join takes part in the next flight over some cells; nil: there is none for now. text returns what it asks.
func (k *flights) join(ctx context.Context, caller, common string, d *directory, text func(f *flight) string, kind string) *flight {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Now().Before(k.until) {
		return nil
	}
	cells := caller + common
	f := k.of[cells]
	switch {
	case f == nil && (k.running[caller] > 0 || time.Since(k.company[cells]) < companyAge):
		f = k.gatherLocked(ctx, cells, nil, d.account, kind, text)
	case f == nil:
		f = &flight{cells: cells, ready: make(chan struct{}), ended: make(chan struct{}), begun: true, alone: true}
		close(f.ready)
	case f.begun:
		f = k.gatherLocked(ctx, cells, f.ended, d.account, kind, text)
	}
	if k.of == nil {
		k.of, k.running = map[string]*flight{}, map[string]int{}
	}
	k.running[caller]++
	k.of[cells] = f
	if !slices.Contains(f.filters, d.filter.streams) {
		f.filters = append(f.filters, d.filter.streams)
	}
	f.parts, f.sized = f.parts+1, f.sized || d.sized()
	if at, ok := ctx.Deadline(); !ok {
		f.endless = true
	} else if at.After(f.latest) {
		f.latest = at
	}
	return f
}

// gatherLocked begins a flight that goes after another one, or soon.
func (k *flights) gatherLocked(ctx context.Context, cells string, before <-chan struct{}, a access, kind string, text func(f *flight) string) *flight {
	f := &flight{cells: cells, before: before, gone: make(chan struct{}), ready: make(chan struct{}), ended: make(chan struct{})}
	wait := k.wait
	if before == nil {
		wait = k.linger
	}
	apart := context.WithoutCancel(ctx) // others are not to end with this one
	k.runs.Go(func() { k.run(apart, f, wait, a, kind, text) })
	return f
}

// leave says that one of those that take part has what it wants, or has given up.
func (k *flights) leave(caller string, f *flight) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.running[caller]--; k.running[caller] == 0 {
		delete(k.running, caller)
	}
	if f.parts--; f.parts > 0 {
		return
	}
	switch {
	case f.cancel != nil:
		f.cancel()
	case !f.begun: // and never will
		f.begun = true
		close(f.gone)
		k.endLocked(f)
	}
	k.bytes -= f.bytes
	if f.bytes = 0; f.alone {
		k.endLocked(f)
	}
}

func (k *flights) endLocked(f *flight) {
	if k.of[f.cells] == f {
		delete(k.of, f.cells)
	}
	close(f.ended)
}

// run waits for the flight before, but not longer than wait, and sends the request.
func (k *flights) run(ctx context.Context, f *flight, wait time.Duration, a access, kind string, text func(f *flight) string) {
	late := time.NewTimer(wait)
	defer late.Stop()
	select {
	case <-f.before:
	case <-late.C:
	case <-f.gone:
	}
	k.mu.Lock()
	if f.begun {
		k.mu.Unlock()
		return
	}
	if f.begun = true; f.parts == 1 {
		f.alone = true
		close(f.ready)
		k.mu.Unlock()
		return
	}
	if k.company == nil || len(k.company) >= mostCompany {
		k.company = map[string]time.Time{}
	}
	k.company[f.cells] = time.Now()
	if f.endless {
		ctx, f.cancel = context.WithCancel(ctx)
	} else {
		ctx, f.cancel = context.WithDeadline(ctx, f.latest)
	}
	asked := text(f)
	k.mu.Unlock()
	rows, err := [][]field(nil), errors.New("a request of several could not be sent")
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		f.cancel()
		if f.rows, f.err = rows, err; f.parts == 0 {
			k.bytes -= f.bytes
			f.bytes = 0
		}
		k.endLocked(f)
		close(f.ready)
	}()
	err = k.client.query(ctx, a, kind, asked, func(row []field) error {
		own, size := cloned(row)
		rows = append(rows, own)
		k.mu.Lock()
		defer k.mu.Unlock()
		f.bytes += size
		if k.bytes += size; k.bytes > k.most {
			k.until = time.Now().Add(flightPause)
			return errTooManyRows
		}
		return nil
	})
}

// cloned returns a copy of a row, and what it takes.
func cloned(row []field) (own []field, size int) {
	for _, f := range row {
		size += len(f.name) + len(f.value)
	}
	text := make([]byte, 0, size)
	own = make([]field, len(row))
	for i, f := range row {
		from := len(text)
		text = append(text, f.name...)
		to := len(text)
		text = append(text, f.value...)
		own[i] = field{text[from:to:to], text[to:len(text):len(text)]}
	}
	return own, size + len(row)*int(unsafe.Sizeof(field{})) + int(unsafe.Sizeof(own))
}
