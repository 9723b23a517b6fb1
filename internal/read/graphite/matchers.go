package graphite

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/pyregexp"
	"github.com/shaledb/shale/internal/read/graphite/function"
)

func equal(label, value string) model.Matcher {
	return model.Matcher{Name: label, Op: model.MatchEqual, Value: value, Match: func(v string) bool { return v == value }}
}

// labelOf returns the label of a tag.
func labelOf(tag string) string {
	switch tag {
	case "name":
		return nameLabel
	case "exported_name":
		return "name"
	}
	return tag
}

// exactTags matches one series by all of its tags.
func exactTags(tags map[string]string) []model.Matcher {
	var ms []model.Matcher
	for _, tag := range sortedKeys(tags) {
		ms = append(ms, equal(labelOf(tag), tags[tag]))
	}
	return ms
}

// tagMatchers reads the expressions of seriesByTag: tag=value, tag!=value, tag=~regex, tag!=~regex. A
// regular expression must match at the start of the value. Once the matchers were used, late says whether
// one of them took too long, and so was wrong.
func tagMatchers(expressions []string) (ms []model.Matcher, late func() error, err error) {
	var patterns []*pyregexp.Regexp
	required := false
	for _, e := range expressions {
		i := strings.IndexAny(e, "=!")
		if i < 1 {
			return nil, nil, fmt.Errorf("%w: seriesByTag: expected tag=value, tag!=value, tag=~regex or tag!=~regex, found %q", model.ErrInvalid, e)
		}
		m := model.Matcher{Name: labelOf(e[:i])}
		op := strings.TrimLeft(e[i:], "=!~")
		text := e[i : len(e)-len(op)]
		// The operator is the longest beginning that is one; what follows belongs to the value.
		for _, known := range []struct {
			text string
			op   model.MatchOp
		}{{"!=~", model.MatchNotRegexp}, {"!=", model.MatchNotEqual}, {"=~", model.MatchRegexp}, {"=", model.MatchEqual}} {
			if strings.HasPrefix(text, known.text) {
				m.Op, m.Value = known.op, e[i+len(known.text):]
				text = ""
				break
			}
		}
		if text != "" {
			return nil, nil, fmt.Errorf("%w: seriesByTag: expected tag=value, tag!=value, tag=~regex or tag!=~regex, found %q", model.ErrInvalid, e)
		}
		re, err := compile(&m)
		if err != nil {
			return nil, nil, err
		}
		if re != nil {
			patterns = append(patterns, re)
		}
		required = required || !m.Match("")
		ms = append(ms, m)
	}
	if !required {
		return nil, nil, fmt.Errorf("%w: At least one tagspec must require a non-empty value", model.ErrInvalid)
	}
	return ms, func() error {
		for _, re := range patterns {
			if err := re.Err(); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// compile sets the function of a matcher, and returns the regular expression that it calls, if there is one.
func compile(m *model.Matcher) (*pyregexp.Regexp, error) {
	value := m.Value
	switch m.Op {
	case model.MatchEqual:
		m.Match = func(v string) bool { return v == value }
		return nil, nil
	case model.MatchNotEqual:
		m.Match = func(v string) bool { return v != value }
		return nil, nil
	}
	re, err := function.CompileRegexp("^(?:" + value + ")")
	if err != nil {
		return nil, err
	}
	want := m.Op == model.MatchRegexp
	m.Match = func(v string) bool {
		found, err := re.Search(v)
		return err == nil && found == want
	}
	return re, nil
}

// namesMatcher matches the names that a glob means.
func namesMatcher(glob string, names []string) model.Matcher {
	set := make(map[string]struct{}, len(names))
	for _, n := range names {
		set[n] = struct{}{}
	}
	match := func(name string) bool { _, ok := set[name]; return ok }
	return model.Matcher{Name: nameLabel, Op: model.MatchRegexp, Value: glob, Set: names, Match: match}
}

// globMatcher matches names by a glob itself.
func globMatcher(glob string) (model.Matcher, error) {
	re, prefix, err := compileGlob(glob)
	if err != nil {
		return model.Matcher{}, err
	}
	return model.Matcher{Name: nameLabel, Op: model.MatchRegexp, Value: re.String(), Match: re.MatchString, Prefix: prefix}, nil
}

func isGlob(path string) bool { return strings.ContainsAny(path, "*?[{\\") }

// compileGlob makes a regular expression of a glob, and returns the literal text at its beginning.
func compileGlob(glob string) (*regexp.Regexp, string, error) {
	var b strings.Builder
	b.WriteString(`\A(?:`)
	depth, prefix := 0, ""
	for i := 0; i < len(glob); i++ {
		switch c := glob[i]; c {
		case '*':
			if strings.HasPrefix(glob[i:], "**") {
				b.WriteString(".*")
				i++
			} else {
				b.WriteString("[^.]*")
			}
		case '?':
			b.WriteString("[^.]")
		case '{':
			depth++
			b.WriteString("(?:")
		case '}':
			depth--
			b.WriteString(")")
		case ',':
			if depth > 0 {
				b.WriteString("|")
			} else {
				b.WriteString(",")
			}
		case '[':
			end := strings.IndexByte(glob[i+1:], ']')
			if end < 1 {
				b.WriteString(`\[`)
				continue
			}
			set := glob[i+1 : i+1+end]
			negated := strings.HasPrefix(set, "!")
			set = strings.NewReplacer(`\`, `\\`, "^", `\^`, "[", `\[`).Replace(strings.TrimPrefix(set, "!"))
			if negated {
				set = "^." + set
			}
			b.WriteString("[" + set + "]")
			i += 1 + end
		default:
			if i == len(prefix) {
				prefix = glob[:i+1]
			}
			b.WriteString(regexp.QuoteMeta(glob[i : i+1]))
		}
	}
	b.WriteString(`)\z`)
	re, err := regexp.Compile(b.String())
	if err != nil {
		return nil, "", fmt.Errorf("%w: path %q: %w", model.ErrInvalid, glob, err)
	}
	return re, prefix, nil
}
