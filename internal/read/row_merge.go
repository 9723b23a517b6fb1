package read

import (
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// rowMerge makes one ascending run of the runs of several cursors, which were appended to the same rows one
// after the other, by ascending order. Runs that already follow each other in time, the usual case, cost one
// comparison each and no copy. Blobs are moved with their rows, so that dst refers to all that it holds.
type rowMerge struct {
	family  model.Family
	base    int // rows that were in dst before
	blobs   int // bytes of their blobs
	ends    []int
	ordered bool

	scratch model.Rows
	runs    []run
}

// run is a piece [at, end) of the scratch rows; a later one has the higher order.
type run struct{ at, end, rank int }

func (m *rowMerge) begin(dst *model.Rows) {
	m.base, m.blobs, m.ends, m.ordered = dst.Len(), len(dst.Bytes), m.ends[:0], true
}

// endRun closes the rows of one cursor.
func (m *rowMerge) endRun(dst *model.Rows) {
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

// finish brings the rows into order.
func (m *rowMerge) finish(dst *model.Rows) {
	if m.ordered {
		return
	}
	m.scratch.Reset()
	m.scratch.AppendRows(dst, m.base, dst.Len())
	dst.Truncate(m.base)
	dst.Bytes = dst.Bytes[:m.blobs]
	if m.family != model.Samples {
		// Runs came by ascending order, which is that of arrival.
		m.scratch.NormalizeAs(m.family)
		dst.AppendRows(&m.scratch, 0, m.scratch.Len())
		return
	}
	m.mergeSamples(dst)
}

// mergeSamples merges the runs of the scratch rows.
func (m *rowMerge) mergeSamples(dst *model.Rows) {
	m.runs = m.runs[:0]
	at := 0
	for i, end := range m.ends {
		m.runs = append(m.runs, run{at, end - m.base, i})
		at = end - m.base
	}
	// Runs by first time, so that those which do not overlap anything are copied whole.
	times := m.scratch.Times
	slices.SortFunc(m.runs, func(a, b run) int {
		switch {
		case times[a.at] < times[b.at]:
			return -1
		case times[a.at] > times[b.at]:
			return 1
		}
		return a.rank - b.rank
	})
	for first := 0; first < len(m.runs); {
		// A cluster is a stretch of runs of which each begins before the ones before it have ended.
		last, until := first+1, times[m.runs[first].end-1]
		for last < len(m.runs) && times[m.runs[last].at] <= until {
			until = max(until, times[m.runs[last].end-1])
			last++
		}
		m.mergeCluster(dst, m.runs[first:last])
		first = last
	}
}

// mergeCluster merges runs that overlap. Few runs overlap at a time, so the least is found by looking at
// each; the stretch of it that lies before all others is copied at once.
func (m *rowMerge) mergeCluster(dst *model.Rows, runs []run) {
	s := &m.scratch
	for len(runs) > 1 {
		least := 0
		for i := 1; i < len(runs); i++ {
			if s.Times[runs[i].at] < s.Times[runs[least].at] {
				least = i
			}
		}
		t := s.Times[runs[least].at]
		bound, tied := int64(0), false
		for i := range runs {
			if i == least {
				continue
			}
			switch other := s.Times[runs[i].at]; {
			case other == t:
				tied = true
			case i == 0 || least == 0 && i == 1 || other < bound:
				bound = other
			}
		}
		if tied {
			runs = m.takeTied(dst, runs, t)
			continue
		}
		r := &runs[least]
		n := 1
		for r.at+n < r.end && s.Times[r.at+n] < bound {
			n++
		}
		dst.AppendRows(s, r.at, r.at+n)
		if r.at += n; r.at == r.end {
			runs = slices.Delete(runs, least, least+1)
		}
	}
	if len(runs) == 1 {
		dst.AppendRows(s, runs[0].at, runs[0].end)
	}
}

// takeTied appends the row that wins among those at time t: of the highest rank, but a value before a stale
// marker.
func (m *rowMerge) takeTied(dst *model.Rows, runs []run, t int64) []run {
	s := &m.scratch
	win, winRank := -1, -1
	out := runs[:0]
	for _, r := range runs {
		if s.Times[r.at] == t {
			switch {
			case win < 0,
				s.IsStale(r.at) == s.IsStale(win) && r.rank > winRank,
				!s.IsStale(r.at) && s.IsStale(win):
				win, winRank = r.at, r.rank
			}
			r.at++
		}
		if r.at < r.end {
			out = append(out, r)
		}
	}
	dst.AppendRows(s, win, win+1)
	return out
}
