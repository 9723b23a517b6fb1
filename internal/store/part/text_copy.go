package part

import (
	"context"
	"fmt"

	"github.com/shaledb/shale/internal/model"
)

// storedText is a unit of one series as it is stored.
type storedText struct {
	from    *textStream
	e       pageEntry
	clip    model.TimeRange
	decoded bool
}

// decode fills dst with the rows of the unit.
func (s *storedText) decode(ctx context.Context, dst *model.TextRows) error {
	return s.from.rows(ctx, &s.e, 0, s.clip, dst)
}

// copyUnit copies a unit of the current series. The bytes of its pages and of its filter stay what they are, or only their
// compression changes, to that of the part; that they are whole is verified.
func (x *textWriter) copyUnit(ctx context.Context, s *storedText) error {
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
	stored, err := r.Read(ctx, e.addr.Off, int64(e.addr.Len)+int64(e.text.lines))
	if err != nil {
		return err
	}
	u := &s.from.unit
	s.from.held = Addr{}
	payload, err := DecodePage(stored[:e.addr.Len])
	if err == nil {
		err = u.open(payload)
	}
	if err == nil {
		err = u.is(&e)
	}
	if err != nil {
		return atPage(e.addr, err)
	}
	if u.times[0] < x.last {
		return invalid("text of time %d after %d", u.times[0], x.last)
	}
	to := pageEntry{rank0: x.w.Rank(), ranks: 1, rows: e.rows, times: e.times}
	to.text.bytes = e.text.bytes
	if to.addr, err = x.copyPage(stored[:e.addr.Len]); err != nil {
		return atPage(e.addr, err)
	}
	lines, err := x.copyPage(stored[e.addr.Len:])
	if err != nil {
		return fmt.Errorf("page at %d: %w", e.linesAddr().Off, err)
	}
	to.text.lines = lines.Len
	x.countTimes(u.times, e.text.bytes)
	x.last = e.times.Max
	x.pages++
	return x.unitWritten(to, filter)
}

// copyPage writes a page that is stored already: its checksum is verified, its compression made that of the part.
func (x *textWriter) copyPage(stored []byte) (Addr, error) {
	if err := verifyPage(stored); err != nil {
		return Addr{}, err
	}
	if x.w.Dense() && stored[0] == codecS2 {
		payload, err := DecodePage(stored)
		if err != nil {
			return Addr{}, err
		}
		if x.stored, err = sealPage(x.stored[:0], payload, codecZstd); err != nil {
			return Addr{}, err
		}
		stored = x.stored
	}
	return x.w.Stored(stored)
}
