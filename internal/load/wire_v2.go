package load

import (
	"encoding/binary"
	"slices"
)

// wireV2 makes TimeSeries messages of remote write 2.0, and the symbols that they refer to. A request has just the
// symbols that it needs: those that all series share first, so that their references take one byte.
type wireV2 struct {
	fleet   *Fleet
	symbols symbols
	labels  []refs
	// cycles are the few cycles that a request is about.
	cycles []cycleRef
	help   numbered
	unit   uint32
	trace  uint32

	// refs are the references of the point before. Those up to the number of the series, of length head, stay while the
	// series is of the same scrape, metric and cycle: writing all of them anew for each series took a third of the time.
	refs []byte
	head int // 0: none
	of   place
	at   int // cycle
	// first is the first label that bears the number of the series.
	first int

	tail, part []byte
	digits     []byte
	native     native
	traceID    [traceBytes]byte
}

// refs are the references of a label.
type refs struct {
	label
	name   []byte // as it is sent, and behind it that of the value if the label is constant
	values numbered
	width  int
}

type cycleRef struct {
	cycle int
	ref   uint32
}

func newWireV2(f *Fleet) *wireV2 {
	w := &wireV2{fleet: f}
	for _, l := range f.labels() {
		w.labels = append(w.labels, refs{label: l, width: f.width(l.kind)})
	}
	w.first = max(0, slices.IndexFunc(w.labels, func(l refs) bool { return l.kind == seriesNumber }))
	return w
}

// begin forgets all symbols, and takes in those that every request has. Its series begin at a place and are so many.
func (w *wireV2) begin(first place, n int) {
	f := w.fleet
	w.symbols.reset()
	w.cycles, w.head = w.cycles[:0], 0
	for i := range w.labels {
		l := &w.labels[i]
		l.name = binary.AppendUvarint(l.name[:0], uint64(w.text(l.label.name)))
		switch l.kind {
		case constant:
			l.name = binary.AppendUvarint(l.name, uint64(w.text(l.before)))
		case targetNumber:
			l.values.reset(first.target, f.Targets, n)
		case metricNumber:
			l.values.reset(first.metric, f.Metrics, n)
		case seriesNumber:
			l.values.reset(first.series, f.Series, n)
		case scraperNumber:
			l.values.reset(first.scraper, f.scrapers(), n)
		}
	}
	if f.Metadata {
		w.help.reset(first.metric, f.Metrics, n)
		w.unit = 0
		if unit := f.unit(); unit != "" {
			w.unit = w.text(unit)
		}
	}
	if f.Exemplars > 0 {
		w.trace = w.text(traceLabel)
	}
}

func (w *wireV2) text(s string) uint32 {
	w.digits = append(w.digits[:0], s...)
	return w.symbols.add(w.digits)
}

// append appends the message of a point, with its tag and length.
func (w *wireV2) append(dst []byte, p *point, c *contents) []byte {
	f := w.fleet
	w.aim(p)
	start := int64(0)
	if f.StartTimes && !p.stale && f.Value.cumulative() {
		start = p.startMs()
	}
	w.tail = w.tail[:0]
	if f.Value.Histogram() {
		w.part = f.appendHistogram(w.part[:0], &w.native, p, start)
		w.tail = appendField(w.tail, tag(3, sized), w.part)
		c.histograms++
	} else {
		w.part = appendSample(w.part[:0], p.bits(f.Value), p.ms(), start)
		w.tail = appendField(w.tail, tag(2, sized), w.part)
		c.samples++
	}
	if f.exemplar(p, &w.traceID) {
		w.exemplar(p)
		c.exemplars++
	}
	if f.Metadata {
		w.metadata(p)
	}
	dst = append(dst, tag(5, sized))
	dst = binary.AppendUvarint(dst, uint64(1+varintLen(uint64(len(w.refs)))+len(w.refs)+len(w.tail)))
	dst = appendField(dst, tag(1, sized), w.refs)
	return append(dst, w.tail...)
}

// aim makes the references those of a point.
func (w *wireV2) aim(p *point) {
	of := p.place
	of.series = 0
	if w.head == 0 || of != w.of || p.cycle != w.at {
		w.refs = w.refer(w.refs[:0], w.labels[:w.first], p)
		w.head, w.of, w.at = len(w.refs), of, p.cycle
	}
	w.refs = w.refer(w.refs[:w.head], w.labels[w.first:], p)
}

func (w *wireV2) refer(dst []byte, labels []refs, p *point) []byte {
	for i := range labels {
		l := &labels[i]
		dst = append(dst, l.name...)
		if l.kind != constant {
			dst = binary.AppendUvarint(dst, uint64(w.value(l, p)))
		}
	}
	return dst
}

// value returns the reference of the value of a label.
func (w *wireV2) value(l *refs, p *point) uint32 {
	if l.kind == cycleNumber {
		return w.cycle(l, p.cycle)
	}
	n := p.field(l.kind, 0)
	ref := l.values.at(n)
	if *ref == 0 {
		*ref = w.numbered(l, n)
	}
	return *ref
}

func (w *wireV2) numbered(l *refs, n int) uint32 {
	w.digits = append(append(w.digits[:0], l.before...), make([]byte, l.width)...)
	putNumber(w.digits[len(l.before):], n)
	w.digits = append(w.digits, l.after...)
	return w.symbols.add(w.digits)
}

func (w *wireV2) cycle(l *refs, cycle int) uint32 {
	for i := len(w.cycles) - 1; i >= 0; i-- {
		if w.cycles[i].cycle == cycle {
			return w.cycles[i].ref
		}
	}
	w.cycles = append(w.cycles, cycleRef{cycle, w.numbered(l, cycle)})
	return w.cycles[len(w.cycles)-1].ref
}

func (w *wireV2) exemplar(p *point) {
	w.part = binary.AppendUvarint(w.part[:0], uint64(w.trace))
	w.part = binary.AppendUvarint(w.part, uint64(w.symbols.add(w.traceID[:])))
	size := 2 + len(w.part) + 9 + 1 + varintLen(uint64(p.ms()))
	w.tail = append(w.tail, tag(4, sized), byte(size))
	w.tail = appendField(w.tail, tag(1, sized), w.part)
	w.tail = appendFixed(w.tail, 2, p.bits(w.fleet.Value))
	w.tail = appendVarint(w.tail, 3, uint64(p.ms()))
}

func (w *wireV2) metadata(p *point) {
	ref := w.help.at(p.metric)
	if *ref == 0 {
		w.digits = w.fleet.appendHelp(w.digits[:0], p.metric)
		*ref = w.symbols.add(w.digits)
	}
	size := 1 + 1 + 1 + varintLen(uint64(*ref)) + 1 + varintLen(uint64(w.unit))
	w.tail = append(w.tail, tag(5, sized), byte(size))
	w.tail = appendVarint(w.tail, 1, uint64(w.fleet.metricType(p.metric)))
	w.tail = appendVarint(w.tail, 3, uint64(*ref))
	w.tail = appendVarint(w.tail, 4, uint64(w.unit))
}
