package text

import (
	"context"
	"fmt"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/part/column"
	"github.com/shaledb/shale/internal/store/part/file"
	"github.com/shaledb/shale/internal/store/part/lines"
)

// storedText is a unit of one series as it is stored.
type storedText struct {
	from    *Stream
	e       file.Entry
	clip    model.TimeRange
	decoded bool
}

// decode fills dst with the rows of the unit.
func (s *storedText) decode(ctx context.Context, dst *model.TextRows) error {
	return s.from.rows(ctx, &s.e, 0, s.clip, dst)
}

// copyUnit copies a unit of the current series after verifying its checksums. The content of its pages and of
// its filter does not change; their compression may change to that of the part.
func (x *Writer) copyUnit(ctx context.Context, s *storedText) error {
	e := s.e
	for !x.own.empty() {
		if err := x.writeOwn(len(x.own.Times)); err != nil {
			return err
		}
	}
	if err := x.flushShared(); err != nil {
		return err
	}
	if err := x.codeUnits(); err != nil {
		return err
	}
	filter, err := s.from.filter(ctx, &e)
	if err != nil {
		return err
	}
	r := s.from.r
	stored, err := r.Read(ctx, e.Addr.Off, int64(e.Addr.Len)+int64(e.Text.Lines))
	if err != nil {
		return err
	}
	u := &s.from.unit
	s.from.held = file.Addr{}
	payload, err := lines.DecodePage(stored[:e.Addr.Len])
	if err == nil {
		err = u.decode(payload)
	}
	if err == nil {
		err = u.checkEntry(&e)
	}
	if err != nil {
		return file.AtPage(e.Addr, err)
	}
	if u.Times[0] < x.last {
		return column.Invalid("text of time %d after %d", u.Times[0], x.last)
	}
	to := file.Entry{Rank0: x.w.Rank(), Ranks: 1, Rows: e.Rows, Times: e.Times}
	to.Text.Bytes = e.Text.Bytes
	if to.Addr, err = x.copyPage(stored[:e.Addr.Len]); err != nil {
		return file.AtPage(e.Addr, err)
	}
	lines, err := x.copyPage(stored[e.Addr.Len:])
	if err != nil {
		return fmt.Errorf("page at %d: %w", e.LinesAddr().Off, err)
	}
	to.Text.Lines = lines.Len
	x.countTimes(u.Times, e.Text.Bytes)
	x.last = e.Times.Max
	x.pages++
	return x.unitWritten(to, filter)
}

// copyPage writes a page in its stored form. It verifies the checksum, and changes the compression to that of
// the part.
func (x *Writer) copyPage(stored []byte) (file.Addr, error) {
	if err := file.VerifyPage(stored); err != nil {
		return file.Addr{}, err
	}
	if x.w.Dense() && stored[0] == file.CodecS2 {
		payload, err := lines.DecodePage(stored)
		if err != nil {
			return file.Addr{}, err
		}
		if x.stored, err = file.SealPage(x.stored[:0], payload, file.CodecZstd); err != nil {
			return file.Addr{}, err
		}
		stored = x.stored
	}
	return x.w.Stored(stored)
}
