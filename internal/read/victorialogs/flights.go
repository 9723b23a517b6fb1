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
	// flightLimit is how long a count waits for a response that others have a part in. One of them may select
	// so much that the response takes as long as VictoriaLogs lets it.
	flightLimit = 5 * time.Second
	// flightBytes bounds the rows that the requests of a flight have in common, and flightsBytes those of all
	// flights. After a response with more of them, and after one that was late, each request of the tenant is
	// sent alone for flightPause.
	flightBytes  = 8 << 20
	flightsBytes = 32 << 20
	flightPause  = time.Minute
	// pausedLarge and pausedLate name these reasons.
	pausedLarge, pausedLate = "large", "late"
	// mostCompany bounds what is remembered of cells, and of tenants.
	mostCompany = 1000
)

// flights are the counts that are on their way. The panels of a page count the lines of different streams in
// the same cells at the same time. So while one is on its way, further ones of its tenant wait for its end,
// and then go as one request. Each takes the rows of the streams that it selects. None takes what was asked
// for before it came. Those that want the sizes of lines go apart: these take long. It is safe for concurrent
// use.
type flights struct {
	client *client
	joined func()
	// paused is told why the requests of a tenant go alone for flightPause from now on.
	paused func(reason string)
	most   int           // bytes of the rows of one
	all    int           // bytes of the rows of all
	wait   time.Duration // for the one before
	linger time.Duration // for others, where some are expected
	limit  time.Duration // for a response that others have a part in
	runs   sync.WaitGroup

	ctx   context.Context // of the requests that several have in common
	close context.CancelCauseFunc

	mu     sync.Mutex
	closed bool
	of     map[string]*flight // the newest of its cells
	// company is when requests over some cells went together.
	company map[string]time.Time
	running map[string]int       // by owner
	apart   map[string]time.Time // by owner, until when each of its requests goes alone
	bytes   int
}

// flight is a request that some have in common. What it has is set when ready is closed.
type flight struct {
	owner, cells string
	before       <-chan struct{}
	ready        chan struct{}
	ended        chan struct{} // closed when the next one may begin
	gone         chan struct{} // closed if all have given up before it began

	parts  []*part // those that take part
	begun  bool
	mixed  bool // it has the streams of several filters. This is known when it has begun
	cancel context.CancelFunc
	bytes  int

	alone   bool // it is not sent: the only one that takes part sends its own
	streams []flightStream
	err     error
}

// part is a request that takes part in a flight.
type part struct {
	filter filter    // of streams
	until  time.Time // when it gives up; 0: never
}

// flightStream is the rows of a stream.
type flightStream struct {
	spelling []byte
	rows     [][]field
}

var (
	errTooManyRows = errors.New("requests have more rows in common than are kept at one time")
	errLate        = errors.New("the response to several requests takes long")
)

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
	// Groups are of some streams, and their rows do not say of which.
	common, textOf := text, func([]filter) string { return text }
	if b.groups == nil {
		// The request may give up, and let go of the directory, before the text is made.
		every := d.selecting(filter{})
		// One that has only values, and one that has only fields, would together select all streams.
		common = fmt.Sprint(d.filter.values != "", " ", every.statistics(r, b, addsOffset))
		textOf = func(filters []filter) string { return every.selecting(anyOf(filters)).statistics(r, b, addsOffset) }
	}
	f, own := k.join(ctx, d, common, textOf, kind)
	if f == nil {
		return alone()
	}
	defer k.leave(f, own)
	switch err := k.await(ctx, f); {
	case err == errLate:
		k.leave(f, own) // if all do, it ends
		return alone()
	case err != nil:
		return err
	case f.alone:
		return alone()
	case f.err == nil:
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(f.err, model.ErrTransient) && (!f.mixed || k.client.breaker.Open() || k.ctx.Err() != nil):
		return f.err
	default: // the reason may be another one that takes part
		return alone()
	}
	streams, ok := f.streams, true
	if b.groups == nil {
		streams, ok = d.wanted(streams)
	}
	if !ok {
		return alone()
	}
	k.joined()
	for _, s := range streams {
		for _, row := range s.rows {
			if err := each(row); err != nil {
				return err
			}
		}
	}
	return nil
}

// await waits for the response, but not for long if it is of streams that the caller does not select.
func (k *flights) await(ctx context.Context, f *flight) error {
	late := time.NewTicker(k.limit) // again and again: it may not have begun
	defer late.Stop()
	for {
		select {
		case <-f.ready:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-late.C:
			k.mu.Lock()
			if f.mixed {
				k.setApartLocked(f.owner, pausedLate)
			}
			mixed := f.mixed
			k.mu.Unlock()
			if mixed {
				return errLate
			}
		}
	}
}

// wanted returns the streams that the request selects. Others are neither charged to it nor looked at. ok is
// false if it cannot be told: one that cannot be shown may be another request's.
func (d *directory) wanted(all []flightStream) (own []flightStream, ok bool) {
	for _, s := range all {
		found, err := d.source.streams.of(s.spelling)
		if err != nil {
			return nil, false
		}
		if found != nil && matches(d.req.Matchers, found.Labels) {
			own = append(own, s)
		}
	}
	return own, true
}

// selecting returns a directory of other streams.
func (d *directory) selecting(f filter) *directory {
	apart := *d
	apart.filter = f
	return &apart
}

// anyOf returns a filter of the streams that pass one of some filters. Others may pass it.
func anyOf(filters []filter) (f filter) {
	if len(filters) == 1 {
		return filters[0]
	}
	var streams, values []string
	for _, x := range filters {
		if x.streams != "" {
			streams = append(streams, strings.TrimSuffix(strings.TrimPrefix(x.streams, "{"), "}"))
		}
		if x.values != "" {
			values = append(values, "("+x.values+")")
		}
	}
	if len(streams) == len(filters) {
		f.streams = "{" + strings.Join(streams, " or ") + "}"
	}
	if len(values) == len(filters) {
		f.values = strings.Join(values, " or ")
	}
	return f
}

// owner says for whom a request is sent: no other tenant is to wait for it, or to get what it gets.
func (d *directory) owner(ctx context.Context) string {
	return fmt.Sprintf("%q %v %q", model.CallerOf(ctx).Tenant, d.account.Account, d.account.filter)
}

// join takes part in the next flight over some cells; nil: there is none for now. text returns what it asks
// for the streams of some filters.
func (k *flights) join(ctx context.Context, d *directory, common string, text func(filters []filter) string, kind string) (*flight, *part) {
	owner := d.owner(ctx)
	cells := owner + " " + common
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || time.Now().Before(k.apart[owner]) {
		return nil, nil
	}
	f := k.of[cells]
	begin := func(before <-chan struct{}, wait time.Duration) {
		f = &flight{owner: owner, cells: cells, before: before, gone: make(chan struct{}), ready: make(chan struct{}), ended: make(chan struct{})}
		g, apart := f, context.WithoutCancel(ctx) // others are not to end with this one
		k.runs.Go(func() { k.run(apart, g, wait, d.account, kind, text) })
	}
	switch {
	case f == nil && (k.running[owner] > 0 || time.Since(k.company[cells]) < companyAge):
		begin(nil, k.linger)
	case f == nil:
		f = &flight{owner: owner, cells: cells, ready: make(chan struct{}), ended: make(chan struct{}), begun: true, alone: true}
		close(f.ready)
	case f.begun:
		begin(f.ended, k.wait)
	}
	k.running[owner]++
	k.of[cells] = f
	own := &part{filter: d.filter}
	own.until, _ = ctx.Deadline()
	f.parts = append(f.parts, own)
	return f, own
}

// leave says that one of those that take part has what it wants, or has given up. Saying so twice is no
// harm.
func (k *flights) leave(f *flight, own *part) {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.Index(f.parts, own)
	if i < 0 {
		return
	}
	if k.running[f.owner]--; k.running[f.owner] == 0 {
		delete(k.running, f.owner)
	}
	if f.parts = slices.Delete(f.parts, i, i+1); len(f.parts) > 0 {
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

// setApartLocked makes the requests of an owner go alone for a while.
func (k *flights) setApartLocked(owner, reason string) {
	if !time.Now().Before(k.apart[owner]) { // each that takes part may say so
		k.paused(reason)
	}
	if k.apart == nil || len(k.apart) >= mostCompany {
		k.apart = map[string]time.Time{}
	}
	k.apart[owner] = time.Now().Add(flightPause)
}

// filtersLocked returns the filters of those that take part, and when the last one gives up; 0: never.
func (f *flight) filtersLocked() (filters []filter, until time.Time) {
	endless := false
	for _, p := range f.parts {
		if !slices.Contains(filters, p.filter) {
			filters = append(filters, p.filter)
		}
		if endless = endless || p.until.IsZero(); p.until.After(until) {
			until = p.until
		}
	}
	if endless {
		until = time.Time{}
	}
	return filters, until
}

// run waits for the flight before, but not longer than wait, and sends the request.
func (k *flights) run(ctx context.Context, f *flight, wait time.Duration, a access, kind string, text func(filters []filter) string) {
	select {
	case <-f.before:
	case <-time.After(wait):
	case <-f.gone:
	case <-k.ctx.Done():
	}
	k.mu.Lock()
	if f.begun {
		k.mu.Unlock()
		return
	}
	if f.begun = true; len(f.parts) == 1 {
		f.alone = true
		close(f.ready)
		k.mu.Unlock()
		return
	}
	if k.company == nil || len(k.company) >= mostCompany {
		k.company = map[string]time.Time{}
	}
	k.company[f.cells] = time.Now()
	filters, until := f.filtersLocked()
	f.mixed = len(filters) > 1
	if until.IsZero() {
		ctx, f.cancel = context.WithCancel(ctx)
	} else {
		ctx, f.cancel = context.WithDeadline(ctx, until)
	}
	k.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(k.ctx, func() { cancel(context.Cause(k.ctx)) })()
	rows, err := rowsByStream{of: map[string]int{}}, errors.New("a request of several could not be sent")
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		f.cancel()
		if f.streams, f.err = rows.all, err; len(f.parts) == 0 {
			k.bytes -= f.bytes
			f.bytes = 0
		}
		k.endLocked(f)
		close(f.ready)
	}()
	each := func(row []field) error {
		size := rows.add(row)
		k.mu.Lock()
		defer k.mu.Unlock()
		f.bytes += size
		k.bytes += size
		if f.bytes > k.most {
			k.setApartLocked(f.owner, pausedLarge)
			return errTooManyRows
		}
		if k.bytes > k.all { // which is not the fault of this one
			return errTooManyRows
		}
		return nil
	}
	err = model.Caught(func() error { return k.client.query(ctx, a, kind, text(filters), each) })
}

// stop ends the requests that several have in common, and waits for that.
func (k *flights) stop() {
	k.mu.Lock()
	k.closed = true // no further one begins
	k.mu.Unlock()
	k.close(fmt.Errorf("%w: VictoriaLogs at %s is asked no more, since the process ends", model.ErrTransient, k.client.url))
	k.runs.Wait()
}

// rowsByStream gathers rows. The next row often is of the same stream.
type rowsByStream struct {
	all []flightStream
	of  map[string]int
}

// add adds a copy of a row, and returns what it takes.
func (g *rowsByStream) add(row []field) (size int) {
	own, size := cloned(row)
	spelling := valueOf(own, "_stream")
	at, known := g.of[string(spelling)]
	if !known {
		at = len(g.all)
		g.all, g.of[string(spelling)] = append(g.all, flightStream{spelling: spelling}), at
		size += int(unsafe.Sizeof(flightStream{})) + len(spelling)
	}
	g.all[at].rows = append(g.all[at].rows, own)
	return size
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
