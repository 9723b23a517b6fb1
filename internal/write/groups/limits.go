package groups

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/shaledb/shale/internal/model"
)

// The limits that errors name.
const (
	LimitMetricSeries   = "limits.metric-series"
	LimitLabelSetSeries = "limits.label-set-series"
)

// Limits bound the active series of each group of a tenant. Zero means no limit. The tags make the fields
// settings: see package config.
type Limits struct {
	Metric int64     `name:"limits.metric-series" tenant:"own" type:"count" default:"0" placeholder:"N" min:"0" help:"Most active series of each metric of each tenant. Known series are not held back. 0: no limit but limits.tenant-series."`
	Sets   LabelSets `name:"limits.label-set-series" tenant:"own" default:"" placeholder:"LIST" help:"Most active series that selectors match, of each tenant: a list such as [{match: '{team=\"a\"}', series: 100000}]. A series counts for each selector that matches it, of metrics and of log streams. Known series are not held back."`
}

// none reports whether there is no limit.
func (l *Limits) none() bool { return l.Metric <= 0 && len(l.Sets.Sets) == 0 }

// maxSets bounds the selectors of a tenant, since each is evaluated for each new series.
const maxSets = 64

// LabelSet bounds the series that a selector matches.
type LabelSet struct {
	// Match is a selector such as {team="a"}.
	Match  string `json:"match"`
	Series int64  `json:"series"`

	matchers []*labels.Matcher
}

// LabelSets is the setting. Its text is a YAML or JSON list of label sets.
type LabelSets struct{ Sets []LabelSet }

// UnmarshalText parses and validates a list. An error names the entry by its number, from 1.
func (s *LabelSets) UnmarshalText(text []byte) error {
	s.Sets = nil
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	if err := yaml.UnmarshalWithOptions(text, &s.Sets, yaml.DisallowUnknownField()); err != nil {
		return fmt.Errorf("expected a list such as [{match: '{team=\"a\"}', series: 100000}]: %s", yaml.FormatError(err, false, false))
	}
	if len(s.Sets) > maxSets {
		return fmt.Errorf("expected at most %d selectors, got %d", maxSets, len(s.Sets))
	}
	for i := range s.Sets {
		set := &s.Sets[i]
		ms, err := parser.NewParser(parser.Options{}).ParseMetricSelector(set.Match)
		switch {
		case err != nil:
			return fmt.Errorf("entry %d: match: %q is not a selector such as {team=\"a\"}: %w", i+1, set.Match, err)
		case set.Series < 1:
			return fmt.Errorf("entry %d: series: %d is too small: must be at least 1", i+1, set.Series)
		}
		set.matchers = ms
	}
	return nil
}

// String returns the list in the form that UnmarshalText reads.
func (s LabelSets) String() string {
	if len(s.Sets) == 0 {
		return ""
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s.Sets); err != nil {
		panic("BUG: texts and numbers have a form in JSON: " + err.Error())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// IsList says that the value of the setting is a list.
func (LabelSets) IsList() {}

func (s *LabelSet) matches(l model.Labels) bool {
	for _, m := range s.matchers {
		if !m.Matches(string(l.Get(m.Name))) {
			return false
		}
	}
	return true
}
