package load

import "encoding/binary"

// wireV1 makes TimeSeries messages of remote write 1.0. The labels of all series of a fleet take the same number of
// bytes, since their numbers have a fixed width; so they are one template, in which only digits change.
type wireV1 struct {
	fleet  *Fleet
	labels []byte
	// at are the places of the digits of each field, of the width beside.
	at    [fields][]int
	width [fields]int
	// now and cycle are what the digits say.
	now    place
	cycle  int
	tail   []byte
	part   []byte
	native native
	trace  [traceBytes]byte
}

func newWireV1(f *Fleet) *wireV1 {
	w := &wireV1{fleet: f}
	for k := range fields {
		w.width[k] = f.width(k)
	}
	for _, l := range f.labels() {
		value := []byte(f.text(l, place{}, 0))
		pair := appendField(nil, tag(1, sized), []byte(l.name))
		pair = appendField(pair, tag(2, sized), value)
		w.labels = appendField(w.labels, tag(1, sized), pair)
		if l.kind != constant {
			w.at[l.kind] = append(w.at[l.kind], len(w.labels)-len(value)+len(l.before))
		}
	}
	return w
}

// aim makes the labels those of a point.
func (w *wireV1) aim(p *point) {
	if p.series != w.now.series {
		w.put(seriesNumber, p.series)
	}
	if p.metric != w.now.metric {
		w.put(metricNumber, p.metric)
	}
	if p.target != w.now.target {
		w.put(targetNumber, p.target)
	}
	if p.scraper != w.now.scraper {
		w.put(scraperNumber, p.scraper)
	}
	if p.cycle != w.cycle {
		w.put(cycleNumber, p.cycle)
	}
	w.now, w.cycle = p.place, p.cycle
}

func (w *wireV1) put(k field, n int) {
	for _, at := range w.at[k] {
		putNumber(w.labels[at:at+w.width[k]], n)
	}
}

// append appends the message of a point, with its tag and length.
func (w *wireV1) append(dst []byte, p *point, c *contents) []byte {
	w.aim(p)
	w.tail = w.tail[:0]
	if w.fleet.Value.Histogram() {
		w.part = w.fleet.appendHistogram(w.part[:0], &w.native, p, 0)
		c.histograms++
	} else {
		w.part = appendSample(w.part[:0], p.bits(w.fleet.Value), p.ms(), 0)
		w.tail = appendField(w.tail, tag(2, sized), w.part)
		c.samples++
	}
	if w.fleet.exemplar(p, &w.trace) {
		c.exemplars++
		w.tail = append(w.tail, tag(3, sized), byte(2+2+len(traceLabel)+2+traceBytes+9+1+varintLen(uint64(p.ms()))))
		w.tail = append(w.tail, tag(1, sized), byte(2+len(traceLabel)+2+traceBytes))
		w.tail = appendField(w.tail, tag(1, sized), []byte(traceLabel))
		w.tail = appendField(w.tail, tag(2, sized), w.trace[:])
		w.tail = appendFixed(w.tail, 2, p.bits(w.fleet.Value))
		w.tail = appendVarint(w.tail, 3, uint64(p.ms()))
	}
	if w.fleet.Value.Histogram() {
		w.tail = appendField(w.tail, tag(4, sized), w.part)
	}
	dst = append(dst, tag(1, sized))
	dst = binary.AppendUvarint(dst, uint64(len(w.labels)+len(w.tail)))
	dst = append(dst, w.labels...)
	return append(dst, w.tail...)
}

// appendHistogram appends the body of a point's Histogram.
func (f *Fleet) appendHistogram(dst []byte, n *native, p *point, start int64) []byte {
	if p.stale {
		return appendStaleNative(dst, f.Value == HistogramFloat, p.ms())
	}
	n.fill(f.Value, f.gaugeHistogram(p.metric), &p.instant, p.identity)
	return appendNative(dst, n, p.ms(), start)
}
