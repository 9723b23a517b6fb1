package main

import (
	"hash/maphash"
	"maps"
	"math"
	"slices"
)

// maxShown bounds the lines that are remembered, about 10 MiB of them. It is far more than comes in a few seconds.
const maxShown = 1 << 17

// shownLines remembers which lines have been shown, by their sums, so that none is shown again after a connection was lost.
// Lines of one time that look the same may be several, of different rows: they are counted.
type shownLines struct {
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

func newShownLines(most int) *shownLines {
	return &shownLines{
		seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, most: most, count: make(map[lineSum]shownLine), forgot: math.MinInt64,
	}
}

// expect begins a pass over lines of which those that were shown already come again.
func (s *shownLines) expect() {
	s.known = make(map[lineSum]int, len(s.count))
	for sum, shown := range s.count {
		s.known[sum] = shown.times
	}
}

// add reports whether a line is to be shown, and remembers it. Lines before needed are the first to be forgotten.
func (s *shownLines) add(l *logLine, needed int64) bool {
	sum := s.sum(l)
	if n := s.known[sum]; n > 0 {
		s.known[sum]--
		return false
	}
	if len(s.count) >= s.most {
		s.forget(needed)
	}
	s.count[sum] = shownLine{l.at, s.count[sum].times + 1}
	return true
}

// forget makes room: for a quarter at least, so that it is not done for each line.
func (s *shownLines) forget(needed int64) {
	maps.DeleteFunc(s.count, func(_ lineSum, shown shownLine) bool { return shown.at < needed })
	if len(s.count) < s.most-s.most/4 {
		return
	}
	times := make([]int64, 0, len(s.count))
	for _, shown := range s.count {
		times = append(times, shown.at)
	}
	slices.Sort(times)
	until := times[len(times)/2]
	maps.DeleteFunc(s.count, func(_ lineSum, shown shownLine) bool { return shown.at <= until })
	s.forgot = max(s.forgot, until)
}

func (s *shownLines) sum(l *logLine) (sum lineSum) {
	for i, seed := range s.seeds {
		h := maphash.Comparable(seed, l.at)
		h = h*0x9e3779b97f4a7c15 + maphash.String(seed, l.stream)
		sum[i] = h*0x9e3779b97f4a7c15 + maphash.Bytes(seed, l.text)
	}
	return sum
}
