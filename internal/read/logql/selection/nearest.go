package selection

import (
	"context"

	"github.com/shaledb/shale/internal/heap"
	"github.com/shaledb/shale/internal/model"
)

// nearest finds how near to the wanted end the limit-th of many times lies: a heap of at most that many, the
// farthest first.
type nearest struct {
	direction Direction
	limit     int
	farthest  heap.Heap[int64, int64] // of the complements of ranks, without ties
}

func (n *nearest) reset(d Direction, limit int) {
	n.direction, n.limit = d, limit
	n.farthest.Reset()
}

// add adds times, which are ascending.
func (n *nearest) add(times []int64) {
	for i := range times {
		at := times[i]
		if n.direction == Backward {
			at = times[len(times)-1-i]
		}
		item := heap.Item[int64, int64]{Key: ^n.direction.Rank(at)}
		switch {
		case n.farthest.Len() < n.limit:
			n.farthest.Push(item)
		case item.Key > n.farthest.First().Key:
			n.farthest.ReplaceFirst(item)
		default:
			return // all that follow are as far
		}
	}
}

// bound returns the time beyond which none of the nearest lies.
func (n *nearest) bound() int64 {
	if n.farthest.Len() < n.limit {
		return n.direction.Farthest()
	}
	return n.direction.Rank(^n.farthest.First().Key) // a rank's rank is the time
}

// narrowed returns the pieces of a task that have a line among the first ones, for a query that drops no
// line: their times say so, and lines are read of those pieces only. Rows that chunks have in common are
// there once in one chunk at least, so that of each piece the times of one chunk are counted, and the
// lines that they leave out do not count.
func (s *scanner) narrowed(ctx context.Context, u *task) ([]int32, model.TimeRange, error) {
	bounds := s.x.Direction.Cut(u.TimeRange, s.x.sink.Bound())
	s.narrow.nearest.reset(s.x.Direction, s.x.sink.Limit())
	s.narrow.bests = s.narrow.bests[:0]
	for i, at := range u.pieces {
		if i%batchRows == 0 {
			if err := ctx.Err(); err != nil {
				return nil, bounds, err
			}
		}
		p := &s.l.pieces[at]
		best, err := s.times(ctx, p, within(p.TimeRange, bounds))
		if err != nil {
			return nil, bounds, err
		}
		s.narrow.bests = append(s.narrow.bests, best)
	}
	bounds = s.x.Direction.Cut(bounds, s.narrow.nearest.bound())
	left := s.narrow.left[:0]
	for i, at := range u.pieces {
		if s.narrow.bests[i].some && bounds.Contains(s.narrow.bests[i].time) {
			left = append(left, at)
		}
	}
	s.narrow.left = left
	return left, bounds, nil
}

// narrowing is the state of a scanner that counts times before it reads lines.
type narrowing struct {
	nearest    nearest
	bests      []bestTime
	left       []int32
	chunkTimes []int64
}

// bestTime is the time of a piece's first row, if it has some.
type bestTime struct {
	time int64
	some bool
}

// times adds the times of a piece within bounds.
func (s *scanner) times(ctx context.Context, p *piece, bounds model.TimeRange) (best bestTime, err error) {
	most := -1
	for i := p.from; i < p.to; i++ {
		c := &s.l.chunks[i]
		if !c.Overlaps(bounds) {
			continue
		}
		r := s.newChunk(0)
		r.TextChunk = c
		at := s.l.pageOf[i]
		if at != s.page {
			s.pages.use(at)
		}
		if err = s.read(ctx, r, 0); err == nil {
			r.clip(bounds)
		}
		if at != s.page {
			s.pages.done(at)
		}
		if err != nil {
			return best, err
		}
		if r.lo == r.hi {
			continue
		}
		first := r.rows.Times[r.lo]
		if s.x.Direction == Backward {
			first = r.rows.Times[r.hi-1]
		}
		if !best.some || s.x.Direction.CompareTimes(first, best.time) < 0 {
			best = bestTime{first, true}
		}
		if n := r.hi - r.lo; n > most {
			most = n
			s.narrow.chunkTimes = append(s.narrow.chunkTimes[:0], r.rows.Times[r.lo:r.hi]...)
		}
	}
	if most > 0 {
		s.narrow.nearest.add(s.narrow.chunkTimes)
	}
	return best, nil
}
