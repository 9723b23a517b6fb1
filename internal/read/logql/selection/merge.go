package selection

import (
	"bytes"
	"context"
	"hash/maphash"

	"github.com/shaledb/shale/internal/heap"
)

// rowRef is a row of one of the runs of a piece.
type rowRef struct {
	chunk *chunk
	row   int32
}

// merging is the state of a merge of the chunks of a piece.
type merging struct {
	heads []int                 // of each chunk, the index of its next row among those that passed
	heap  heap.Heap[int64, int] // of the chunks that have a next row, by the rank of its time, then by arrival
	tied  []int
	group []rowRef // rows of one time
}

// merge scans a piece of several chunks: of rows that are equal in time, line and metadata the one that came
// first stays. Lines are filtered before they are compared, since equal ones pass alike.
func (s *scanner) merge(ctx context.Context, chunks []chunk) error {
	s.merging.heap.Reset()
	s.merging.heads = s.merging.heads[:0]
	for i := range chunks {
		r := &chunks[i]
		if err := s.matchAll(ctx, r); err != nil {
			return err
		}
		first := 0
		if s.x.Direction == Backward {
			first = len(r.passed) - 1
		}
		s.merging.heads = append(s.merging.heads, first)
		s.stand(chunks, i)
	}
	for rows := 0; s.merging.heap.Len() > 0; rows++ {
		if rows%batchRows == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		next := s.merging.heap.Pop()
		r := &chunks[next.Index]
		row := r.passed[s.merging.heads[next.Index]]
		if at := r.rows.Times[row]; !s.x.wants(at) {
			return nil
		}
		if s.merging.heap.Len() > 0 && s.merging.heap.First().Key == next.Key {
			if err := s.tie(ctx, chunks, next); err != nil {
				return err
			}
			continue
		}
		if err := s.offer(ctx, r, int(row), row); err != nil {
			return err
		}
		s.merging.heads[next.Index] += s.x.Direction.Step()
		s.stand(chunks, next.Index)
	}
	return nil
}

// stand puts a run into the heap, unless it is at its end.
func (s *scanner) stand(chunks []chunk, i int) {
	r, h := &chunks[i], s.merging.heads[i]
	if h < 0 || h >= len(r.passed) {
		return
	}
	s.merging.heap.Push(heap.Item[int64, int]{Key: s.x.Direction.Rank(r.rows.Times[r.passed[h]]), Tie: i, Index: i})
}

// tie offers the rows of one time that several runs have, of which the first has left the heap.
func (s *scanner) tie(ctx context.Context, chunks []chunk, first heap.Item[int64, int]) error {
	d := s.x.Direction
	at := d.Rank(first.Key) // a rank's rank is the time
	s.merging.tied = append(s.merging.tied[:0], first.Index)
	for s.merging.heap.Len() > 0 && s.merging.heap.First().Key == first.Key {
		s.merging.tied = append(s.merging.tied, s.merging.heap.Pop().Index)
	}
	s.merging.group = s.merging.group[:0]
	for _, i := range s.merging.tied {
		r, begin := &chunks[i], s.merging.heads[i]
		h := begin
		for h >= 0 && h < len(r.passed) && r.rows.Times[r.passed[h]] == at {
			h += d.Step()
		}
		from, to := begin, h // those that were passed
		if d == Backward {
			from, to = h+1, begin+1
		}
		for _, row := range r.passed[from:to] {
			s.merging.group = append(s.merging.group, rowRef{r, row})
		}
		s.merging.heads[i] = h
		s.stand(chunks, i)
	}
	before := len(s.merging.group)
	if err := s.unique(ctx); err != nil {
		return err
	}
	s.tally.duplicates += int64(before - len(s.merging.group))
	for n := range s.merging.group {
		if d == Backward {
			n = len(s.merging.group) - 1 - n
		}
		g := s.merging.group[n]
		if err := s.offer(ctx, g.chunk, int(g.row), int32(n)); err != nil {
			return err
		}
	}
	return nil
}

// comparedRows is how many rows of one time are compared each with each; of more, sums are.
const comparedRows = 12

// unique drops of the equal rows of the group all but the first.
func (s *scanner) unique(ctx context.Context) error {
	if len(s.merging.group) > comparedRows {
		return s.uniqueSums(ctx)
	}
	kept := s.merging.group[:0]
	for _, g := range s.merging.group {
		same := false
		for _, k := range kept {
			if k.chunk != g.chunk && bytes.Equal(k.chunk.rows.Line(int(k.row)), g.chunk.rows.Line(int(g.row))) {
				a, err := s.metadataOf(ctx, k.chunk, int(k.row))
				if err != nil {
					return err
				}
				b, err := s.metadataOf(ctx, g.chunk, int(g.row))
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
	s.merging.group = kept
	return nil
}

// rowSum stands for line and metadata: 128 bits under random seeds.
type rowSum struct{ a, b uint64 }

const rowSumBytes = 64 // about what one takes in a table

func (s *scanner) uniqueSums(ctx context.Context) error {
	charge := int64(len(s.merging.group)) * rowSumBytes
	if err := s.x.Quota.TakeBytes(charge); err != nil {
		return err
	}
	defer func() { _ = s.x.Quota.TakeBytes(-charge) }() // giving back does not fail
	seeds := [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	seen := make(map[rowSum]bool, len(s.merging.group))
	kept := s.merging.group[:0]
	for i, g := range s.merging.group {
		if i%batchRows == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		meta, err := s.metadataOf(ctx, g.chunk, int(g.row))
		if err != nil {
			return err
		}
		line := g.chunk.rows.Line(int(g.row))
		sum := rowSum{
			maphash.Bytes(seeds[0], line) + 31*maphash.Bytes(seeds[0], meta),
			maphash.Bytes(seeds[1], line) + 31*maphash.Bytes(seeds[1], meta),
		}
		if !seen[sum] {
			seen[sum] = true
			kept = append(kept, g)
		}
	}
	s.merging.group = kept
	return nil
}
