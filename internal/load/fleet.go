package load

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// Fleet is the shape of a remote write load: targets that expose the same metrics, each with the same number of
// series, every series with constant labels beside its own. Series are numbered target by target, in a target metric
// by metric, which is the order of a scrape.
type Fleet struct {
	Seed    uint64     `json:"seed"`
	Targets int        `json:"targets"`
	Metrics int        `json:"metrics"` // per target
	Series  int        `json:"series"`  // per target and metric
	Labels  int        `json:"labels"`  // constant ones, beside those that tell series apart
	Name    string     `json:"name"`    // of metrics, without their number
	Value   ValueModel `json:"value"`
}

// Check returns an error of class [model.ErrInvalid] unless the shape can be sent.
func (f *Fleet) Check() error {
	switch {
	case f.Targets < 1 || f.Metrics < 1 || f.Series < 1:
		return fmt.Errorf("%w: load: targets, metrics and series must each be at least 1", model.ErrInvalid)
	case f.Targets > maxSeries/f.Metrics || f.Targets*f.Metrics > maxSeries/f.Series:
		return fmt.Errorf("%w: load: more than %d series", model.ErrInvalid, maxSeries)
	case f.Labels < 0 || f.Labels > 1000:
		return fmt.Errorf("%w: load: %d labels: want 0 to 1000", model.ErrInvalid, f.Labels)
	case !validMetricName(f.Name):
		return fmt.Errorf("%w: load: %q does not begin a metric name", model.ErrInvalid, f.Name)
	}
	return nil
}

// maxSeries keeps the product of series and rounds within 64 bits.
const maxSeries = 1 << 40

// validMetricName is narrower than Prometheus' rule, so that names need no quoting in selectors.
func validMetricName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || i > 0 && '0' <= c && c <= '9') {
			return false
		}
	}
	return s != ""
}

// Total returns the number of series.
func (f *Fleet) Total() int64 { return int64(f.Targets) * int64(f.Metrics) * int64(f.Series) }

// place returns the coordinates of a series.
func (f *Fleet) place(g int64) (target, metric, series int) {
	series = int(g % int64(f.Series))
	g /= int64(f.Series)
	return int(g / int64(f.Metrics)), int(g % int64(f.Metrics)), series
}

// number returns the number of the first series of a metric of a target.
func (f *Fleet) number(target, metric int) int64 {
	return (int64(target)*int64(f.Metrics) + int64(metric)) * int64(f.Series)
}

// label is one label of the template of a series. Its value is text, then a number of fixed width if kind is not
// constant, then more text.
type label struct {
	name, before, after string
	kind                field
}

type field uint8

const (
	constant field = iota
	targetNumber
	metricNumber
	seriesNumber
)

// labels returns the labels sorted by name. With ten constant ones, a series is about 580 bytes in remote write 1.0,
// as those of a scraped avalanche are after Prometheus has added its own labels. The seed is in the job, so that
// another seed is another set of series.
func (f *Fleet) labels() []label {
	ls := []label{
		{name: model.NameLabel, before: f.Name + "_mmmmm_", kind: metricNumber},
		{name: "instance", before: "target-", after: ".load.svc:9001", kind: targetNumber},
		{name: "job", before: f.job()},
		{name: "pod", before: "load-", after: "-ppppp", kind: targetNumber},
		{name: "region", before: "eu-north-1"},
		{name: "series_id", kind: seriesNumber},
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

// LabelsOf returns the labels of a series by name.
func (f *Fleet) LabelsOf(g int64) map[string]string {
	t, m, s := f.place(g)
	out := map[string]string{}
	for _, l := range f.labels() {
		out[l.name] = l.before + f.text(l.kind, t, m, s) + l.after
	}
	return out
}

func (f *Fleet) text(k field, target, metric, series int) string {
	switch k {
	case targetNumber:
		return padded(target, f.width(k))
	case metricNumber:
		return padded(metric, f.width(k))
	case seriesNumber:
		return padded(series, f.width(k))
	}
	return ""
}

// metricName and instance return the values of the labels that queries select by.
func (f *Fleet) metricName(metric int) string {
	return f.Name + "_mmmmm_" + padded(metric, f.width(metricNumber))
}

func (f *Fleet) instance(target int) string {
	return "target-" + padded(target, f.width(targetNumber)) + ".load.svc:9001"
}

// Selector returns a PromQL selector that only this series satisfies.
func (f *Fleet) Selector(g int64) string {
	t, m, s := f.place(g)
	return fmt.Sprintf("%s{job=%q,instance=%q,series_id=%q}", f.metricName(m), f.job(), f.instance(t), f.text(seriesNumber, t, m, s))
}

// Bits returns the value of a sample.
func (f *Fleet) Bits(g int64, round int) uint64 {
	return f.Value.Bits(f.Seed, uint64(g), uint64(round))
}
