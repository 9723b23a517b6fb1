package series

import (
	"math/bits"
	"slices"
	"unsafe"

	"github.com/shaledb/shale/internal/store/part/file"
)

// rankRun is the ranks [from, to), relative to the tenant's first.
type rankRun struct{ from, to uint32 }

// rankRuns are a set of ranks: runs that ascend and do not touch. All series, and the series of one metric,
// are one run.
type rankRuns []rankRun

func (s rankRuns) count() int {
	n := 0
	for _, r := range s {
		n += int(r.to - r.from)
	}
	return n
}

// intersect returns what is in both.
func (s rankRuns) intersect(o rankRuns) rankRuns {
	var out rankRuns
	for i, j := 0, 0; i < len(s) && j < len(o); {
		from, to := max(s[i].from, o[j].from), min(s[i].to, o[j].to)
		if from < to {
			out = append(out, rankRun{from, to})
		}
		if s[i].to < o[j].to {
			i++
			// A short set against a long one: leap.
			continue
		}
		j++
		if j < len(o) && i < len(s) && o[j].to <= s[i].from {
			j += leap(o[j:], s[i].from)
		}
	}
	return out
}

// leap returns the index of the first run that ends after rank.
func leap(s rankRuns, rank uint32) int {
	step := 1
	for step < len(s) && s[step].to <= rank {
		step *= 2
	}
	lo, hi := step/2, min(step, len(s))
	i, _ := slices.BinarySearchFunc(s[lo:hi], rank, func(r rankRun, rank uint32) int {
		if r.to <= rank {
			return -1
		}
		return 1
	})
	return lo + i
}

// subtract returns what is in s but not in o.
func (s rankRuns) subtract(o rankRuns) rankRuns {
	if len(o) == 0 {
		return s
	}
	var out rankRuns
	j := 0
	for _, r := range s {
		for j < len(o) && o[j].to <= r.from {
			j++
		}
		for k := j; k < len(o) && o[k].from < r.to; k++ {
			if o[k].from > r.from {
				out = append(out, rankRun{r.from, o[k].from})
			}
			r.from = min(max(r.from, o[k].to), r.to)
		}
		if r.from < r.to {
			out = append(out, r)
		}
	}
	return out
}

// ranks spells the set out.
func (s rankRuns) ranks(rank0 uint32) file.Ranks {
	n := s.count()
	if n == 0 {
		return nil
	}
	out := make(file.Ranks, 0, n)
	for _, r := range s {
		for k := r.from; k < r.to; k++ {
			out = append(out, rank0+k)
		}
	}
	return out
}

// Selection are ranks that come one after the other, ascending. It holds runs of them: two hundred million
// series that have a label in common take no more memory than one.
type Selection struct {
	rank0 uint32
	runs  rankRuns
}

// Bytes is the memory of what is left.
func (s *Selection) Bytes() int64 { return int64(len(s.runs)) * int64(unsafe.Sizeof(rankRun{})) }

// Len is the number of ranks that are left.
func (s *Selection) Len() int { return s.runs.count() }

// Next returns the next rank, and false after the last one.
func (s *Selection) Next() (rank uint32, ok bool) {
	if len(s.runs) == 0 {
		return 0, false
	}
	first := &s.runs[0]
	rank = s.rank0 + first.from
	if first.from++; first.from == first.to {
		s.runs = s.runs[1:]
	}
	return rank, true
}

// rankUnion adds up lists. As long as they come in order it keeps runs; otherwise a bit per series of the
// tenant.
type rankUnion struct {
	series uint32
	memory *scratch
	runs   rankRuns
	set    []uint64
	err    error // of a charge; further lists are dropped
}

// runBytes is charged for a run: for itself, and for one in what an intersection or a difference makes of it.
const runBytes = 16

// append appends a run.
func (u *rankUnion) append(r rankRun) {
	if n := cap(u.runs); len(u.runs) == n {
		more := max(8, n)
		if u.err = u.memory.take(runBytes * int64(more)); u.err != nil {
			return
		}
		u.runs = append(make(rankRuns, 0, n+more), u.runs...)
	}
	u.runs = append(u.runs, r)
}

func (u *rankUnion) add(from, to uint32) {
	if u.err != nil {
		return
	}
	if u.set == nil {
		n := len(u.runs)
		switch {
		case n == 0 || u.runs[n-1].to < from:
			u.append(rankRun{from, to})
			return
		case u.runs[n-1].to == from:
			u.runs[n-1].to = to
			return
		}
		words := (uint64(u.series) + 63) / 64
		if u.err = u.memory.take(8 * int64(words)); u.err != nil {
			return
		}
		u.set = make([]uint64, words)
		for _, r := range u.runs {
			setBits(u.set, r.from, r.to)
		}
	}
	setBits(u.set, from, to)
}

// result returns the union, or the error of a charge.
func (u *rankUnion) result() (rankRuns, error) {
	if u.set == nil || u.err != nil {
		return u.runs, u.err
	}
	u.runs = u.runs[:0]
	for at := nextBit(u.set, 0, false); at < u.series && u.err == nil; {
		end := min(nextBit(u.set, at, true), u.series)
		u.append(rankRun{at, end})
		at = nextBit(u.set, end, false)
	}
	return u.runs, u.err
}

func setBits(set []uint64, from, to uint32) {
	for from < to {
		word, bit := from/64, from%64
		n := min(64-bit, to-from)
		set[word] |= ^uint64(0) >> (64 - n) << bit
		from += n
	}
}

// nextBit returns the first position from at on whose bit is set, or clear; beyond the end if there is none.
func nextBit(set []uint64, at uint32, clear bool) uint32 {
	for int(at/64) < len(set) {
		word := set[at/64]
		if clear {
			word = ^word
		}
		if word >>= at % 64; word != 0 {
			return at + uint32(bits.TrailingZeros64(word))
		}
		at = at/64*64 + 64
	}
	return at
}

// rankSet answers whether an interval has a rank of a set. A set of few intervals, such as the series of one
// metric, is searched. Others get a bit per series of the tenant, which would cost more than the search: see
// BenchmarkSelect of package part.
type rankSet struct {
	few  rankRuns
	bits []uint64
}

// fewRuns is the most intervals that are searched. A label may have a million values, each of which is one
// search.
const fewRuns = 16

func newRankSet(series uint32, runs rankRuns) rankSet {
	if len(runs) <= fewRuns {
		return rankSet{few: runs}
	}
	s := rankSet{bits: make([]uint64, (uint64(series)+63)/64)}
	for _, r := range runs {
		setBits(s.bits, r.from, r.to)
	}
	return s
}

func (s rankSet) meets(from, to uint32) bool {
	if s.bits == nil {
		for _, r := range s.few {
			if r.to > from {
				return r.from < to
			}
		}
		return false
	}
	return nextBit(s.bits, from, false) < to
}
