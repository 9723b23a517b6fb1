package part

import (
	"context"
	"fmt"

	"github.com/shaledb/shale/internal/model"
)

// textStream gives the text of one series after the other, as merging wants it. It is the [Text] of the series at which it
// stands.
type textStream struct {
	r     *fileReader
	pages rankWalk
	// entries are the units that have rows of the series.
	entries []pageEntry
	rank    uint32
	count   uint64
	times   model.TimeRange

	// unit is the decoded unit at held; a length of 0 means that there is none.
	unit textUnit
	held Addr

	filters wholeFilters

	run textRun // the last one: one for each of a million series would be garbage
}

// newTextStream returns nil if the file has no text.
func newTextStream(r *fileReader) *textStream {
	if len(r.Index(textSection)) == 0 {
		return nil
	}
	return &textStream{r: r, pages: newStreamWalk(r, textSection)}
}

// seek moves to a series. Ranks must ascend.
func (s *textStream) seek(ctx context.Context, rank uint32) error {
	s.pages.ctx = ctx
	s.rank, s.entries, s.count, s.times = rank, s.entries[:0], 0, noTimes
	e, err := s.pages.find(rank)
	for ; err == nil && e != nil && e.rank0 <= rank; e, err = s.pages.following() {
		s.entries = append(s.entries, *e)
		if e.last() > rank {
			break
		}
	}
	if err != nil {
		return err
	}
	for i := range s.entries {
		e := &s.entries[i]
		n := e.rows
		if e.ranks > 1 {
			if err := s.open(ctx, e); err != nil {
				return err
			}
			n = uint64(s.unit.counts[rank-e.rank0])
		}
		if s.count += n; n > 0 {
			s.times.Min, s.times.Max = min(s.times.Min, e.times.Min), max(s.times.Max, e.times.Max)
		}
	}
	return nil
}

// open decodes the rows of a unit, without the lines.
func (s *textStream) open(ctx context.Context, e *pageEntry) error {
	if s.held == e.addr && e.addr.Len > 0 {
		return nil
	}
	s.held = Addr{}
	payload, err := s.r.Page(ctx, e.addr)
	if err != nil {
		return fmt.Errorf("part: text: %w", err)
	}
	if err = s.unit.open(payload); err == nil {
		err = s.unit.is(e)
	}
	if err != nil {
		return atPage(e.addr, err)
	}
	s.held = e.addr
	return nil
}

// rows makes dst a view of those rows of the i-th series of a unit that lie within clip.
func (s *textStream) rows(ctx context.Context, e *pageEntry, i int, clip model.TimeRange, dst *model.TextRows) error {
	if err := s.open(ctx, e); err != nil {
		return err
	}
	if s.unit.lines == nil && e.text.bytes > 0 {
		lines, err := s.r.Page(ctx, e.linesAddr())
		if err != nil {
			return fmt.Errorf("part: lines: %w", err)
		}
		if err := s.unit.setLines(lines); err != nil {
			return fmt.Errorf("page at %d: %w", e.linesAddr().Off, err)
		}
	}
	var all model.TextRows
	s.unit.view(i, &all)
	clipRows(dst, &all, clip)
	return nil
}

// filter returns the filter of a unit that has one. It is valid until the next call.
func (s *textStream) filter(ctx context.Context, e *pageEntry) ([]byte, error) {
	filter, err := s.filters.of(ctx, s.r.Pages(), e)
	if err != nil {
		return nil, atPage(e.addr, err)
	}
	return filter, nil
}

func (s *textStream) Extent() (model.TimeRange, uint64) { return s.times, s.count }

func (s *textStream) Run(ctx context.Context, clip model.TimeRange) TextRun {
	s.run = textRun{s: s, ctx: ctx, clip: clip}
	return &s.run
}

// textRun is a walk of a textStream. All walks share its unit.
type textRun struct {
	s     *textStream
	ctx   context.Context
	clip  model.TimeRange
	next  int
	piece TextPiece
	unit  storedText
	err   error
}

func (r *textRun) Next() bool {
	for r.err == nil && r.next < len(r.s.entries) {
		e := &r.s.entries[r.next]
		r.next++
		if !e.times.Overlaps(r.clip) {
			continue
		}
		r.piece = TextPiece{distinct: true}
		if e.ranks == 1 && r.clip.Min <= e.times.Min && e.times.Max <= r.clip.Max {
			r.unit = storedText{from: r.s, e: *e, clip: r.clip}
			r.piece.stored, r.piece.times = &r.unit, e.times
			return true
		}
		if r.err = r.s.rows(r.ctx, e, int(r.s.rank-e.rank0), r.clip, &r.piece.rows); r.err != nil {
			return false
		}
		if times := r.piece.rows.Times; len(times) > 0 {
			r.piece.times = model.TimeRange{Min: times[0], Max: times[len(times)-1]}
			return true
		}
	}
	return false
}

func (r *textRun) Piece() *TextPiece { return &r.piece }

func (r *textRun) Err() error { return r.err }
