package promwrite

import (
	"encoding/binary"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/wire"
)

// walkV1 parses a WriteRequest.
func (w *walker) walkV1() error {
	d := w.decoded
	for p := 0; p < len(d); {
		number, kind, next, err := wire.Field(d, p, len(d))
		if err != nil {
			return err
		}
		switch number {
		case 1:
			begin, stop, err := wire.Message("a time series", d, kind, next, len(d))
			if err != nil {
				return err
			}
			w.at = p
			if err := w.seriesV1(begin, stop); err != nil {
				return err
			}
			p = stop
		case 3:
			begin, stop, err := wire.Message("metadata", d, kind, next, len(d))
			if err != nil {
				return err
			}
			w.at = p
			if err := w.metadataV1(begin, stop); err != nil {
				return err
			}
			p = stop
		case 4, 5: // symbols and time series of version 2, which would silently be lost
			return &wire.Malformed{What: "a remote write 2.0 message with the Content-Type of 1.0", At: p}
		default:
			if p, err = wire.Skip(d, next, len(d), kind); err != nil {
				return err
			}
		}
	}
	return nil
}

// seriesV1 parses the TimeSeries message in [p, end).
func (w *walker) seriesV1(p, end int) error {
	d, begin := w.decoded, p
	s := w.beginSeries(p)
	for p < end {
		switch d[p] {
		case 0x0a:
			next := w.label(&s, p, end)
			if next < 0 {
				var err error
				if next, err = w.oddLabel(&s, p, end); err != nil {
					return err
				}
			}
			p = next
		case 0x12:
			from, stop, err := wire.Body(d, p+1, end)
			if err != nil {
				return err
			}
			if err := w.sample(from, stop); err != nil {
				return err
			}
			p = stop
		default:
			next, err := w.otherV1(&s, p, end)
			if err != nil {
				return err
			}
			p = next
		}
	}
	if !w.hasRows(&s) && len(w.pending) == 0 {
		return nil
	}
	labels := spanOf(s.begin, s.end)
	if !s.plain {
		var err error
		if labels, err = w.rebuild(&s, begin, end); err != nil {
			return err
		}
	}
	if !s.named {
		w.dropSeries(&s, write.ReasonLabels, func() string { return "the series has no metric name" })
	}
	if w.election.elector != nil && w.hasRows(&s) {
		if err := w.roomInArena(int(labels.size)); err != nil {
			return err
		}
		var stored bool
		if labels, stored = w.electPlain(&s, labels); !stored && len(w.pending) == 0 {
			return nil
		}
	}
	w.reportLeftOut(labels)
	if !w.hasRows(&s) {
		return nil
	}
	return w.closeSeries(labels, w.keys.Key(w.bytes(labels)))
}

// label parses a label in canonical form with lengths of one byte, the common case. It returns -1 for
// any other label.
func (w *walker) label(s *seriesWalk, p, end int) (next int) {
	d := w.decoded[:end]
	if len(d)-p < 6 || p != s.end {
		return -1
	}
	size, n := int(d[p+1]), int(d[p+3])
	stop, at := p+2+size, p+4+n // the end of the label and of its name
	if size >= 0x80 || d[p+2] != 0x0a || n == 0 || n >= 0x80 || stop > len(d) || at+2 > stop {
		return -1
	}
	v := int(d[at+1])
	if d[at] != 0x12 || v == 0 || at+2+v != stop {
		return -1
	}
	name := d[p+4 : at]
	w.keys.Label(name, d[at+2:stop])
	s.named = s.named || string(name) == model.NameLabel
	s.end = stop
	return stop
}

// sample parses the Sample message in [p, end), of either version.
func (w *walker) sample(p, end int) error {
	d := w.decoded[:end]
	if end-p >= 11 && d[p] == 0x09 && d[p+9] == 0x10 {
		if ms, next := wire.Varint(d, p+10, end); next == end {
			return w.addFloat(binary.LittleEndian.Uint64(d[p+1:]), int64(ms), 0)
		}
	}
	return w.oddSample(p, end)
}

// oddSample parses a sample that is not just a value and a time in this order. Samples with start
// timestamps (version 2) are such, and samples with fields that are zero or obsolete.
func (w *walker) oddSample(p, end int) error {
	d := w.decoded[:end]
	var value, ms, start uint64
	for p < end {
		n, kind, next, err := wire.Field(d, p, end)
		switch {
		case err != nil:
		case n == 1:
			value, next, err = wire.Double("sample's value", d, kind, next, end)
		case n == 2:
			ms, next, err = wire.Number("timestamp", d, kind, next, end)
		case n == 3 && w.version == v2:
			start, next, err = wire.Number("start timestamp", d, kind, next, end)
		default:
			next, err = wire.Skip(d, next, end, kind)
		}
		if err != nil {
			return err
		}
		p = next
	}
	return w.addFloat(value, int64(ms), int64(start))
}

// otherV1 parses a field of a series that is not a label or a sample in its usual encoding.
func (w *walker) otherV1(s *seriesWalk, p, end int) (next int, err error) {
	d := w.decoded
	n, kind, next, err := wire.Field(d, p, end)
	if err != nil {
		return 0, err
	}
	what := ""
	switch n {
	case 1:
		what = "a label"
	case 2:
		what = "a sample"
	case 3:
		what = "an exemplar"
	case 4:
		what = "a histogram"
	default:
		return wire.Skip(d, next, end, kind)
	}
	begin, stop, err := wire.Message(what, d, kind, next, end)
	if err != nil {
		return 0, err
	}
	switch n {
	case 1: // its tag has more bytes than necessary
		_, _, _, err = labelMessage(d, begin, stop)
		s.plain = false
	case 2:
		err = w.sample(begin, stop)
	case 3:
		err = w.exemplarV1(begin, stop)
	case 4:
		err = w.addHistogram(begin, stop)
	}
	return stop, err
}

// buildPlain adds labels that are stored in canonical form.
func (w *walker) buildPlain(at span, b *model.LabelsBuilder) {
	for name, value, rest, ok := model.Labels(w.bytes(at)).Next(); ok; name, value, rest, ok = rest.Next() {
		b.Add(name, value)
	}
}
