package logql

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/shaledb/shale/internal/model"
)

// DetectedLabel is a label that is worth showing to people.
type DetectedLabel struct {
	Name        string
	Cardinality int // how many values it has
}

// DetectedLabels returns the labels of the selected streams, sorted by name, without those whose values are
// all identifiers. Each tenant's labels are judged alone, and then united. No line is read.
func (e *Engine) DetectedLabels(ctx context.Context, s *Selection) ([]DetectedLabel, error) {
	values := make(map[string][]string)
	err := s.each(func(_ string, req *model.Request) error {
		all, err := e.read.Labels(ctx, req)
		if err != nil {
			return err
		}
		for name, found := range all {
			if name == TenantLabel && len(s.Tenants) > 1 {
				continue // the stream's own, which has another name here
			}
			if isPlace(name) || !areIdentifiers(found) {
				values[name] = append(values[name], found...)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := make([]DetectedLabel, 0, len(values))
	for name, all := range values {
		out = append(out, DetectedLabel{name, len(sortedOnce(all))})
	}
	slices.SortFunc(out, func(a, b DetectedLabel) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// isPlace reports whether a label says where lines come from. People look for those whatever their values.
func isPlace(name string) bool {
	switch name {
	case "cluster", "namespace", "instance", "pod":
		return true
	}
	return false
}

// areIdentifiers reports whether all values are numbers or UUIDs. Up to two values of 0 and 1 are a flag.
func areIdentifiers(values []string) bool {
	if len(values) <= 2 && !slices.ContainsFunc(values, func(v string) bool { return v != "0" && v != "1" }) {
		return len(values) == 0
	}
	return !slices.ContainsFunc(values, func(v string) bool {
		if _, err := strconv.ParseFloat(v, 64); err == nil {
			return false
		}
		_, err := uuid.Parse(v)
		return err != nil
	})
}
