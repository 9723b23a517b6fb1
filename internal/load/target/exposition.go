package target

import (
	"io"

	"github.com/prometheus/common/expfmt"

	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/values"
	"github.com/shaledb/shale/internal/load/wire"
	"github.com/shaledb/shale/internal/model"
)

// exposition writes the series of one target at one moment, metric by metric. Its memory does not depend on
// the number of series.
type exposition struct {
	fleet  *fleet.Fleet
	format expfmt.FormatType
	point  fleet.Point
	now    fleet.Moment

	out     io.Writer
	buf     []byte
	written int64 // before buf
	samples int64

	name   []byte // of the metric
	series template
	native values.Histogram
	value  []byte
	trace  [fleet.TraceBytes]byte
}

// template is the labels of a series in one format, with the positions of the digits that change from series
// to series.
type template struct {
	bytes  []byte
	at     int
	digits int
}

func newExposition(f *fleet.Fleet, format expfmt.FormatType, m fleet.Moment, target int, out io.Writer) *exposition {
	e := &exposition{fleet: f, format: format, now: m, out: out, buf: make([]byte, 0, wire.WindowBytes+wire.SpareBytes)}
	e.point = fleet.Point{Place: fleet.Place{Target: target}, Moment: &e.now}
	for _, l := range f.LabelTemplates() {
		if l.OfTarget || l.Name == model.NameLabel {
			continue
		}
		value := f.LabelValue(l, e.point.Place, m.Cycle)
		if format == expfmt.TypeProtoDelim {
			pair := wire.AppendField(wire.AppendField(nil, 1, []byte(l.Name)), 2, []byte(value))
			e.series.bytes = wire.AppendField(e.series.bytes, 1, pair)
			e.series.markDigits(l, len(value), 0)
			continue
		}
		if len(e.series.bytes) > 0 {
			e.series.bytes = append(e.series.bytes, ',')
		}
		e.series.bytes = append(e.series.bytes, l.Name+`="`+value+`"`...)
		e.series.markDigits(l, len(value), 1)
	}
	e.series.digits = f.Width(fleet.SeriesNumber)
	return e
}

// markDigits remembers the position of the digits of a label. Its value of the given size has just been
// appended, followed by suffix bytes.
func (t *template) markDigits(l fleet.LabelTemplate, size, suffix int) {
	if l.Kind == fleet.SeriesNumber {
		t.at = len(t.bytes) - suffix - size + len(l.Before)
	}
}

// write writes everything and returns the number of samples, as a scraper counts them, and the number of
// bytes.
func (e *exposition) write() (samples, size int64, err error) {
	for metric := range e.fleet.Metrics {
		e.point.Place.Metric, e.point.Place.Series = metric, 0
		e.name = append(e.name[:0], e.fleet.MetricName(metric)...)
		if e.format == expfmt.TypeProtoDelim {
			err = e.protobuf()
		} else {
			err = e.text()
		}
		if err != nil {
			return e.samples, e.written, err
		}
	}
	if e.format == expfmt.TypeOpenMetrics {
		e.buf = append(e.buf, "# EOF\n"...)
	}
	err = e.flush()
	return e.samples, e.written, err
}

// each calls fn for every series of the metric, with the digits of the template set.
func (e *exposition) each(fn func() error) error {
	p := &e.point
	p.Place.Series = 0
	p.G, p.Identity = e.fleet.Number(p.Place), e.fleet.Identity(p.Place)
	for series := range e.fleet.Series {
		p.Place.Series = series
		fleet.PutNumber(e.series.bytes[e.series.at:e.series.at+e.series.digits], series)
		if err := fn(); err != nil {
			return err
		}
		p.G++
		p.Identity++
	}
	return nil
}

// all calls one for every series of the metric, and writes the buffer out when it is full.
func (e *exposition) all(one func()) error {
	return e.each(func() error {
		one()
		if len(e.buf) < wire.WindowBytes {
			return nil
		}
		return e.flush()
	})
}

func (e *exposition) flush() error {
	_, err := e.out.Write(e.buf)
	e.written += int64(len(e.buf))
	e.buf = e.buf[:0]
	return err
}
