package route

import (
	"fmt"
	"slices"

	"github.com/shaledb/shale/internal/carbonconf"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/pyregexp"
)

// rule is a section of relay-rules.conf.
type rule struct {
	pattern *pyregexp.Regexp // nil: all paths
	to      []int
	goesOn  bool
}

// parseRules parses a relay-rules.conf. The default rule comes last.
func parseRules(f *carbonconf.File, known []Destination) (rules []rule, err error) {
	var last *rule
	for _, s := range f.Sections {
		r, isDefault, err := parseRule(s, known)
		switch {
		case err != nil:
			return nil, err
		case r == nil:
		case !isDefault:
			rules = append(rules, *r)
		case last != nil:
			return nil, s.Errorf(s.Line, "there is another section with default = true: expected one")
		default:
			last = r
		}
	}
	if last == nil {
		return nil, fmt.Errorf("%w: %s: no section has default = true: expected one", model.ErrInvalid, f.Path)
	}
	return append(rules, *last), nil
}

// parseRule parses a section. It returns nil if the section has no effect.
func parseRule(s *carbonconf.Section, known []Destination) (r *rule, isDefault bool, err error) {
	list := s.Get("destinations")
	if list == nil {
		list = s.Get("servers") // its name before carbon 0.9.8
	}
	if list == nil {
		return nil, false, s.Errorf(s.Line, "destinations is missing")
	}
	r = &rule{}
	to, err := parseDestinations(list.Value)
	if err != nil {
		return nil, false, s.Errorf(list.Line, "%s: %w", list.Name, err)
	}
	for _, d := range to {
		i := slices.Index(known, d)
		if i < 0 {
			// Carbon drops these points without a word.
			return nil, false, s.Errorf(list.Line, "%s: %s is not one of DESTINATIONS in carbon.conf", list.Name, d)
		}
		r.to = append(r.to, i)
	}
	pattern, def, goesOn := s.Get("pattern"), s.Get("default"), s.Get("continue")
	switch {
	case pattern != nil && def != nil:
		return nil, false, s.Errorf(def.Line, "the section has both pattern and default: expected one of them")
	case pattern == nil && def == nil:
		return nil, false, s.Errorf(s.Line, "expected pattern or default")
	case def != nil:
		if isDefault, err = parseBool(def.Value); err != nil {
			return nil, false, s.Errorf(def.Line, "default: %w", err)
		}
		if !isDefault {
			return nil, false, nil
		}
		return r, true, nil
	}
	if r.pattern, err = pyregexp.Compile(pattern.Value, true); err != nil {
		return nil, false, s.Errorf(pattern.Line, "pattern: %w", err)
	}
	if goesOn != nil {
		if r.goesOn, err = parseBool(goesOn.Value); err != nil {
			return nil, false, s.Errorf(goesOn.Line, "continue: %w", err)
		}
	}
	return r, false, nil
}
