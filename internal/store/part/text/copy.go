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
	filter, err := s.from.filter(ctx, &e)
	if err != nil {
		return err
	}
	r := s.from.r
	stored, err := r.Read(ctx, e.Addr.Off, int64(e.Addr.Len))
	if err != nil {
		return err
	}
	u := &s.from.unit
	s.from.held = file.Addr{}
	payload, err := lines.DecodePage(stored)
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
	rows, err := x.sealed(&x.rows, stored, len(payload))
	if err != nil {
		return file.AtPage(e.Addr, err)
	}
	var text []byte
	if e.Text.Lines.Len > 0 {
		if text, err = r.Read(ctx, e.Text.Lines.Off, int64(e.Text.Lines.Len)); err != nil {
			return err
		}
		if text, err = x.sealed(&x.lines, text, int(e.Text.Bytes)); err != nil {
			return file.AtPage(e.Text.Lines, err)
		}
	}
	x.countTimes(u.Times, e.Text.Bytes)
	x.last = e.Times.Max
	x.pages++
	return x.group.add(x.w, to, rows, text, filter)
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
