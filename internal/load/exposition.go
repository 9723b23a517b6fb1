package load

import (
	"io"

	"github.com/prometheus/common/expfmt"

	"github.com/shaledb/shale/internal/model"
)

// exposition writes the series of one target at one moment, metric by metric. Its memory does not depend on how many
// there are.
type exposition struct {
	fleet  *Fleet
	format expfmt.FormatType
	point  point
	now    moment

	out     io.Writer
	buf     []byte
	written int64 // before buf
	samples int64

	name   []byte // of the metric
	series template
	native native
	value  []byte
	trace  [traceBytes]byte
}

// template is the labels of a series in one format, with the place of the digits that change from series to series.
type template struct {
	bytes  []byte
	at     int
	digits int
}

func newExposition(f *Fleet, format expfmt.FormatType, m moment, target int, out io.Writer) *exposition {
	e := &exposition{fleet: f, format: format, now: m, out: out, buf: make([]byte, 0, windowBytes+spareBytes)}
	e.point = point{place: place{target: target}, moment: &e.now}
	for _, l := range f.labels() {
		if l.ofTarget || l.name == model.NameLabel {
			continue
		}
		value := f.text(l, e.point.place, m.cycle)
		if format == expfmt.TypeProtoDelim {
			pair := appendField(appendField(nil, tag(1, sized), []byte(l.name)), tag(2, sized), []byte(value))
			e.series.bytes = appendField(e.series.bytes, tag(1, sized), pair)
			e.series.place(l, len(value), 0)
			continue
		}
		if len(e.series.bytes) > 0 {
			e.series.bytes = append(e.series.bytes, ',')
		}
		e.series.bytes = append(e.series.bytes, l.name+`="`+value+`"`...)
		e.series.place(l, len(value), 1)
	}
	e.series.digits = f.width(seriesNumber)
	return e
}

// place remembers where the digits of a label are whose value has just been appended, with some bytes behind it.
func (t *template) place(l label, size, behind int) {
	if l.kind == seriesNumber {
		t.at = len(t.bytes) - behind - size + len(l.before)
	}
}

// write writes everything and returns the number of samples, as a scraper counts them, and of bytes.
func (e *exposition) write() (samples, size int64, err error) {
	for metric := range e.fleet.Metrics {
		e.point.place.metric, e.point.place.series = metric, 0
		e.name = append(e.name[:0], e.fleet.metricName(metric)...)
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
	p.place.series = 0
	p.g, p.identity = e.fleet.number(p.place), e.fleet.identity(p.place)
	for series := range e.fleet.Series {
		p.place.series = series
		putNumber(e.series.bytes[e.series.at:e.series.at+e.series.digits], series)
		if err := fn(); err != nil {
			return err
		}
		p.g++
		p.identity++
	}
	return nil
}

// all appends what one makes for every series of the metric. The buffer goes out when it is full.
func (e *exposition) all(one func()) error {
	return e.each(func() error {
		one()
		if len(e.buf) < windowBytes {
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
