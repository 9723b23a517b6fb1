package load

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// label is one label of the template of a series. Its value is text, then a number of fixed width if kind is not
// constant, then more text.
type label struct {
	name, before, after string
	kind                field
	// ofTarget is set for those that a scraper adds to what a target exposes.
	ofTarget bool
}

type field uint8

const (
	constant field = iota
	targetNumber
	metricNumber
	seriesNumber
	scraperNumber
	cycleNumber
	fields
)

// cycleLabel bears the number of the cycle, if series are relabelled.
const cycleLabel = "cycle_id"

// cycleWidth is enough for one cycle a second since 1970.
const cycleWidth = 10

// labels returns the labels sorted by name. With ten constant ones, a series is about 580 bytes in remote write 1.0,
// as those of a scraped avalanche are after Prometheus has added its own labels. The seed is in the job, so that
// another seed is another set of series.
func (f *Fleet) labels() []label {
	ls := []label{
		{name: model.NameLabel, before: f.Name + "_mmmmm_", kind: metricNumber, after: f.Suffix},
		{name: "instance", before: "target-", after: ".load.svc:9001", kind: targetNumber, ofTarget: true},
		{name: "job", before: f.job(), ofTarget: true},
		{name: "pod", before: "load-", after: "-ppppp", kind: targetNumber, ofTarget: true},
		{name: "region", before: "eu-north-1", ofTarget: true},
		{name: "series_id", kind: seriesNumber},
	}
	if f.scrapers() > 1 {
		ls = append(ls, label{name: "scraper", before: "prometheus-", kind: scraperNumber, ofTarget: true})
	}
	if f.Churn.SeriesInterval > 0 {
		ls = append(ls, label{name: cycleLabel, kind: cycleNumber})
	}
	for i := range f.Labels {
		ls = append(ls, label{name: fmt.Sprintf("label_key_kkkkk_%d", i), before: fmt.Sprintf("label_val_vvvvv_%d", i)})
	}
	slices.SortFunc(ls, func(a, b label) int { return strings.Compare(a.name, b.name) })
	return ls
}

func (f *Fleet) job() string { return "shale-load-" + strconv.FormatUint(f.Seed, 10) }

// width returns the number of digits of a field. It is fixed, so that bodies can be patched.
func (f *Fleet) width(k field) int {
	switch k {
	case targetNumber:
		return digits(f.Targets - 1)
	case metricNumber:
		return digits(f.Metrics - 1)
	case seriesNumber:
		return digits(f.Series - 1)
	case scraperNumber:
		return digits(f.scrapers() - 1)
	case cycleNumber:
		return cycleWidth
	}
	return 0
}

func digits(n int) int { return len(strconv.Itoa(n)) }

// putNumber fills dst with a decimal number and leading zeros.
func putNumber(dst []byte, n int) {
	for i := len(dst) - 1; i >= 0; i-- {
		dst[i] = byte('0' + n%10)
		n /= 10
	}
}

func padded(n, width int) string {
	b := make([]byte, width)
	putNumber(b, n)
	return string(b)
}

// field returns the number of a place that a label bears.
func (p *place) field(k field, cycle int) int {
	switch k {
	case targetNumber:
		return p.target
	case metricNumber:
		return p.metric
	case seriesNumber:
		return p.series
	case scraperNumber:
		return p.scraper
	case cycleNumber:
		return cycle
	}
	return 0
}

// text returns the value of a label.
func (f *Fleet) text(l label, p place, cycle int) string {
	return l.before + padded(p.field(l.kind, cycle), f.width(l.kind)) + l.after
}

// LabelsOf returns the labels of a series in a cycle by name.
func (f *Fleet) LabelsOf(g int64, cycle int) map[string]string {
	p, out := f.place(g), map[string]string{}
	for _, l := range f.labels() {
		out[l.name] = f.text(l, p, cycle)
	}
	return out
}

// cycleOf reads the cycle out of the labels of a series.
func (f *Fleet) cycleOf(labels map[string]string) (int, bool) {
	if f.Churn.SeriesInterval == 0 {
		return 0, true
	}
	n, err := strconv.Atoi(labels[cycleLabel])
	return n, err == nil && n >= 0
}

// metricName and instance return the values of the labels that queries select by.
func (f *Fleet) metricName(metric int) string {
	return f.Name + "_mmmmm_" + padded(metric, f.width(metricNumber)) + f.Suffix
}

func (f *Fleet) instance(target int) string {
	return "target-" + padded(target, f.width(targetNumber)) + ".load.svc:9001"
}

// selectedBy returns the labels that tell a series from all others of its tenant, but for its cycle.
func (f *Fleet) selectedBy(g int64) []label {
	p := f.place(g)
	ls := []label{
		{name: model.NameLabel, before: f.metricName(p.metric)},
		{name: "job", before: f.job()},
		{name: "instance", before: f.instance(p.target)},
		{name: "series_id", before: padded(p.series, f.width(seriesNumber))},
	}
	if f.scrapers() > 1 {
		ls = append(ls, label{name: "scraper", before: "prometheus-" + padded(p.scraper, f.width(scraperNumber))})
	}
	return ls
}

// Selector returns a PromQL selector that only this series satisfies, in all of its cycles.
func (f *Fleet) Selector(g int64) string { return selectorOf(f.selectedBy(g)) }

// selectorOf writes matchers of a name, which comes first, and of labels.
func selectorOf(ls []label) string {
	var sb strings.Builder
	if validMetricName(ls[0].before) {
		sb.WriteString(ls[0].before)
		ls = ls[1:]
	}
	sb.WriteByte('{')
	for i, l := range ls {
		if i > 0 {
			sb.WriteByte(',')
		}
		fmt.Fprintf(&sb, "%s=%q", l.name, l.before)
	}
	sb.WriteByte('}')
	return sb.String()
}
