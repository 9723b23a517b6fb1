package client

import (
	"hash/maphash"
	"maps"
	"math"
	"slices"
)

// MaxShown bounds the lines that are remembered, about 10 MiB of them. It is far more than comes in a few
// seconds.
const MaxShown = 1 << 17

// Shown remembers which lines have been shown, by their sums, so that none is shown again after a connection
// was lost. Lines of one time that look the same may be several, of different rows: they are counted.
type Shown struct {
	seeds [2]maphash.Seed
	most  int
	count map[lineSum]shownLine
	// Forgot is the latest time of the lines that had to be forgotten.
	Forgot int64
	// known are lines that will come again, each so many times; nil while nothing comes again.
	known map[lineSum]int
}

// lineSum stands for the time, the labels and the text of a line.
type lineSum [2]uint64

type shownLine struct {
	at    int64
	times int
}

func NewShown(most int) *Shown {
	return &Shown{
		seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, most: most, count: make(map[lineSum]shownLine), Forgot: math.MinInt64,
	}
}

// Expect begins a pass over lines of which those that were shown already come again.
func (s *Shown) Expect() {
	s.known = make(map[lineSum]int, len(s.count))
	for sum, shown := range s.count {
		s.known[sum] = shown.times
	}
}

// Add reports whether a line is to be shown, and remembers it. Lines before needed are the first to be
// forgotten.
func (s *Shown) Add(l *Line, needed int64) bool {
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
func (s *Shown) forget(needed int64) {
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
	s.Forgot = max(s.Forgot, until)
}

func (s *Shown) sum(l *Line) (sum lineSum) {
	for i, seed := range s.seeds {
		h := maphash.Comparable(seed, l.At)
		h = h*0x9e3779b97f4a7c15 + maphash.String(seed, l.Stream)
		sum[i] = h*0x9e3779b97f4a7c15 + maphash.Bytes(seed, l.Text)
	}
	return sum
}
