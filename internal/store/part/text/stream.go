package text

import (
	"context"
	"fmt"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/file"
)

// Stream walks the text of one series after the other, for a merge. It is the [Series] of its current series.
type Stream struct {
	r     *file.Reader
	pages file.Walk
	// entries are the units that have rows of the series.
	entries []file.Entry
	rank    uint32
	count   uint64
	times   model.TimeRange

	// unit is the decoded unit at held; a length of 0 means that there is none.
	unit unit
	held file.Addr

	filters wholeFilters

	run textRun // the last one: one for each of a million series would be garbage
}

// NewStream returns nil if the file has no text.
func NewStream(r *file.Reader) *Stream {
	if len(r.Index(Section)) == 0 {
		return nil
	}
	return &Stream{r: r, pages: file.NewStreamWalk(r, Section)}
}

// Seek moves to a series. Ranks must ascend.
func (s *Stream) Seek(ctx context.Context, rank uint32) error {
	s.pages.Ctx = ctx
	s.rank, s.entries, s.count, s.times = rank, s.entries[:0], 0, file.NoTimes
	e, err := s.pages.Find(rank)
	for ; err == nil && e != nil && e.Rank0 <= rank; e, err = s.pages.Following() {
		s.entries = append(s.entries, *e)
		if e.Last() > rank {
			break
		}
	}
	if err != nil {
		return err
	}
	for i := range s.entries {
		e := &s.entries[i]
		n := e.Rows
		if e.Ranks > 1 {
			if err := s.decodeUnit(ctx, e); err != nil {
				return err
			}
			n = uint64(s.unit.Counts[rank-e.Rank0])
		}
		if s.count += n; n > 0 {
			s.times.Min, s.times.Max = min(s.times.Min, e.Times.Min), max(s.times.Max, e.Times.Max)
		}
	}
	return nil
}

// decodeUnit decodes the rows of a unit, without the lines.
func (s *Stream) decodeUnit(ctx context.Context, e *file.Entry) error {
	if s.held == e.Addr && e.Addr.Len > 0 {
		return nil
	}
	s.held = file.Addr{}
	payload, err := s.r.Page(ctx, e.Addr)
	if err != nil {
		return fmt.Errorf("part: text: %w", err)
	}
	if err = s.unit.decode(payload); err == nil {
		err = s.unit.checkEntry(e)
	}
	if err != nil {
		return file.AtPage(e.Addr, err)
	}
	s.held = e.Addr
	return nil
}

// Blamer is an optional interface of [file.Pages]. While a series is merged, its lines are read from all
// inputs in turn, so the caller cannot tell which input an error or a panic is about.
type Blamer interface {
	// Blame is called if the lines of a unit cannot be read: the merge is about to fail or to panic.
	Blame()
}

// reading runs what reads lines of the file, and blames its pages if that fails or panics.
func (s *Stream) reading(read func() error) (err error) {
	done := false
	defer func() {
		if b, ok := s.r.Pages().(Blamer); ok && (!done || err != nil) {
			b.Blame()
		}
	}()
	err = read()
	done = true
	return err
}

// rows makes dst a view of those rows of the i-th series of a unit that lie within clip.
func (s *Stream) rows(ctx context.Context, e *file.Entry, i int, clip model.TimeRange, dst *model.TextRows) error {
	return s.reading(func() error { return s.readRows(ctx, e, i, clip, dst) })
}

func (s *Stream) readRows(ctx context.Context, e *file.Entry, i int, clip model.TimeRange, dst *model.TextRows) error {
	if err := s.decodeUnit(ctx, e); err != nil {
		return err
	}
	if s.unit.lines == nil && e.Text.Bytes > 0 {
		lines, err := s.r.Page(ctx, e.Text.Lines)
		if err != nil {
			return fmt.Errorf("part: lines: %w", err)
		}
		if err := s.unit.setLines(lines); err != nil {
			return fmt.Errorf("page at %d: %w", e.Text.Lines.Off, err)
		}
	}
	var all model.TextRows
	s.unit.view(i, &all)
	clipRows(dst, &all, clip)
	return nil
}

// filter returns the filter of a unit that has one. It is valid until the next call.
func (s *Stream) filter(ctx context.Context, e *file.Entry) ([]byte, error) {
	filter, err := s.filters.read(ctx, s.r.Pages(), e)
	if err != nil {
		return nil, file.AtPage(e.Addr, err)
	}
	return filter, nil
}

// Extent is [Series.Extent].
func (s *Stream) Extent() (model.TimeRange, uint64) { return s.times, s.count }

// Run is [Series.Run].
func (s *Stream) Run(ctx context.Context, clip model.TimeRange) Run {
	s.run = textRun{s: s, ctx: ctx, clip: clip}
	return &s.run
}

// textRun is a walk of a textStream. All walks share its unit.
type textRun struct {
	s     *Stream
	ctx   context.Context
	clip  model.TimeRange
	next  int
	piece Piece
	unit  storedText
	err   error
}

func (r *textRun) Next() bool {
	for r.err == nil && r.next < len(r.s.entries) {
		e := &r.s.entries[r.next]
		r.next++
		if !e.Times.Overlaps(r.clip) {
			continue
		}
		r.piece = Piece{distinct: true}
		if e.Ranks == 1 && r.clip.Min <= e.Times.Min && e.Times.Max <= r.clip.Max {
			r.unit = storedText{from: r.s, e: *e, clip: r.clip}
			r.piece.stored, r.piece.Times = &r.unit, e.Times
			return true
		}
		if r.err = r.s.rows(r.ctx, e, int(r.s.rank-e.Rank0), r.clip, &r.piece.rows); r.err != nil {
			return false
		}
		if times := r.piece.rows.Times; len(times) > 0 {
			r.piece.Times = model.TimeRange{Min: times[0], Max: times[len(times)-1]}
			return true
		}
	}
	return false
}

func (r *textRun) Piece() *Piece { return &r.piece }

func (r *textRun) Err() error { return r.err }
