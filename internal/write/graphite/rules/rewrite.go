package rules

import (
	"strings"

	"github.com/shaledb/shale/internal/carbonconf"
	"github.com/shaledb/shale/internal/pyregexp"
)

// Rewrites replace parts of paths, one rule after the other.
type Rewrites []*pyregexp.Template

// Rewriting is a rewrite-rules.conf: its rules for received paths, and those for paths that have passed
// aggregation. Paths of aggregates are not rewritten, as in carbon.
type Rewriting struct{ Pre, Post Rewrites }

// ParseRewriting parses a file. As in carbon, a section that occurs again replaces the one before.
func ParseRewriting(path string, text []byte) (Rewriting, error) {
	var r Rewriting
	var section *Rewrites
	err := carbonconf.Lines(path, text, func(n int, line string) error {
		if line[0] == '[' && line[len(line)-1] == ']' {
			switch name := strings.ToLower(line[1 : len(line)-1]); name {
			case "pre":
				section = &r.Pre
			case "post":
				section = &r.Post
			default:
				return carbonconf.Errorf(path, n, "expected the section [pre] or [post], found [%s]", name)
			}
			*section = nil
			return nil
		}
		from, to, ok := strings.Cut(line, "=")
		switch {
		case !ok:
			return carbonconf.Errorf(path, n, "expected a section or a rule such as _sum$ = _total, found %q", carbonconf.Short(line))
		case section == nil:
			return carbonconf.Errorf(path, n, "expected the section [pre] or [post] before the first rule")
		}
		re, err := pyregexp.Compile(strings.TrimSpace(from), false)
		if err != nil {
			return carbonconf.Errorf(path, n, "%w", err)
		}
		t, err := re.Template(strings.TrimSpace(to))
		if err != nil {
			return carbonconf.Errorf(path, n, "%w", err)
		}
		*section = append(*section, t)
		return nil
	})
	return r, err
}

// Apply rewrites a path. REQUIRES: it is valid UTF-8.
func (r Rewrites) Apply(path string) (string, error) {
	for _, t := range r {
		var err error
		if path, err = t.Replace(path); err != nil {
			return "", err
		}
	}
	return path, nil
}
