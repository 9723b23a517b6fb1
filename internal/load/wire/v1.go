package wire

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/values"
)

// wireV1 makes TimeSeries messages of remote write 1.0. The numbers in labels have a fixed width, so the
// labels of all series have the same size, and one template serves all series: only its digits change.
type wireV1 struct {
	fleet  *fleet.Fleet
	labels []byte
	// at has the positions of the digits of each field, and width their number.
	at    [fleet.Fields][]int
	width [fleet.Fields]int
	// now and cycle are the state of the digits.
	now    fleet.Place
	cycle  int
	tail   []byte
	part   []byte
	native values.Histogram
	trace  [fleet.TraceBytes]byte
}

func newWireV1(f *fleet.Fleet) *wireV1 {
	w := &wireV1{fleet: f}
	for k := range fleet.Fields {
		w.width[k] = f.Width(k)
	}
	for _, l := range f.LabelTemplates() {
		value := []byte(f.LabelValue(l, fleet.Place{}, 0))
		pair := AppendField(nil, 1, []byte(l.Name))
		pair = AppendField(pair, 2, value)
		w.labels = AppendField(w.labels, 1, pair)
		if l.Kind != fleet.Constant {
			w.at[l.Kind] = append(w.at[l.Kind], len(w.labels)-len(value)+len(l.Before))
		}
	}
	return w
}

// aim changes the labels to those of a point.
func (w *wireV1) aim(p *fleet.Point) {
	if p.Series != w.now.Series {
		w.put(fleet.SeriesNumber, p.Series)
	}
	if p.Metric != w.now.Metric {
		w.put(fleet.MetricNumber, p.Metric)
	}
	if p.Target != w.now.Target {
		w.put(fleet.TargetNumber, p.Target)
	}
	if p.Scraper != w.now.Scraper {
		w.put(fleet.ScraperNumber, p.Scraper)
	}
	if p.Cycle != w.cycle {
		w.put(fleet.CycleNumber, p.Cycle)
	}
	w.now, w.cycle = p.Place, p.Cycle
}

func (w *wireV1) put(k fleet.Field, n int) {
	for _, at := range w.at[k] {
		fleet.PutNumber(w.labels[at:at+w.width[k]], n)
	}
}

// append appends the message of a point, with its tag and length.
func (w *wireV1) append(dst []byte, p *fleet.Point, c *Contents) []byte {
	w.aim(p)
	w.tail = w.tail[:0]
	if w.fleet.Value.Histogram() {
		w.part = appendHistogram(w.part[:0], w.fleet, &w.native, p, 0)
		c.Histograms++
	} else {
		w.part = appendSample(w.part[:0], p.Bits(w.fleet.Value), p.Ms(), 0)
		w.tail = AppendField(w.tail, 2, w.part)
		c.Samples++
	}
	if w.fleet.Exemplar(p, &w.trace) {
		c.Exemplars++
		w.tail = append(w.tail, LenTag(3), byte(2+2+len(fleet.TraceLabel)+2+fleet.TraceBytes+9+1+protowire.SizeVarint(uint64(p.Ms()))))
		w.tail = append(w.tail, LenTag(1), byte(2+len(fleet.TraceLabel)+2+fleet.TraceBytes))
		w.tail = AppendField(w.tail, 1, []byte(fleet.TraceLabel))
		w.tail = AppendField(w.tail, 2, w.trace[:])
		w.tail = AppendFixed(w.tail, 2, p.Bits(w.fleet.Value))
		w.tail = AppendVarint(w.tail, 3, uint64(p.Ms()))
	}
	if w.fleet.Value.Histogram() {
		w.tail = AppendField(w.tail, 4, w.part)
	}
	dst = append(dst, LenTag(1))
	dst = protowire.AppendVarint(dst, uint64(len(w.labels)+len(w.tail)))
	dst = append(dst, w.labels...)
	return append(dst, w.tail...)
}

// appendHistogram appends the body of a point's Histogram.
func appendHistogram(dst []byte, f *fleet.Fleet, n *values.Histogram, p *fleet.Point, start int64) []byte {
	if p.Stale {
		return appendStaleNative(dst, f.Value == values.HistogramFloat, p.Ms())
	}
	n.Fill(f.Value, f.GaugeHistogram(p.Metric), &p.Instant, p.Identity)
	return appendNative(dst, n, p.Ms(), start)
}
