package line

import (
	"github.com/shaledb/shale/internal/read/logql/line/extract"
	"github.com/shaledb/shale/internal/read/logql/line/match"
)

// regexpParser is | regexp: the named groups become labels, empty ones where a group takes no part in the
// match.
type regexpParser struct {
	re    *match.Matcher
	names []string // by group; empty: not named
	needs []match.Clause
}

func newRegexpParser(expr string) (*regexpParser, error) {
	m, parsed, err := match.NewMatcher(expr)
	if err != nil {
		return nil, err
	}
	p := &regexpParser{re: m, needs: match.Required(parsed)}
	seen := map[string]bool{}
	for _, name := range m.Regexp.SubexpNames() {
		if name != "" && seen[name] {
			return nil, invalidf("duplicate extracted label name '%s'", name)
		}
		seen[name] = true
		p.names = append(p.names, string(extract.AppendName(nil, []byte(name), true)))
	}
	if len(seen) < 2 {
		return nil, invalidf("at least one named capture must be supplied")
	}
	return p, nil
}

func (p *regexpParser) run(r *Runner, line []byte) ([]byte, bool) {
	for i := range p.needs {
		if !p.needs[i].Matches(line) {
			return line, true
		}
	}
	places := p.re.Groups(line, r.stop)
	if r.limit != nil {
		return line, false
	}
	for i := 1; 2*i < len(places); i++ {
		if p.names[i] == "" {
			continue
		}
		value := ""
		if begin, end := places[2*i], places[2*i+1]; begin >= 0 {
			value = text(line[begin:end])
		}
		if !r.extract(p.names[i], value) {
			return line, false
		}
	}
	return line, true
}
