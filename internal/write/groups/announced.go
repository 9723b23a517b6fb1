package groups

import (
	"fmt"
	"hash/fnv"
	"strconv"

	"github.com/shaledb/shale/internal/model"
)

// Name stands for the name of a metric where processes tell each other numbers of series: it is short, and a
// text whatever the name is.
func Name(metric []byte) string {
	h := fnv.New64a()
	_, _ = h.Write(metric) // no error is possible
	return strconv.FormatUint(h.Sum64(), 36)
}

// Text stands for the label sets, as numbers of series are only of the sets that were counted.
func (s *LabelSets) Text() string {
	if len(s.Sets) == 0 {
		return ""
	}
	return Name([]byte(s.String()))
}

// None reports whether there is no limit.
func (l *Limits) None() bool { return l.none() }

// Numbers are numbers of series by [Name] of their metrics, and by the label sets.
type Numbers struct {
	Metrics map[string]int64
	Sets    []int64
}

// NewNumbers returns numbers of no series.
func (l *Limits) NewNumbers() *Numbers {
	return &Numbers{Metrics: map[string]int64{}, Sets: make([]int64, len(l.Sets.Sets))}
}

// Add counts a series.
func (l *Limits) Add(n *Numbers, s model.Signal, series model.Labels) {
	if l.Metric > 0 && s == model.Metrics {
		n.Metrics[Name(series.Get(model.NameLabel))]++
	}
	for i := range l.Sets.Sets {
		if l.Sets.Sets[i].matches(series) {
			n.Sets[i]++
		}
	}
}

// Exceeds returns the limit that refuses a series on top of those that were counted, and of others of the
// same request. Without Sets, those of counted are not known.
func (l *Limits) Exceeds(counted, request *Numbers, tenant string, s model.Signal, series model.Labels) *model.LimitError {
	if l.Metric > 0 && s == model.Metrics {
		name := series.Get(model.NameLabel)
		key := Name(name)
		if n := counted.Metrics[key]; n+request.Metrics[key] >= l.Metric {
			return metricError(name, tenant, n, l.Metric)
		}
	}
	if len(counted.Sets) != len(l.Sets.Sets) {
		return nil
	}
	for i := range l.Sets.Sets {
		set := &l.Sets.Sets[i]
		if n := counted.Sets[i]; n+request.Sets[i] >= set.Series && set.matches(series) {
			return setError(set, tenant, n)
		}
	}
	return nil
}

func metricError(name []byte, tenant string, n, most int64) *model.LimitError {
	return &model.LimitError{Limit: LimitMetricSeries, Tenant: true, Text: fmt.Sprintf(
		"metric %.200s of tenant %s has %d active series and may have %d; drop unneeded series or labels, or raise the limit", name, tenant, n, most)}
}

func setError(s *LabelSet, tenant string, n int64) *model.LimitError {
	return &model.LimitError{Limit: LimitLabelSetSeries, Tenant: true, Text: fmt.Sprintf(
		"%.200s of tenant %s matches %d active series and may match %d; drop unneeded series or labels, or raise the limit", s.Match, tenant, n, s.Series)}
}
