package target

import (
	"math"
	"strconv"

	"github.com/prometheus/common/expfmt"

	"github.com/shaledb/shale/internal/load/fleet"
)

// text appends a metric in the text format, or in OpenMetrics. These have no native histograms: like a client
// of Prometheus, it writes the count and the sum instead, and the classic buckets if there are any.
func (e *exposition) text() error {
	kind := e.fleet.TypeName(e.point.Metric)
	open := e.format == expfmt.TypeOpenMetrics
	family := e.name
	if !open && kind == "gaugehistogram" {
		kind = "histogram"
	}
	if open && kind == "counter" {
		// The name of a counter's family lacks the suffix of its sample.
		family = family[:len(family)-len(e.fleet.Suffix)]
		if e.fleet.Suffix != CounterSuffix {
			kind = "unknown"
		}
	}
	e.buf = append(append(append(e.buf, "# HELP "...), family...), ' ')
	e.buf = e.fleet.AppendHelp(e.buf, e.point.Metric)
	e.buf = append(append(append(append(e.buf, "\n# TYPE "...), family...), ' '), kind...)
	e.buf = append(e.buf, '\n')
	if e.fleet.Value.Histogram() {
		return e.all(e.textHistogram)
	}
	return e.all(func() { e.textSample(family, kind == "counter" && open) })
}

// CounterSuffix is the suffix of counters in OpenMetrics.
const CounterSuffix = "_total"

func (e *exposition) textSample(family []byte, counter bool) {
	e.line("", "")
	e.buf = e.fleet.Value.AppendText(e.buf, &e.now.Instant, e.point.Identity)
	if counter {
		e.textExemplar()
	}
	e.buf = append(e.buf, '\n')
	if counter {
		e.textCreated(family)
	}
}

// line appends the name, the labels and a space for a sample of the series, and counts it.
func (e *exposition) line(suffix, le string) {
	e.buf = append(append(e.buf, e.name...), suffix...)
	e.buf = append(append(e.buf, '{'), e.series.bytes...)
	if le != "" {
		e.buf = append(append(append(e.buf, `,le="`...), le...), '"')
	}
	e.buf = append(e.buf, "} "...)
	e.samples++
}

func (e *exposition) textHistogram() {
	n := &e.native
	gauge := e.fleet.GaugeHistogram(e.point.Metric)
	n.Fill(e.fleet.Value, gauge, &e.now.Instant, e.point.Identity)
	var sum uint64
	classic := n.Classic()
	for i, bound := range n.Custom {
		sum += classic[i]
		e.value = strconv.AppendFloat(e.value[:0], bound, 'g', -1, 64)
		e.line("_bucket", string(e.value))
		e.textCount(sum)
		e.buf = append(e.buf, '\n')
	}
	e.line("_bucket", "+Inf")
	e.textCount(n.Count)
	if e.format == expfmt.TypeOpenMetrics && !gauge {
		e.textExemplar()
	}
	e.buf = append(e.buf, '\n')
	countName, sumName := "_count", "_sum"
	if gauge && e.format == expfmt.TypeOpenMetrics {
		countName, sumName = "_gcount", "_gsum"
	}
	e.line(countName, "")
	e.textCount(n.Count)
	e.buf = append(e.buf, '\n')
	e.line(sumName, "")
	e.buf = strconv.AppendFloat(e.buf, n.Sum, 'g', -1, 64)
	e.buf = append(e.buf, '\n')
	if e.format == expfmt.TypeOpenMetrics && !gauge {
		e.textCreated(e.name)
	}
}

func (e *exposition) textCount(count uint64) {
	if e.native.Float {
		e.buf = strconv.AppendFloat(e.buf, e.native.Value(count), 'g', -1, 64)
		return
	}
	e.buf = strconv.AppendUint(e.buf, count, 10)
}

// textExemplar appends the exemplar of a series, if it has one.
func (e *exposition) textExemplar() {
	if !e.fleet.Exemplar(&e.point, &e.trace) {
		return
	}
	e.buf = append(append(append(e.buf, ` # {`+fleet.TraceLabel+`="`...), e.trace[:]...), `"} `...)
	e.buf = strconv.AppendFloat(e.buf, math.Float64frombits(e.point.Bits(e.fleet.Value)), 'g', -1, 64)
	e.buf = appendSeconds(append(e.buf, ' '), e.exemplarMs())
}

// textCreated appends the start time of a series.
func (e *exposition) textCreated(family []byte) {
	start := e.now.StartMs()
	if !e.fleet.StartTimes || start == 0 {
		return
	}
	e.buf = append(append(e.buf, family...), "_created{"...)
	e.buf = append(append(e.buf, e.series.bytes...), "} "...)
	e.buf = append(appendSeconds(e.buf, start), '\n')
	e.samples++
}

func appendSeconds(dst []byte, ms int64) []byte {
	dst = strconv.AppendInt(dst, ms/1000, 10)
	rest := ms % 1000
	return append(dst, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
}

// exemplarMs returns when the value of an exemplar was set, so that all scrapers see the same time.
func (e *exposition) exemplarMs() int64 {
	interval := int64(e.fleet.Churn.ValueInterval)
	since := e.now.Ns - e.now.From
	return (e.now.From + since/interval*interval) / 1e6
}
