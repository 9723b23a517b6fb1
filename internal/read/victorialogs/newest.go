package victorialogs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/shaledb/shale/internal/model"
)

const (
	// The newest lines are counted in what has had enough of them before, half as much again, or in the last
	// newestFirst of a range, in newestBuckets buckets, and then in what has enough if lines go on like that:
	// half as much again, and at most newestGrowth times as much.
	// A bucket with many lines beyond those that are wanted is counted again, in the same way from its end on:
	// with more than there are wanted in all, but at least leastSpare and at most mostSpare.
	newestFirst   = int64(time.Minute)
	newestBuckets = 16
	newestGrowth  = 64
	newestExtra   = 1.5
	leastSpare    = 500
	mostSpare     = 2000
)

// newest is the directory of the end of a range that has as many lines as a request wants.
type newest struct {
	*directory
	from  int64
	spare int64 // how many more lines there may be
	used  bool  // a cursor has the directory
}

// Newest counts lines from the end of a range on, until there are n. VictoriaLogs can also be asked for the
// newest n lines, but it reads some several times then, and some versions have left out a few. Lines that
// lack what the filter of the request asks for are not counted.
func (s *Source) Newest(ctx context.Context, req *model.Request, n int) (model.Ahead, int64, error) {
	a, ok := s.settings.accessOf(req.Tenant)
	if !s.asksNewest || !ok || req.Signal != model.Logs || req.Cells != nil || req.Horizon.MayHide(req.Range.Min) || n <= 0 || n > pageRows {
		return nil, 0, nil
	}
	f, _ := translate(req, s.derives)
	if req.TextFilter != nil && f.lines == "" {
		return nil, 0, nil // most of the newest lines may not be wanted
	}
	x := &newest{directory: &directory{source: s, account: a, req: req, filter: f, streams: newStreamSet(s, req)}, spare: min(max(int64(n), leastSpare), mostSpare)}
	if err := x.find(ctx, int64(n)); err != nil {
		x.Release()
		if err == errGone || model.NeedsMoreMemory(err) || req.Quota.Refused(err) { // shorter slices need less
			err = nil
		}
		return nil, 0, err
	}
	return x, x.from, nil
}

// errGone says that lines have gone while they were counted.
var errGone = errors.New("fewer lines than before")

// find finds the time from which on there are n lines, or the begin of the range, and keeps the cells since
// then.
func (x *newest) find(ctx context.Context, n int64) error {
	name, width := fmt.Sprintf("%s %q", x.req.Tenant, x.filter), newestFirst
	if rate := x.source.rates.Get(name); rate > 0 {
		width = int64(max(float64(leastBucket), min(newestExtra*float64(n)/rate, 1<<62)))
	}
	found, err := x.findIn(ctx, x.req.Range, n, width)
	if err == nil {
		x.source.rates.Put(name, max(float64(found), 1)/(float64(x.req.Range.Max)-float64(x.from)+1))
	}
	return err
}

// findIn does that in a range, of which it looks at so much of the end first. It returns how many lines the
// cells have.
func (x *newest) findIn(ctx context.Context, left model.TimeRange, n, width int64) (found int64, err error) {
	for {
		r := left
		if x.from = r.Min; uint64(r.Max)-uint64(r.Min) > uint64(width) {
			r.Min = r.Max - width
			x.from = r.Min
		}
		rows, err := x.count(ctx, r, n)
		if found += rows; err != nil || rows >= n || r.Min == left.Min {
			return found, err
		}
		growth := float64(newestGrowth) // where nothing is found, a wide range is likely to have little
		if rows > 0 {
			growth = max(1, min(newestGrowth, newestExtra*float64(n-rows)/float64(rows)))
		}
		n, left.Max = n-rows, r.Min-1
		width = int64(min(float64(width)*growth, 1<<62))
	}
}

// count adds the cells of a range, from its end on, until there are n lines, and returns how many there are.
// If there are enough, from is set to the first time in the last bucket.
func (x *newest) count(ctx context.Context, r model.TimeRange, n int64) (rows int64, err error) {
	b := buckets{step: rounded(max((uint64(r.Max)-uint64(r.Min))/newestBuckets+1, uint64(leastBucket)))}
	first := len(x.cells)
	if err := x.askServer(ctx, r, b, nil); err != nil {
		return 0, err
	}
	added := x.cells[first:]
	slices.SortFunc(added, func(p, q cell) int { return cmp.Or(cmp.Compare(q.bucket, p.bucket), p.Key.Compare(q.Key)) })
	for i := 0; i < len(added); {
		bucket, before, from, within := added[i].bucket, rows, i, added[i].TimeRange
		for ; i < len(added) && added[i].bucket == bucket; i++ {
			rows += added[i].rows
			within = model.TimeRange{Min: min(within.Min, added[i].Min), Max: max(within.Max, added[i].Max)}
		}
		if rows < n {
			continue
		}
		if width := within.Max - within.Min; rows-n > x.spare && width >= int64(leastBucket) {
			x.drop(first + from)
			width = max(int64(newestExtra*float64(width)*float64(n-before)/float64(rows-before)), int64(leastBucket))
			rest, err := x.findIn(ctx, within, n-before, width)
			if err == nil && rest < n-before { // the cells of older buckets are dropped
				err = errGone
			}
			return before + rest, err
		}
		x.from = within.Min
		x.drop(first + i)
		return rows, nil
	}
	return rows, nil
}

// drop gives up all cells but the first ones.
func (x *newest) drop(kept int) {
	size := int64(len(x.cells)-kept) * cellBytes
	_ = x.req.Quota.TakeBytes(-size) // giving back does not fail
	x.cells, x.taken = x.cells[:kept], x.taken-size
}

// newestOf returns the directory of a request, if that was found by Newest.
func (s *Source) newestOf(req *model.Request) *directory {
	x, ok := req.Ahead.(*newest)
	if !ok || x.source != s || x.used || req.Range.Max != x.req.Range.Max {
		return nil
	}
	// Retention may hide more by now: from a time on, since chunks may begin before a range, but not of some
	// streams only.
	if req.Range.Min < x.from || req.Horizon.MayHide(req.Range.Min) {
		return nil
	}
	x.used = true
	x.req, x.streams.req = req, req
	return x.directory
}

// Release gives up the directory, unless a cursor has it.
func (x *newest) Release() {
	if !x.used {
		x.used = true
		x.release()
	}
}
