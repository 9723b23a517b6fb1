package fleet

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// LabelTemplate is one label of the template of a series. Its value is text, then a number of fixed width if
// kind is not constant, then more text.
type LabelTemplate struct {
	Name, Before, After string
	Kind                Field
	// OfTarget is set for labels that a scraper adds to those that a target exposes.
	OfTarget bool
}

type Field uint8

const (
	Constant Field = iota
	TargetNumber
	MetricNumber
	SeriesNumber
	ScraperNumber
	CycleNumber
	Fields
)

// CycleLabel holds the number of the cycle, if series are relabelled.
const CycleLabel = "cycle_id"

// cycleWidth is enough for one cycle a second since 1970.
const cycleWidth = 10

// LabelTemplates returns the labels sorted by name. With ten constant ones, a series is about 580 bytes in
// remote write 1.0, as those of a scraped avalanche are after Prometheus has added its own labels. The seed
// is in the job, so that another seed is another set of series.
func (f *Fleet) LabelTemplates() []LabelTemplate {
	ls := []LabelTemplate{
		{Name: model.NameLabel, Before: f.Name + "_mmmmm_", Kind: MetricNumber, After: f.Suffix},
		{Name: "instance", Before: "target-", After: ".load.svc:9001", Kind: TargetNumber, OfTarget: true},
		{Name: "job", Before: f.Job(), OfTarget: true},
		{Name: "pod", Before: "load-", After: "-ppppp", Kind: TargetNumber, OfTarget: true},
		{Name: "region", Before: "eu-north-1", OfTarget: true},
		{Name: SeriesLabel, Kind: SeriesNumber},
	}
	if f.ScraperCount() > 1 {
		ls = append(ls, LabelTemplate{Name: "scraper", Before: "prometheus-", Kind: ScraperNumber, OfTarget: true})
	}
	if f.Churn.SeriesInterval > 0 {
		ls = append(ls, LabelTemplate{Name: CycleLabel, Kind: CycleNumber})
	}
	for i := range f.Labels {
		ls = append(ls, LabelTemplate{Name: fmt.Sprintf("label_key_kkkkk_%d", i), Before: fmt.Sprintf("label_val_vvvvv_%d", i)})
	}
	slices.SortFunc(ls, func(a, b LabelTemplate) int { return strings.Compare(a.Name, b.Name) })
	return ls
}

func (f *Fleet) Job() string { return "shale-load-" + strconv.FormatUint(f.Seed, 10) }

// Width returns the number of digits of a field. It is fixed, so that bodies can be patched.
func (f *Fleet) Width(k Field) int {
	switch k {
	case TargetNumber:
		return digits(f.Targets - 1)
	case MetricNumber:
		return digits(f.Metrics - 1)
	case SeriesNumber:
		return digits(f.Series - 1)
	case ScraperNumber:
		return digits(f.ScraperCount() - 1)
	case CycleNumber:
		return cycleWidth
	}
	return 0
}

func digits(n int) int { return len(strconv.Itoa(n)) }

// PutNumber fills dst with a decimal number and leading zeros.
func PutNumber(dst []byte, n int) {
	for i := len(dst) - 1; i >= 0; i-- {
		dst[i] = byte('0' + n%10)
		n /= 10
	}
}

func padded(n, width int) string {
	b := make([]byte, width)
	PutNumber(b, n)
	return string(b)
}

// Field returns the number that a label holds for a place.
func (p *Place) Field(k Field, cycle int) int {
	switch k {
	case TargetNumber:
		return p.Target
	case MetricNumber:
		return p.Metric
	case SeriesNumber:
		return p.Series
	case ScraperNumber:
		return p.Scraper
	case CycleNumber:
		return cycle
	}
	return 0
}

// LabelValue returns the value of a label.
func (f *Fleet) LabelValue(l LabelTemplate, p Place, cycle int) string {
	return l.Before + padded(p.Field(l.Kind, cycle), f.Width(l.Kind)) + l.After
}

// LabelsOf returns the labels of a series in a cycle by name.
func (f *Fleet) LabelsOf(g int64, cycle int) map[string]string {
	p, out := f.Place(g), map[string]string{}
	for _, l := range f.LabelTemplates() {
		out[l.Name] = f.LabelValue(l, p, cycle)
	}
	return out
}

// CycleOf reads the cycle out of the labels of a series.
func (f *Fleet) CycleOf(labels map[string]string) (int, bool) {
	if f.Churn.SeriesInterval == 0 {
		return 0, true
	}
	n, err := strconv.Atoi(labels[CycleLabel])
	return n, err == nil && n >= 0
}

// MetricName and instance return the values of the labels that queries select by.
func (f *Fleet) MetricName(metric int) string {
	return f.Name + "_mmmmm_" + padded(metric, f.Width(MetricNumber)) + f.Suffix
}

func (f *Fleet) Instance(target int) string {
	return "target-" + padded(target, f.Width(TargetNumber)) + ".load.svc:9001"
}

// Matchers returns the labels that tell a series from all others of its tenant, except the cycle.
func (f *Fleet) Matchers(g int64) []Matcher {
	p := f.Place(g)
	ls := []Matcher{
		{model.NameLabel, f.MetricName(p.Metric)},
		{"job", f.Job()},
		{"instance", f.Instance(p.Target)},
		{SeriesLabel, f.SeriesID(g)},
	}
	if f.ScraperCount() > 1 {
		ls = append(ls, Matcher{"scraper", "prometheus-" + padded(p.Scraper, f.Width(ScraperNumber))})
	}
	return ls
}

// SeriesLabel tells the series of a metric and a target apart.
const SeriesLabel = "series_id"

// SeriesID returns the value of [SeriesLabel] of a series.
func (f *Fleet) SeriesID(g int64) string { return padded(f.Place(g).Series, f.Width(SeriesNumber)) }

// GroupMatchers returns the labels that tell the series of a metric and a target, of which g is one, from all
// others of their tenant.
func (f *Fleet) GroupMatchers(g int64) []Matcher {
	return slices.DeleteFunc(f.Matchers(g), func(m Matcher) bool { return m.Name == SeriesLabel })
}

// Selector returns a PromQL selector that only this series satisfies, in all of its cycles.
func (f *Fleet) Selector(g int64) string { return SelectorOf(f.Matchers(g)) }

// Matcher is a label that a series must have.
type Matcher struct{ Name, Value string }

// SelectorOf writes matchers of a name, which comes first, and of labels.
func SelectorOf(ls []Matcher) string {
	var sb strings.Builder
	if validMetricName(ls[0].Value) {
		sb.WriteString(ls[0].Value)
		ls = ls[1:]
	}
	sb.WriteByte('{')
	for i, l := range ls {
		if i > 0 {
			sb.WriteByte(',')
		}
		fmt.Fprintf(&sb, "%s=%q", l.Name, l.Value)
	}
	sb.WriteByte('}')
	return sb.String()
}
