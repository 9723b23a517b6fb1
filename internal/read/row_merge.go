package read

import (
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// rowMerge merges the rows of several cursors into ascending order. The cursors appended them to the same
// rows, one cursor after the other, in ascending order of source. Rows of cursors that already follow each
// other in time, the usual case, cost one comparison per cursor and no copy. Blobs move with their rows, so
// that dst refers to all bytes that it holds.
type rowMerge struct {
	family  model.Family
	base    int // rows that dst held before
	blobs   int // bytes of the blobs that dst held before
	ends    []int
	ordered bool

	scratch model.Rows
	runs    []segment
}

// segment is the scratch rows [next, end) of one cursor; the higher rank wins.
type segment struct{ next, end, rank int }

func (m *rowMerge) begin(dst *model.Rows) {
	m.base, m.blobs, m.ends, m.ordered = dst.Len(), len(dst.Bytes), m.ends[:0], true
}

// endCursor marks the end of a cursor's rows.
func (m *rowMerge) endCursor(dst *model.Rows) {
	begin, end := m.base, dst.Len()
	if n := len(m.ends); n > 0 {
		begin = m.ends[n-1]
	}
	if end == begin {
		return
	}
	if begin > m.base && dst.Times[begin] <= dst.Times[begin-1] {
		m.ordered = false
	}
	m.ends = append(m.ends, end)
}

func (m *rowMerge) appended(dst *model.Rows) int { return dst.Len() - m.base }

// finish puts the rows in order.
func (m *rowMerge) finish(dst *model.Rows) {
	if m.ordered {
		return
	}
	m.scratch.Reset()
	m.scratch.AppendRows(dst, m.base, dst.Len())
	dst.Truncate(m.base)
	dst.Bytes = dst.Bytes[:m.blobs]
	if m.family != model.Samples {
		// The rows are in ascending order of their sources, which is the order of arrival.
		m.scratch.NormalizeAs(m.family)
		dst.AppendRows(&m.scratch, 0, m.scratch.Len())
		return
	}
	m.mergeSamples(dst)
}

// mergeSamples merges the segments of the scratch rows.
func (m *rowMerge) mergeSamples(dst *model.Rows) {
	m.runs = m.runs[:0]
	begin := 0
	for i, end := range m.ends {
		m.runs = append(m.runs, segment{begin, end - m.base, i})
		begin = end - m.base
	}
	// By first time, so that segments without an overlap are copied whole.
	times := m.scratch.Times
	slices.SortFunc(m.runs, func(a, b segment) int {
		switch {
		case times[a.next] < times[b.next]:
			return -1
		case times[a.next] > times[b.next]:
			return 1
		}
		return a.rank - b.rank
	})
	for first := 0; first < len(m.runs); {
		// In a cluster, each segment begins before the ones before it have ended.
		last, until := first+1, times[m.runs[first].end-1]
		for last < len(m.runs) && times[m.runs[last].next] <= until {
			until = max(until, times[m.runs[last].end-1])
			last++
		}
		m.mergeCluster(dst, m.runs[first:last])
		first = last
	}
}

// mergeCluster merges segments that overlap. Few overlap at a time, so it finds the least by a linear
// search. The rows of the least that precede all others are copied at once.
func (m *rowMerge) mergeCluster(dst *model.Rows, segments []segment) {
	s := &m.scratch
	for len(segments) > 1 {
		least := 0
		for i := 1; i < len(segments); i++ {
			if s.Times[segments[i].next] < s.Times[segments[least].next] {
				least = i
			}
		}
		t := s.Times[segments[least].next]
		bound, tied := int64(0), false
		for i := range segments {
			if i == least {
				continue
			}
			switch other := s.Times[segments[i].next]; {
			case other == t:
				tied = true
			case i == 0 || least == 0 && i == 1 || other < bound:
				bound = other
			}
		}
		if tied {
			segments = m.appendWinner(dst, segments, t)
			continue
		}
		r := &segments[least]
		n := 1
		for r.next+n < r.end && s.Times[r.next+n] < bound {
			n++
		}
		dst.AppendRows(s, r.next, r.next+n)
		if r.next += n; r.next == r.end {
			segments = slices.Delete(segments, least, least+1)
		}
	}
	if len(segments) == 1 {
		dst.AppendRows(s, segments[0].next, segments[0].end)
	}
}

// appendWinner appends the row that wins at time t, and skips the others at t. The highest rank wins, but a
// stale marker loses to any value.
func (m *rowMerge) appendWinner(dst *model.Rows, segments []segment, t int64) []segment {
	s := &m.scratch
	win, winRank := -1, -1
	out := segments[:0]
	for _, r := range segments {
		if s.Times[r.next] == t {
			switch {
			case win < 0,
				s.IsStale(r.next) == s.IsStale(win) && r.rank > winRank,
				!s.IsStale(r.next) && s.IsStale(win):
				win, winRank = r.next, r.rank
			}
			r.next++
		}
		if r.next < r.end {
			out = append(out, r)
		}
	}
	dst.AppendRows(s, win, win+1)
	return out
}
