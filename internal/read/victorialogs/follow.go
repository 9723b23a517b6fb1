package victorialogs

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/victorialogs/rfc3339"
	"github.com/shaledb/shale/internal/write/logs"
)

const (
	// followEvery is the time between two looks for new lines.
	followEvery = time.Second
	// followBack is how late a line may be and still be followed, by its own time. After a failure that is
	// counted from the last look that succeeded, but longestGap at most.
	followBack = 10 * time.Second
	longestGap = time.Hour
	// followAhead is how far ahead a clock of a sender may be.
	followAhead = 10 * time.Minute
	// mostFollowed is how many lines of the last look are remembered. Beyond it late lines are left out.
	mostFollowed = 200_000
	// followedBytes is about what a remembered line takes, and handBytes how much is handed out at a time.
	followedBytes = 48
	handBytes     = 256 << 10
	// longestWait is the longest time between two looks while the server fails.
	longestWait = 10 * time.Second
)

// Follow hands out the lines that come from now on and that a request may select, until the context ends. It
// calls ready once lines that come later will be handed out. Lines of a batch may be more than the request
// selects; fn must not keep the batch. While the server fails, Follow goes on trying, and then hands out the
// lines that came meanwhile.
//
// It looks for lines once a second. It does not use the endpoint tail of VictoriaLogs, which leaves out lines
// of a stream that are not later than the last one.
func (s *Source) Follow(ctx context.Context, req *model.Request, ready func(), fn, _ func(*model.Batch)) error {
	a, ok := s.settings.accessOf(req.Tenant)
	if !ok {
		s.metrics.denied.Inc()
		ready()
		<-ctx.Done()
		return nil
	}
	f := &followed{
		source: s, access: a, req: req, filter: s.filterOf(req), fn: fn, seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		seen: map[followedLine]int64{},
	}
	defer f.release()
	began := s.watch.Now()
	f.from = began - int64(followBack)
	if err := f.look(ctx, nil); err != nil {
		return endOf(ctx, err)
	}
	ready()
	wait := s.followEvery
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		began = s.watch.Now()
		switch err := f.look(ctx, fn); {
		case err == nil:
			f.forget(began - int64(followBack))
			wait = s.followEvery
		case ctx.Err() != nil:
			return nil
		case !errors.Is(err, model.ErrTransient):
			return err
		default:
			wait = min(2*wait, longestWait)
			f.from = max(f.from, began-int64(longestGap))
		}
	}
}

// endOf returns an error, unless the context has ended.
func endOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// followed is a request whose lines are followed. One goroutine uses it.
type followed struct {
	source *Source
	access access
	req    *model.Request
	filter filter
	fn     func(*model.Batch)

	from  int64 // the earliest time of lines that are new
	seeds [2]maphash.Seed
	seen  map[followedLine]int64 // lines since then that were handed out, and their times
	taken int64                  // from the quota
	lost  bool                   // there were too many to remember

	entries logs.Entries
	batch   model.Batch
}

// followedLine stands for a line, by 128 bits under seeds that no sender knows.
type followedLine struct{ a, b uint64 }

// look asks for the lines since from and hands out those that are new. Nil as fn: they are only remembered.
func (f *followed) look(ctx context.Context, fn func(*model.Batch)) error {
	r := model.TimeRange{Min: f.from, Max: f.source.watch.Now() + int64(followAhead)}
	f.begin()
	err := f.source.client.query(ctx, f.access, kindTail, f.filter.in(r)+" | delete _stream_id", func(row []field) error {
		if err := f.add(row, fn != nil); err != nil {
			return err
		}
		if fn != nil && len(f.batch.Text.Bytes) > handBytes {
			fn(&f.batch)
			f.begin()
		}
		return nil
	})
	// Lines that came before an error are remembered, so they must be handed out.
	if fn != nil && f.batch.Text.Len() > 0 {
		fn(&f.batch)
	}
	f.entries.Forget()
	return err
}

func (f *followed) begin() {
	f.batch = model.Batch{Tenant: f.req.Tenant, Signal: model.Logs}
	f.entries.Start(&f.source.streams.rules, &f.batch, 0, func(int64) error { return nil })
}

// add takes a row.
func (f *followed) add(row []field, hand bool) error {
	t, ok := rfc3339.Parse(valueOf(row, "_time"))
	if !ok {
		return fmt.Errorf("%w: VictoriaLogs at %s has sent a line without a time: %s", model.ErrCorrupt, f.source.client.url, rowText(row))
	}
	sum := f.sumOf(row)
	if _, old := f.seen[sum]; old {
		return nil
	}
	if err := f.remember(sum, t); err != nil || !hand {
		return err
	}
	spelling := valueOf(row, "_stream")
	st, err := f.source.streams.of(spelling)
	if err != nil || st == nil || !matches(f.req.Matchers, st.Labels) {
		return err
	}
	own, err := fieldsOf(spelling)
	if err != nil {
		return err
	}
	f.entries.Begin(st)
	m := &f.entries.Meta
	m.Reset()
	for i := range row {
		if !isSpecial(row[i].name) && !isOwn(own, &row[i]) {
			m.Add(row[i].name, row[i].value)
		}
	}
	if why := m.Lost(); why != "" {
		return fmt.Errorf("%w: a line of %s has fields that cannot be shown: %s", model.ErrLimit, st.Labels, why)
	}
	if err := f.entries.Add(t, valueOf(row, "_msg")); err != nil {
		return err
	}
	return f.entries.End()
}

// remember notes that a line was handed out.
func (f *followed) remember(sum followedLine, t int64) error {
	if len(f.seen) >= mostFollowed {
		f.lost = true
		return nil
	}
	if err := f.req.Quota.TakeBytes(followedBytes); err != nil {
		return err
	}
	f.taken += followedBytes
	f.seen[sum] = t
	return nil
}

// forget forgets the lines before a time, which is the earliest of new lines from now on.
func (f *followed) forget(before int64) {
	if f.lost {
		// The lines of this second may be there twice: those were too many to know.
		before, f.lost = f.source.watch.Now()-int64(f.source.followEvery), false
	}
	f.from = before
	for sum, t := range f.seen {
		if t < before {
			delete(f.seen, sum)
			f.taken -= followedBytes
			_ = f.req.Quota.TakeBytes(-followedBytes) // giving back does not fail
		}
	}
}

func (f *followed) release() { _ = f.req.Quota.TakeBytes(-f.taken) } // giving back does not fail

// sumOf returns what stands for a row. Its fields come in the same order each time.
func (f *followed) sumOf(row []field) followedLine {
	sum := func(seed maphash.Seed) uint64 {
		h := uint64(0)
		for i := range row {
			h = h*0x9e3779b97f4a7c15 + maphash.Bytes(seed, row[i].name)
			h = h*0x9e3779b97f4a7c15 + maphash.Bytes(seed, row[i].value)
		}
		return h
	}
	return followedLine{sum(f.seeds[0]), sum(f.seeds[1])}
}
