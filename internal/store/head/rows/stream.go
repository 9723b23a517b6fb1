package rows

import (
	"context"
	"sort"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part"
)

// runStream is a run as a stream for merging.
type runStream struct {
	r       *Run
	tenants []*tenantRun  // that of the current series first
	current *TenantRows   // its rows; nil: not sorted yet
	at      [families]int // next row of each family
	rows    model.SeriesRows
	text    runText
	series  part.Series
}

// Stream returns a walk over the run. It sorts the rows of a tenant when it reaches them.
func (r *Run) Stream() part.Stream {
	s := &runStream{r: r, tenants: r.list()}
	s.series.Rows = &s.rows
	return s
}

// Next gathers the rows of all families of the least key. Text is not copied until it is read.
func (s *runStream) Next(context.Context) (*part.Series, error) {
	for ; len(s.tenants) > 0; s.tenants, s.current, s.at = s.tenants[1:], nil, [families]int{} {
		if s.current == nil {
			s.current = s.tenants[0].sorted(s.r.Blobs)
		}
		t := s.current
		if !s.least(t) {
			continue
		}
		s.series.Tenant = t.name
		s.rows.Reset()
		for _, f := range model.PointFamilies() {
			rows, at := &t.Families[f], s.at[f]
			if at < len(rows.Keys) && rows.Keys[at] == s.series.Key {
				s.at[f] = rows.end(at)
				rows.AppendTo(s.rows.Family(f), at, s.at[f], s.r.Blobs)
			}
		}
		s.rows.Normalize()
		rows, at := &t.Families[model.Text], s.at[model.Text]
		s.series.Text = nil
		if at < len(rows.Keys) && rows.Keys[at] == s.series.Key {
			s.at[model.Text] = rows.end(at)
			s.text.rows, s.text.blobs, s.text.from, s.text.to = rows, s.r.Blobs, at, s.at[model.Text]
			s.series.Text = &s.text
		}
		return &s.series, nil
	}
	return nil, nil
}

// least finds the least remaining key of a tenant, if there is one.
func (s *runStream) least(t *TenantRows) bool {
	found := false
	for f := range t.Families {
		if keys := t.Families[f].Keys[s.at[f]:]; len(keys) > 0 && (!found || keys[0].Less(s.series.Key)) {
			s.series.Key, found = keys[0], true
		}
	}
	return found
}

// The lines that are gathered at a time. A part's page of lines is a quarter of that.
const (
	gatherBytes = 1 << 20
	gatherRows  = 1 << 14
)

// runText is the text of one series of a run: the rows [from, to).
type runText struct {
	rows     *FamilyRows
	blobs    Blobs
	from, to int

	gather Gatherer
	piece  model.TextRows
	buf    []byte
}

func (t *runText) Extent() (model.TimeRange, uint64) {
	return model.TimeRange{Min: t.rows.Times[t.from], Max: t.rows.Times[t.to-1]}, uint64(t.to - t.from)
}

func (t *runText) Run(_ context.Context, clip model.TimeRange) part.TextRun {
	times := t.rows.Times[t.from:t.to]
	from := t.from + sort.Search(len(times), func(i int) bool { return times[i] >= clip.Min })
	to := t.from + sort.Search(len(times), func(i int) bool { return times[i] > clip.Max })
	return &runTextRun{t: t, next: from, to: to}
}

// runTextRun gathers the lines piece by piece, in memory that all walks of the run share.
type runTextRun struct {
	part.TextRun // of the current piece
	t            *runText
	next, to     int
	err          error
}

func (r *runTextRun) Next() bool {
	if r.next >= r.to || r.err != nil {
		return false
	}
	t, end, size := r.t, r.next, 0
	for end < r.to && size < gatherBytes && end-r.next < gatherRows {
		size += t.rows.LineBytes(end, end+1)
		end++
	}
	if cap(t.buf) < size {
		t.buf = make([]byte, 0, size)
	}
	r.err = t.gather.Gather(&t.piece, t.rows, r.next, end, t.blobs, model.WantLines|model.WantMetadata, t.buf[:0])
	if r.err != nil {
		return false
	}
	r.next = end
	r.TextRun = part.RunOfRows(&t.piece)
	return r.TextRun.Next()
}

func (r *runTextRun) Err() error { return r.err }
