package line

// regexpParser is | regexp: the named groups become labels, empty ones where a group takes no part in the match.
type regexpParser struct {
	re    matcher
	names []string // by group; empty: not named
	needs []clause
}

func newRegexpParser(expr string) (*regexpParser, error) {
	parsed, err := parseRegexp(expr)
	if err != nil {
		return nil, err
	}
	re, err := compileRegexp(expr)
	if err != nil {
		return nil, err
	}
	p := &regexpParser{re: matcher{re, programSize(parsed) * (1 + re.NumSubexp()/64)}, needs: required(parsed)}
	seen := map[string]bool{}
	for _, name := range re.SubexpNames() {
		if name != "" && seen[name] {
			return nil, invalidf("duplicate extracted label name '%s'", name)
		}
		seen[name] = true
		p.names = append(p.names, string(appendSanitized(nil, []byte(name), true)))
	}
	if len(seen) < 2 {
		return nil, invalidf("at least one named capture must be supplied")
	}
	return p, nil
}

func (p *regexpParser) run(r *Runner, line []byte) ([]byte, bool) {
	for i := range p.needs {
		if !p.needs[i].holds(line) {
			return line, true
		}
	}
	places := p.re.groups(line, r.stop)
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
