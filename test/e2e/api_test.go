//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/client"
)

// sample is a stamp in Unix milliseconds and a value.
type sample struct {
	ms    int64
	value float64
}

// same compares bit for bit, except NaN, whose payload JSON does not carry.
func (s sample) same(o sample) bool {
	return s.ms == o.ms && (math.Float64bits(s.value) == math.Float64bits(o.value) || math.IsNaN(s.value) && math.IsNaN(o.value))
}

func (s sample) String() string {
	return fmt.Sprintf("%s at %s", strconv.FormatFloat(s.value, 'g', -1, 64), time.UnixMilli(s.ms).UTC().Format("15:04:05.000"))
}

// seriesSet holds samples by the text of their labels.
type seriesSet map[string][]sample

func (s seriesSet) samples() int {
	n := 0
	for _, list := range s {
		n += len(list)
	}
	return n
}

// api returns a server to query.
func api(base string) *client.Server { return &client.Server{URL: base} }

// metricNames lists the names of all metrics.
func metricNames(base string) ([]string, error) {
	names, err := api(base).LabelValues(context.Background(), "__name__")
	sort.Strings(names)
	return names, err
}

// rawSelector selects the stored samples between two times, in a query at the second of them.
func rawSelector(selector string, from, to time.Time) string {
	return fmt.Sprintf("%s[%dms]", selector, to.Sub(from).Milliseconds())
}

// rawSamples returns what one selector finds between two times, as it was stored.
func rawSamples(base, selector string, from, to time.Time) (seriesSet, error) {
	found, err := api(base).Query(context.Background(), rawSelector(selector, from, to), to.UnixMilli())
	if err != nil {
		return nil, err
	}
	set := seriesSet{}
	for _, series := range found {
		list := make([]sample, len(series.Values))
		for i, v := range series.Values {
			list[i] = sample{v.Ms, math.Float64frombits(v.Bits)}
		}
		set[labelText(series.Metric)] = list
	}
	return set, nil
}

func labelText(m map[string]string) string {
	var pairs []string
	for k, v := range m {
		pairs = append(pairs, k+"="+strconv.Quote(v))
	}
	sort.Strings(pairs)
	return "{" + strings.Join(pairs, ",") + "}"
}

// selector selects all series of one name.
func selector(name string) string { return "{__name__=" + strconv.Quote(name) + "}" }
