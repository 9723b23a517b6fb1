package rename

import (
	"fmt"
	"math"
	"math/big"
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"

	"github.com/shaledb/shale/internal/pyregexp"
	"github.com/shaledb/shale/internal/read/graphite/function"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// each returns the list after a change of its series.
func each(change func(c *function.Call, s *series.Series) error) function.Body {
	return func(c *function.Call) (any, error) {
		list := c.List(0)
		for _, s := range list {
			if err := c.Check(1); err != nil {
				return nil, err
			}
			if err := change(c, s); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
}

func alias(c *function.Call, s *series.Series) error {
	s.Name = c.Text(1)
	return nil
}

// aliasByNode serves nodes and tags. They are the rest of the arguments.
func aliasByNode(c *function.Call, s *series.Series) error {
	s.Name = function.Key(s, c.Rest(1))
	return nil
}

// substitution compiles the regular expression and the replacement in two arguments.
func substitution(c *function.Call, search, replace int) (*pyregexp.Template, error) {
	r, err := function.CompileRegexp(c.Text(search))
	if err != nil {
		return nil, c.Errorf("%w", err)
	}
	t, err := r.Template(c.Text(replace))
	if err != nil {
		return nil, c.Errorf("%w", err)
	}
	return t, nil
}

func aliasSub(c *function.Call) (any, error) {
	if len(c.List(0)) == 0 {
		return c.List(0), nil // without a name, graphite-web does not look at the expressions
	}
	t, err := substitution(c, 1, 2)
	if err != nil {
		return nil, err
	}
	return each(func(c *function.Call, s *series.Series) (err error) {
		s.Name, err = t.Replace(s.Name)
		return err
	})(c)
}

// aliasQuery puts the last value of a query into a name.
func aliasQuery(c *function.Call) (any, error) {
	if len(c.List(0)) == 0 {
		return c.List(0), nil
	}
	t, err := substitution(c, 1, 2)
	if err != nil {
		return nil, err
	}
	return each(func(c *function.Call, s *series.Series) error {
		query, err := t.Replace(s.Name)
		if err != nil {
			return err
		}
		found, err := c.Target(c, query)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return c.Errorf("No series found with query: %s", query)
		}
		last := series.Last(found[0].Values)
		if series.IsNull(last) {
			return c.Errorf("Cannot get last value of series: %s", found[0].Name)
		}
		s.Name, err = format(c, c.Text(3), last)
		return err
	})(c)
}

// format writes a number in the place of the only % of a template, as Python's % operator does.
func format(c *function.Call, template string, v float64) (string, error) {
	var b strings.Builder
	used := false
	for i := 0; i < len(template); i++ {
		if template[i] != '%' {
			b.WriteByte(template[i])
			continue
		}
		end := i + 1
		for end < len(template) && strings.IndexByte("-+ #0123456789.", template[end]) >= 0 {
			end++
		}
		if end == len(template) || end-i > 10 {
			return "", c.Errorf("expected a format such as %%d after %% in newName, found %q", template[i:])
		}
		spec := template[i:end]
		switch verb := template[end]; verb {
		case '%':
			b.WriteByte('%')
			i = end
			continue
		case 'd', 'i', 'u':
			if math.IsInf(v, 0) || math.IsNaN(v) {
				return "", c.Errorf("expected a finite number for %%%c in newName, found %v", verb, v)
			}
			whole, _ := big.NewFloat(v).Int(nil) // Python's integers have no end
			fmt.Fprintf(&b, spec+"d", whole)
		case 'f', 'F', 'e', 'E':
			fmt.Fprintf(&b, spec+string(verb), v)
		case 'g', 'G':
			if !strings.Contains(spec, ".") {
				spec += ".6"
			}
			fmt.Fprintf(&b, spec+string(verb), v)
		case 's', 'r':
			fmt.Fprintf(&b, spec+"s", series.Shortest(v))
		default:
			return "", c.Errorf("expected a format such as %%d after %% in newName, found %q", template[i:])
		}
		if used {
			return "", c.Errorf("expected one format in newName, found more: %q", template)
		}
		used, i = true, end
	}
	if !used {
		return "", c.Errorf("expected a format such as %%d in newName, found %q", template)
	}
	return b.String(), nil
}

// Substr cuts nodes out of a name. Of a call, it takes what lies between the last opening and the first
// closing parenthesis, up to a comma.
func Substr(s *series.Series, start, stop int64) {
	name := s.Name
	left := strings.LastIndexByte(name, '(') + 1
	right := strings.IndexByte(name, ')')
	if right < 0 {
		right = len(name)
	}
	clean := ""
	if left < right {
		clean = name[left:right]
	}
	nodes := strings.Split(clean, ".")
	at := func(i int64) int {
		if i < 0 {
			i += int64(len(nodes))
		}
		return int(max(0, min(i, int64(len(nodes)))))
	}
	from, to := at(start), len(nodes)
	if stop != 0 {
		to = at(stop)
	}
	s.Name = strings.Join(nodes[from:max(from, to)], ".")
	if i := strings.IndexByte(s.Name, ','); i >= 0 {
		s.Name = s.Name[:i]
	}
}

// letters changes the case of a whole name, or of the characters at some positions.
func letters(change func(string) string) function.Body {
	return each(func(c *function.Call, s *series.Series) error {
		positions := c.Rest(1)
		if len(positions) == 0 {
			s.Name = change(s.Name)
			return nil
		}
		chars := strings.Split(s.Name, "") // of which one may become two
		for i := range positions {
			at := c.Int(1 + i)
			if at < 0 {
				at += int64(len(chars))
			}
			if at >= 0 && at < int64(len(chars)) {
				chars[at] = change(chars[at])
			}
		}
		s.Name = strings.Join(chars, "")
		return nil
	})
}

var (
	upper = letters(func(s string) string { return cases.Upper(language.Und).String(s) })
	lower = letters(func(s string) string { return cases.Lower(language.Und).String(s) })
)
