package client

import (
	"hash/maphash"
	"maps"
	"math"
	"slices"
)

// maxShown bounds the lines that are remembered, about 10 MiB of them. It is far more than comes in a few
// seconds.
const maxShown = 1 << 17

// shown remembers which lines have been shown, by their sums, so that none is shown again after a connection
// was lost. Lines of one time that look the same may be several, of different rows: they are counted.
type shown struct {
	seeds [2]maphash.Seed
	most  int
	count map[lineSum]shownLine
	// forgot is the latest time of the lines that had to be forgotten.
	forgot int64
	// known are lines that will come again, each so many times; nil while nothing comes again.
	known map[lineSum]int
}

// lineSum stands for the time, the labels and the text of a line.
type lineSum [2]uint64

type shownLine struct {
	at    int64
	times int
}

func newShown(most int) *shown {
	return &shown{
		seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, most: most, count: make(map[lineSum]shownLine), forgot: math.MinInt64,
	}
}

// expect begins a pass over lines of which those that were shown already come again.
func (s *shown) expect() {
	s.known = make(map[lineSum]int, len(s.count))
	for sum, l := range s.count {
		s.known[sum] = l.times
	}
}

// add reports whether a line is to be shown, and remembers it. Lines before needed are the first to be
// forgotten.
func (s *shown) add(l *Line, needed int64) bool {
	sum := s.sum(l)
	if n := s.known[sum]; n > 0 {
		s.known[sum]--
		return false
	}
	if len(s.count) >= s.most {
		s.forget(needed)
	}
	s.count[sum] = shownLine{l.At, s.count[sum].times + 1}
	return true
}

// forget makes room: for a quarter at least, so that it is not done for each line.
func (s *shown) forget(needed int64) {
	maps.DeleteFunc(s.count, func(_ lineSum, l shownLine) bool { return l.at < needed })
	if len(s.count) < s.most-s.most/4 {
		return
	}
	times := make([]int64, 0, len(s.count))
	for _, l := range s.count {
		times = append(times, l.at)
	}
	slices.Sort(times)
	until := times[len(times)/2]
	maps.DeleteFunc(s.count, func(_ lineSum, l shownLine) bool { return l.at <= until })
	s.forgot = max(s.forgot, until)
}

func (s *shown) sum(l *Line) (sum lineSum) {
	for i, seed := range s.seeds {
		h := maphash.Comparable(seed, l.At)
		h = h*0x9e3779b97f4a7c15 + maphash.String(seed, l.Stream)
		sum[i] = h*0x9e3779b97f4a7c15 + maphash.Bytes(seed, l.Text)
	}
	return sum
}
