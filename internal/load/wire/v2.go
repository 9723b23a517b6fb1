package wire

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/values"
)

// wireV2 makes TimeSeries messages of remote write 2.0, and the symbols that they refer to. A request has
// only the symbols that it needs: those that all series share first, so that their references take one byte.
type wireV2 struct {
	fleet   *fleet.Fleet
	symbols symbols
	labels  []refs
	// cycles are the few cycles of a request.
	cycles []cycleRef
	help   numbered
	unit   uint32
	trace  uint32

	// refs are the references of the previous point. Those before the number of the series, of length head, stay
	// the same within a scrape, metric and cycle. Writing all of them for each series is slow: see
	// BenchmarkBody.
	refs []byte
	head int // 0: none
	of   fleet.Place
	at   int // cycle
	// first is the first label with the number of the series.
	first int

	tail, part []byte
	digits     []byte
	native     values.Histogram
	traceID    [fleet.TraceBytes]byte
}

// refs are the references of a label.
type refs struct {
	fleet.LabelTemplate
	name   []byte // as it is sent, followed by that of the value if the label is constant
	values numbered
	width  int
}

type cycleRef struct {
	cycle int
	ref   uint32
}

func newWireV2(f *fleet.Fleet) *wireV2 {
	w := &wireV2{fleet: f}
	for _, l := range f.LabelTemplates() {
		w.labels = append(w.labels, refs{LabelTemplate: l, width: f.Width(l.Kind)})
	}
	w.first = max(0, slices.IndexFunc(w.labels, func(l refs) bool { return l.Kind == fleet.SeriesNumber }))
	return w
}

// begin forgets all symbols, and adds those of every request, which has n series from first on.
func (w *wireV2) begin(first fleet.Place, n int) {
	f := w.fleet
	w.symbols.reset()
	w.cycles, w.head = w.cycles[:0], 0
	for i := range w.labels {
		l := &w.labels[i]
		l.name = protowire.AppendVarint(l.name[:0], uint64(w.text(l.LabelTemplate.Name)))
		switch l.Kind {
		case fleet.Constant:
			l.name = protowire.AppendVarint(l.name, uint64(w.text(l.Before)))
		case fleet.TargetNumber:
			l.values.reset(first.Target, f.Targets, n)
		case fleet.MetricNumber:
			l.values.reset(first.Metric, f.Metrics, n)
		case fleet.SeriesNumber:
			l.values.reset(first.Series, f.Series, n)
		case fleet.ScraperNumber:
			l.values.reset(first.Scraper, f.ScraperCount(), n)
		}
	}
	if f.Metadata {
		w.help.reset(first.Metric, f.Metrics, n)
		w.unit = 0
		if unit := f.Unit(); unit != "" {
			w.unit = w.text(unit)
		}
	}
	if f.Exemplars > 0 {
		w.trace = w.text(fleet.TraceLabel)
	}
}

func (w *wireV2) text(s string) uint32 {
	w.digits = append(w.digits[:0], s...)
	return w.symbols.add(w.digits)
}

// append appends the message of a point, with its tag and length.
func (w *wireV2) append(dst []byte, p *fleet.Point, c *Contents) []byte {
	f := w.fleet
	w.aim(p)
	start := int64(0)
	if f.StartTimes && !p.Stale && f.Value.Cumulative() {
		start = p.StartMs()
	}
	w.tail = w.tail[:0]
	if f.Value.Histogram() {
		w.part = appendHistogram(w.part[:0], f, &w.native, p, start)
		w.tail = AppendField(w.tail, 3, w.part)
		c.Histograms++
	} else {
		w.part = appendSample(w.part[:0], p.Bits(f.Value), p.Ms(), start)
		w.tail = AppendField(w.tail, 2, w.part)
		c.Samples++
	}
	if f.Exemplar(p, &w.traceID) {
		w.exemplar(p)
		c.Exemplars++
	}
	if f.Metadata {
		w.metadata(p)
	}
	dst = append(dst, LenTag(5))
	dst = protowire.AppendVarint(dst, uint64(1+protowire.SizeVarint(uint64(len(w.refs)))+len(w.refs)+len(w.tail)))
	dst = AppendField(dst, 1, w.refs)
	return append(dst, w.tail...)
}

// aim changes the references to those of a point.
func (w *wireV2) aim(p *fleet.Point) {
	of := p.Place
	of.Series = 0
	if w.head == 0 || of != w.of || p.Cycle != w.at {
		w.refs = w.refer(w.refs[:0], w.labels[:w.first], p)
		w.head, w.of, w.at = len(w.refs), of, p.Cycle
	}
	w.refs = w.refer(w.refs[:w.head], w.labels[w.first:], p)
}

func (w *wireV2) refer(dst []byte, labels []refs, p *fleet.Point) []byte {
	for i := range labels {
		l := &labels[i]
		dst = append(dst, l.name...)
		if l.Kind != fleet.Constant {
			dst = protowire.AppendVarint(dst, uint64(w.value(l, p)))
		}
	}
	return dst
}

// value returns the reference of the value of a label.
func (w *wireV2) value(l *refs, p *fleet.Point) uint32 {
	if l.Kind == fleet.CycleNumber {
		return w.cycle(l, p.Cycle)
	}
	n := p.Field(l.Kind, 0)
	ref := l.values.at(n)
	if *ref == 0 {
		*ref = w.numbered(l, n)
	}
	return *ref
}

func (w *wireV2) numbered(l *refs, n int) uint32 {
	w.digits = append(append(w.digits[:0], l.Before...), make([]byte, l.width)...)
	fleet.PutNumber(w.digits[len(l.Before):], n)
	w.digits = append(w.digits, l.After...)
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

func (w *wireV2) exemplar(p *fleet.Point) {
	w.part = protowire.AppendVarint(w.part[:0], uint64(w.trace))
	w.part = protowire.AppendVarint(w.part, uint64(w.symbols.add(w.traceID[:])))
	size := 2 + len(w.part) + 9 + 1 + protowire.SizeVarint(uint64(p.Ms()))
	w.tail = append(w.tail, LenTag(4), byte(size))
	w.tail = AppendField(w.tail, 1, w.part)
	w.tail = AppendFixed(w.tail, 2, p.Bits(w.fleet.Value))
	w.tail = AppendVarint(w.tail, 3, uint64(p.Ms()))
}

func (w *wireV2) metadata(p *fleet.Point) {
	ref := w.help.at(p.Metric)
	if *ref == 0 {
		w.digits = w.fleet.AppendHelp(w.digits[:0], p.Metric)
		*ref = w.symbols.add(w.digits)
	}
	size := 1 + 1 + 1 + protowire.SizeVarint(uint64(*ref)) + 1 + protowire.SizeVarint(uint64(w.unit))
	w.tail = append(w.tail, LenTag(5), byte(size))
	w.tail = AppendVarint(w.tail, 1, uint64(w.fleet.MetricType(p.Metric)))
	w.tail = AppendVarint(w.tail, 3, uint64(*ref))
	w.tail = AppendVarint(w.tail, 4, uint64(w.unit))
}
