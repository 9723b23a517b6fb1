package text

import (
	"context"

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
	var rows, text, filter []byte
	err := s.from.reading(func() (err error) {
		rows, text, filter, err = x.readUnit(ctx, s)
		return err
	})
	if err != nil {
		return err
	}
	times := s.from.unit.Times
	if times[0] < x.last {
		return column.Invalid("text of time %d after %d", times[0], x.last)
	}
	to := file.Entry{Rank0: x.w.Rank(), Ranks: 1, Rows: e.Rows, Times: e.Times}
	to.Text.Bytes = e.Text.Bytes
	x.countTimes(times, e.Text.Bytes)
	x.last = e.Times.Max
	x.pages++
	return x.group.add(x.w, to, rows, text, filter)
}

// readUnit reads the pages and the filter of a unit that is to be copied. It decodes the times.
func (x *Writer) readUnit(ctx context.Context, s *storedText) (rows, text, filter []byte, err error) {
	e, r, u := s.e, s.from.r, &s.from.unit
	if filter, err = s.from.filter(ctx, &e); err != nil {
		return nil, nil, nil, err
	}
	stored, err := r.Read(ctx, e.Addr.Off, int64(e.Addr.Len))
	if err != nil {
		return nil, nil, nil, err
	}
	s.from.held = file.Addr{}
	payload, err := lines.DecodePage(stored)
	if err == nil {
		err = u.decode(payload)
	}
	if err == nil {
		err = u.checkEntry(&e)
	}
	if err == nil {
		rows, err = x.sealed(&x.rows, stored, len(payload))
	}
	if err != nil {
		return nil, nil, nil, file.AtPage(e.Addr, err)
	}
	if e.Text.Lines.Len == 0 {
		return rows, nil, filter, nil
	}
	if text, err = r.Read(ctx, e.Text.Lines.Off, int64(e.Text.Lines.Len)); err != nil {
		return nil, nil, nil, err
	}
	if text, err = x.sealed(&x.lines, text, int(e.Text.Bytes)); err != nil {
		return nil, nil, nil, file.AtPage(e.Text.Lines, err)
	}
	return rows, text, filter, nil
}

// sealed returns a page in the stored form of the part, in which only its compression may differ. It verifies
// the checksum and the length of the payload.
func (x *Writer) sealed(buf *[]byte, stored []byte, length int) ([]byte, error) {
	codec, raw, coded, err := file.OpenEnvelope(stored, file.MaxPageBytes)
	switch {
	case err != nil:
		return nil, err
	case raw != length:
		return nil, column.Corrupt("page of %d bytes, should be %d", raw, length)
	case !x.w.Dense() || codec != file.CodecS2:
		return stored, nil
	}
	payload, err := file.OpenBody(codec, raw, coded)
	if err == nil {
		*buf, err = file.SealPage((*buf)[:0], payload, file.CodecZstd)
	}
	return *buf, err
}
