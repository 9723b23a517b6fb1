package selection

import (
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
)

// misses decide when lines are read split. A page of which one line must be put together has been opened for
// nothing. After such a page some are not tried, more after each.
type misses struct {
	pause int // pages that are not tried after the next miss
	left  int // of those after the last miss
}

// maxPause bounds the pages that are not tried after a miss.
const maxPause = 64

// tries reports whether the next page is tried.
func (m *misses) tries() bool {
	if m.left == 0 {
		return true
	}
	m.left--
	return false
}

func (m *misses) miss() {
	m.pause = min(2*m.pause+1, maxPause)
	m.left = m.pause
}

// readLines reads a chunk. Its lines may stay split if nothing needs their text: no filter, and no other
// chunk to be merged with.
func (s *scanner) readLines(ctx context.Context, r *chunk, want model.TextWant, alone bool) error {
	if s.worker == nil || s.whole || s.filter != nil || !alone || !s.worker.Splits() || !s.misses.tries() {
		return s.read(ctx, r, want)
	}
	var err error
	for again := s.begin(); again; again = err != nil && s.again(ctx, err) {
		r.rows.Reset()
		r.split, r.firstSplit, err = read.ReadTextSplit(ctx, r.TextChunk, &r.rows)
	}
	if err != nil {
		return err
	}
	r.has, r.first = want, 0
	if r.split != nil {
		s.worker.SetPage(r.split)
	}
	return nil
}

// offerSplit hands the current line, which is split, to the worker. If that needs the text, it reads all
// lines of the chunk and returns false.
func (s *scanner) offerSplit(ctx context.Context, r *chunk, row int) (known bool, err error) {
	ok, known, err := s.worker.SplitLine(&s.line, r.firstSplit+row, int(r.rows.Ends[row]-r.begin(row)))
	if known || err != nil {
		s.wait.yields = false
		if ok {
			s.tally.kept++
		}
		return true, err
	}
	s.misses.miss()
	r.split = nil
	has := r.has
	err = s.read(ctx, r, model.WantLines)
	r.has |= has
	return false, err
}
