package logql

import (
	"context"
	"slices"

	"github.com/shaledb/shale/internal/model"
)

// Selection selects streams.
type Selection struct {
	Tenants   []string
	Selectors []Selector // a stream must satisfy one of them; none: all streams
	Range     model.TimeRange
	Quota     *model.Quota
	Cost      *model.Cost
}

// each calls visit with a request for each selector and tenant of a selection.
func (s *Selection) each(visit func(tenant string, req *model.Request) error) error {
	all := s.Selectors
	if len(all) == 0 {
		all = []Selector{{}}
	}
	for _, sel := range all {
		chosen, matchers := selectors(sel.matchers, s.Tenants)
		for _, t := range chosen {
			req := &model.Request{
				Tenant: t, Signal: model.Logs, Family: model.Text, Matchers: matchers, Range: s.Range, LabelsOnly: true,
				Quota: s.Quota, Cost: s.Cost,
			}
			if err := visit(t, req); err != nil {
				return err
			}
		}
	}
	return nil
}

// LabelNames returns the sorted names of the labels of the selected streams. As in Loki, those of several
// tenants do not have the name under which a stream's own label of the tenant is shown.
func (e *Engine) LabelNames(ctx context.Context, s *Selection) ([]string, error) {
	var all []string
	err := s.each(func(_ string, req *model.Request) error {
		names, _, err := e.read.LabelNames(ctx, req, 0)
		all = append(all, names...)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(s.Tenants) > 1 && len(all) > 0 {
		all = append(all, TenantLabel)
	}
	return sortedOnce(all), nil
}

// LabelValues returns the sorted values of one label of the selected streams.
func (e *Engine) LabelValues(ctx context.Context, s *Selection, name string) ([]string, error) {
	ofTenants := len(s.Tenants) > 1 && name == TenantLabel
	var all []string
	err := s.each(func(tenant string, req *model.Request) error {
		if ofTenants {
			all = append(all, tenant)
			return nil
		}
		values, _, err := e.read.LabelValues(ctx, req, name, 0)
		all = append(all, values...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return sortedOnce(all), nil
}

func sortedOnce(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}

// Series returns the labels of the selected streams, each once, in the order of their text.
func (e *Engine) Series(ctx context.Context, s *Selection) ([]model.Labels, error) {
	seen := make(map[string]bool)
	var all []string
	var p pairs
	err := s.each(func(tenant string, req *model.Request) error {
		set, err := e.read.Select(ctx, req)
		if err != nil {
			return err
		}
		defer set.Close()
		var key []byte
		for set.Next(ctx) {
			key = append(key[:0], set.Labels()...)
			if len(s.Tenants) > 1 {
				p.reset()
				p.add(set.Labels())
				p.setTenant(tenant)
				key = p.append(key[:0])
			}
			if !seen[string(key)] {
				own := string(key)
				seen[own] = true
				all = append(all, own)
			}
		}
		return set.Err()
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(all)
	out := make([]model.Labels, len(all))
	for i, l := range all {
		out[i] = model.Labels(l)
	}
	return out, nil
}
