package line

import (
	"bytes"

	"github.com/shaledb/shale/internal/read/logql/line/match"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// patternParser is | pattern.
type patternParser struct {
	nodes []match.PatternNode
}

func newPatternParser(s string) (*patternParser, error) {
	pieces, err := syntax.ParsePattern(s)
	if err != nil {
		return nil, err
	}
	return &patternParser{match.PatternNodes(pieces)}, nil
}

// run takes what lies between the literals. Where a literal is missing, its capture takes all that is left,
// and later captures take nothing.
func (p *patternParser) run(r *Runner, line []byte) ([]byte, bool) {
	if len(line) == 0 || r.parsed() {
		return line, true
	}
	rest, nodes := line, p.nodes
	if nodes[0].Literal != nil {
		if !bytes.HasPrefix(rest, nodes[0].Literal) {
			return line, true
		}
		rest, nodes = rest[len(nodes[0].Literal):], nodes[1:]
	}
	for len(nodes) > 0 {
		found, after := rest, -1
		if len(nodes) > 1 {
			if at := bytes.Index(rest, nodes[1].Literal); at >= 0 {
				found, after = rest[:at], at+len(nodes[1].Literal)
			}
		}
		if !nodes[0].Unnamed() && !r.extract(nodes[0].Name, text(found)) {
			return line, false
		}
		if after < 0 {
			break
		}
		rest, nodes = rest[after:], nodes[2:]
	}
	return line, true
}

// labels returns the names that the parser may set.
func (p *patternParser) labels() []string {
	var names []string
	for _, n := range p.nodes {
		if n.Literal == nil {
			names = append(names, n.Name)
		}
	}
	return names
}
