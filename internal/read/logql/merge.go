package logql

import (
	"bytes"
	"context"
	"hash/maphash"
	"slices"
)

// rowRef is a row of one of the runs of a piece.
type rowRef struct {
	run *run
	row int32
}

// runItem is a run in the heap of a merge, ordered by the rank of the time of its next row.
type runItem struct {
	rank int64
	run  int
}

// Less orders runs by rank.
func (a runItem) Less(b runItem) bool { return a.rank < b.rank }

// merge scans a piece of several chunks: of rows that are equal in time, line and metadata the one that came first stays.
// Lines are filtered before they are compared, since equal ones pass alike.
func (s *scanner) merge(ctx context.Context, runs []run) error {
	s.heap.Reset()
	s.heads = s.heads[:0]
	for i := range runs {
		r := &runs[i]
		if err := s.matchAll(ctx, r); err != nil {
			return err
		}
		first := 0
		if s.x.direction == Backward {
			first = len(r.sel) - 1
		}
		s.heads = append(s.heads, first)
		s.stand(runs, i)
	}
	for rows := 0; s.heap.Len() > 0; rows++ {
		if rows%batchRows == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		next := s.heap.Pop()
		r := &runs[next.run]
		row := r.sel[s.heads[next.run]]
		if at := r.rows.Times[row]; !s.x.top.wants(at) {
			return nil
		}
		if s.heap.Len() > 0 && s.heap.First().rank == next.rank {
			if err := s.tie(ctx, runs, next); err != nil {
				return err
			}
			continue
		}
		if err := s.offer(ctx, r, int(row), row); err != nil {
			return err
		}
		s.heads[next.run] += s.x.direction.step()
		s.stand(runs, next.run)
	}
	return nil
}

// stand puts a run into the heap, unless it is at its end.
func (s *scanner) stand(runs []run, i int) {
	r, h := &runs[i], s.heads[i]
	if h < 0 || h >= len(r.sel) {
		return
	}
	s.heap.Push(runItem{s.x.direction.rank(r.rows.Times[r.sel[h]]), i})
}

// tie offers the rows of one time that several runs have, of which the first has left the heap.
func (s *scanner) tie(ctx context.Context, runs []run, first runItem) error {
	d := s.x.direction
	at := d.rank(first.rank) // a rank's rank is the time
	s.tied = append(s.tied[:0], first.run)
	for s.heap.Len() > 0 && s.heap.First().rank == first.rank {
		s.tied = append(s.tied, s.heap.Pop().run)
	}
	slices.Sort(s.tied) // by arrival
	s.group = s.group[:0]
	for _, i := range s.tied {
		r, begin := &runs[i], s.heads[i]
		h := begin
		for h >= 0 && h < len(r.sel) && r.rows.Times[r.sel[h]] == at {
			h += d.step()
		}
		from, to := begin, h // those that were passed
		if d == Backward {
			from, to = h+1, begin+1
		}
		for _, row := range r.sel[from:to] {
			s.group = append(s.group, rowRef{r, row})
		}
		s.heads[i] = h
		s.stand(runs, i)
	}
	before := len(s.group)
	if err := s.unique(ctx); err != nil {
		return err
	}
	s.duplicates += int64(before - len(s.group))
	for n := range s.group {
		if d == Backward {
			n = len(s.group) - 1 - n
		}
		g := s.group[n]
		if err := s.offer(ctx, g.run, int(g.row), int32(n)); err != nil {
			return err
		}
	}
	return nil
}

// comparedRows is how many rows of one time are compared each with each; of more, sums are.
const comparedRows = 12

// unique drops of the equal rows of the group all but the first.
func (s *scanner) unique(ctx context.Context) error {
	if len(s.group) > comparedRows {
		return s.uniqueSums(ctx)
	}
	kept := s.group[:0]
	for _, g := range s.group {
		same := false
		for _, k := range kept {
			if k.run != g.run && bytes.Equal(k.run.rows.Line(int(k.row)), g.run.rows.Line(int(g.row))) {
				a, err := s.metadataOf(ctx, k.run, int(k.row))
				if err != nil {
					return err
				}
				b, err := s.metadataOf(ctx, g.run, int(g.row))
				if err != nil {
					return err
				}
				if same = bytes.Equal(a, b); same {
					break
				}
			}
		}
		if !same {
			kept = append(kept, g)
		}
	}
	s.group = kept
	return nil
}

// rowSum stands for line and metadata: 128 bits under seeds that nobody knows.
type rowSum struct{ a, b uint64 }

const rowSumBytes = 64 // about what one takes in a table

func (s *scanner) uniqueSums(ctx context.Context) error {
	charge := int64(len(s.group)) * rowSumBytes
	if err := s.x.quota.TakeBytes(charge); err != nil {
		return err
	}
	defer func() { _ = s.x.quota.TakeBytes(-charge) }() // giving back does not fail
	seeds := [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	seen := make(map[rowSum]bool, len(s.group))
	kept := s.group[:0]
	for i, g := range s.group {
		if i%batchRows == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		meta, err := s.metadataOf(ctx, g.run, int(g.row))
		if err != nil {
			return err
		}
		line := g.run.rows.Line(int(g.row))
		sum := rowSum{
			maphash.Bytes(seeds[0], line) + 31*maphash.Bytes(seeds[0], meta),
			maphash.Bytes(seeds[1], line) + 31*maphash.Bytes(seeds[1], meta),
		}
		if !seen[sum] {
			seen[sum] = true
			kept = append(kept, g)
		}
	}
	s.group = kept
	return nil
}
