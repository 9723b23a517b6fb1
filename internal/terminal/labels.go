package terminal

import (
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
)

// Selector writes labels as a selector: name{a="b"}. It leaves out the labels in without.
func Selector(labels, without map[string]string) string {
	name, named := labels[model.MetricNameLabel]
	plain := model.LegacyValidation.IsValidMetricName(name)
	var pairs []string
	for label, value := range labels {
		_, left := without[label]
		switch {
		case left, label == model.MetricNameLabel && plain:
		case label == model.MetricNameLabel:
			pairs = append(pairs, strconv.Quote(value))
		default:
			pairs = append(pairs, labelName(label)+"="+strconv.Quote(value))
		}
	}
	slices.Sort(pairs)
	switch {
	case !named || !plain:
		name = ""
	case len(pairs) == 0:
		return name
	}
	return name + "{" + strings.Join(pairs, ", ") + "}"
}

func labelName(name string) string {
	if model.LegacyValidation.IsValidLabelName(name) {
		return name
	}
	return strconv.Quote(name)
}

// Common finds the labels that all rows share. The zero value has seen none.
type Common struct {
	// Labels are those of all rows so far, without a metric's name. They only become fewer.
	Labels map[string]string
	begun  bool
}

// Narrow adds the labels of a row, and reports whether fewer are common than before. The first row changes
// nothing: all of its labels are common.
func (c *Common) Narrow(labels map[string]string) (fewer bool) {
	if !c.begun {
		c.begun, c.Labels = true, make(map[string]string, len(labels))
		for name, value := range labels {
			if name != model.MetricNameLabel {
				c.Labels[name] = value
			}
		}
		return false
	}
	for name, value := range c.Labels {
		if other, ok := labels[name]; !ok || other != value {
			delete(c.Labels, name)
			fewer = true
		}
	}
	return fewer
}
