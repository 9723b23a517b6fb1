package promwrite

import (
	"fmt"
	"net/http"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/wire"
)

// walkV2 parses a Request in two passes, because the symbols may come after the series that need them.
func (w *walker) walkV2() error {
	d := w.decoded
	p, err := w.index()
	if err != nil {
		return err
	}
	for p < len(d) {
		// The first pass has validated the top level.
		number, kind, next, _ := wire.Field(d, p, len(d))
		if number != 5 {
			p, _ = wire.Skip(d, next, len(d), kind)
			continue
		}
		begin, stop, err := wire.Message("a time series", d, kind, next, len(d))
		if err != nil {
			return err
		}
		w.at = p
		if err := w.seriesV2(begin, stop); err != nil {
			return err
		}
		p = stop
	}
	return nil
}

// seriesV2 parses the TimeSeries message in [p, end).
func (w *walker) seriesV2(p, end int) error {
	d := w.decoded
	s := w.beginSeries(p)
	w.symbolic.series.reset()
	for p < end {
		tag := d[p]
		switch tag {
		case 0x0a, 0x12, 0x1a, 0x22, 0x2a: // fields 1 to 5, length-delimited
		default:
			next, err := w.otherV2(&s, p, end)
			if err != nil {
				return err
			}
			p = next
			continue
		}
		begin, stop, err := wire.Body(d, p+1, end)
		if err != nil {
			return err
		}
		if err := w.partV2(&s, int32(tag>>3), begin, stop); err != nil {
			return err
		}
		p = stop
	}
	return w.endSeriesV2(&s)
}

// partV2 parses a length-delimited field of a series.
func (w *walker) partV2(s *seriesWalk, number int32, begin, stop int) error {
	switch number {
	case 1:
		return w.refer(s, begin, stop)
	case 2:
		return w.sample(begin, stop)
	case 3:
		return w.addHistogram(begin, stop)
	case 4:
		return w.exemplarV2(begin, stop)
	}
	return w.metadataV2(s, begin, stop)
}

// otherV2 parses a field of a series that is not in its usual encoding or not in the current version of
// the message.
func (w *walker) otherV2(s *seriesWalk, p, end int) (next int, err error) {
	d := w.decoded
	n, kind, next, err := wire.Field(d, p, end)
	if err != nil {
		return 0, err
	}
	switch {
	case n == 1 && kind == protowire.VarintType: // a reference that is not packed
		begin := next
		if _, next, err = wire.Number("reference", d, kind, next, end); err != nil {
			return 0, err
		}
		return next, w.refer(s, begin, next)
	case n == 6: // created_timestamp of the release candidates, for all rows of the series
		var ms uint64
		ms, next, err = wire.Number("created timestamp", d, kind, next, end)
		s.created = int64(ms)
		return next, err
	case n > 6:
		return wire.Skip(d, next, end, kind)
	}
	what := [...]string{1: "references", 2: "a sample", 3: "a histogram", 4: "an exemplar", 5: "metadata"}[n]
	begin, stop, err := wire.Message(what, d, kind, next, end)
	if err != nil {
		return 0, err
	}
	return stop, w.partV2(s, n, begin, stop)
}

// refer parses references of the series and records their position. If they are in several pieces,
// which is unusual, it joins them in the arena.
func (w *walker) refer(s *seriesWalk, begin, stop int) error {
	if err := w.symbolic.series.collect(w.decoded, begin, stop); err != nil {
		return err
	}
	if !s.refers {
		s.refs, s.refers = spanOf(begin, stop), true
		return nil
	}
	if s.refs.at&inArena == 0 {
		at := len(w.arena)
		if err := w.roomInArena(int(s.refs.size)); err != nil {
			return err
		}
		w.arena = append(w.arena, s.refs.slice(w.decoded)...)
		s.refs.at = uint32(at) | inArena
	}
	if err := w.roomInArena(stop - begin); err != nil {
		return err
	}
	w.arena = append(w.arena, w.decoded[begin:stop]...)
	s.refs.size += uint32(stop - begin)
	return nil
}

// endSeriesV2 computes the key of the series after all its fields have been parsed.
func (w *walker) endSeriesV2(s *seriesWalk) error {
	y := &w.symbolic
	if !w.hasRows(s) && len(w.pending) == 0 {
		if w.empty++; w.empty == 1 {
			w.emptyExample = w.describe(s.refs)
		}
		return nil
	}
	if err := w.roomForReferences(); err != nil {
		return err
	}
	if w.hasRows(s) {
		if reason, why := w.referenced(s); reason != "" {
			w.dropSeries(s, reason, why)
		}
		if y.expanded > y.mostExpanded {
			return &write.Refused{
				Status: http.StatusRequestEntityTooLarge, Limit: "limits.decoded-bytes",
				Text: fmt.Sprintf("remote write: the expanded labels of the request exceed %d bytes; send fewer samples per request", y.mostExpanded),
			}
		}
	}
	w.reportLeftOut(s.refs)
	if !w.hasRows(s) {
		return nil
	}
	if err := w.addFamily(s); err != nil {
		return err
	}
	w.startRows(s)
	return w.closeSeries(s.refs, w.keys.Key(y.labels.canonical))
}

// referenced looks up the labels of a series. It returns the reason why the series cannot be stored, or
// "".
func (w *walker) referenced(s *seriesWalk) (reason string, why func() string) {
	y := &w.symbolic
	if reason, why = y.series.check(len(y.symbols)); reason != "" {
		return reason, why
	}
	for _, ref := range [...]uint32{s.helpRef, s.unitRef} {
		if int64(ref) >= int64(len(y.symbols)) {
			return write.ReasonReference, outside(ref, len(y.symbols))
		}
	}
	if w.election.elector != nil && !w.electReferenced(s) {
		return "", nil
	}
	if reason, why = w.expand(); reason != "" {
		return reason, why
	}
	if !y.labels.named {
		return write.ReasonLabels, func() string { return "the series has no metric name" }
	}
	if _, ok := nanoseconds(s.created); !ok {
		return write.ReasonTimeRange, outOfRange("created timestamp", s.created)
	}
	return "", nil
}

// startRows gives the rows without a start timestamp that of the series.
func (w *walker) startRows(s *seriesWalk) {
	if s.created == 0 {
		return
	}
	rows := &w.batch.Samples.Rows
	rows.Starts = model.Sized(rows.Starts, cap(rows.Times))
	for len(rows.Starts) < rows.Len() {
		rows.Starts = append(rows.Starts, 0)
	}
	start, _ := nanoseconds(s.created)
	for i := s.samples; i < rows.Len(); i++ {
		if rows.Starts[i] == 0 {
			rows.Starts[i] = start
		}
	}
}
