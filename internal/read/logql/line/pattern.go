package line

import (
	"bytes"

	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// patternNode is a literal or a capture of a pattern. The unnamed capture is called _.
type patternNode struct {
	literal []byte // nil: a capture
	name    string
}

func (n *patternNode) unnamed() bool { return n.name == "_" }

func patternNodes(pieces []syntax.PatternPiece) []patternNode {
	var nodes []patternNode
	for _, p := range pieces {
		if p.Capture {
			nodes = append(nodes, patternNode{name: p.Text})
		} else {
			nodes = append(nodes, patternNode{literal: []byte(p.Text)})
		}
	}
	return nodes
}

// patternTest is the pattern of a line filter.
type patternTest []patternNode

func newPatternTest(s string) (regexpTest, error) {
	pieces, err := syntax.ParseLinePattern(s)
	if err != nil {
		return regexpTest{}, err
	}
	nodes := patternNodes(pieces)
	t := regexpTest{test: patternTest(nodes)}
	for i := range nodes {
		if nodes[i].literal != nil {
			t.needed = append(t.needed, clause{{text: nodes[i].literal}})
		}
	}
	return t, nil
}

// holds finds the literals one behind the other, each at its first place, with something between any two of them. There must
// be something behind the last one exactly if the pattern says so; before the first one there may be.
func (t patternTest) holds(line []byte) bool {
	if len(line) == 0 || len(t) == 0 {
		return len(line) == 0 && len(t) == 0
	}
	rest := line
	for i := range t {
		if t[i].literal == nil {
			continue
		}
		at := bytes.Index(rest, t[i].literal)
		if at < 0 || at == 0 && i > 0 {
			return false
		}
		rest = rest[at+len(t[i].literal):]
	}
	return (t[len(t)-1].literal == nil) == (len(rest) > 0)
}

// patternParser is | pattern.
type patternParser struct {
	nodes []patternNode
}

func newPatternParser(s string) (*patternParser, error) {
	pieces, err := syntax.ParsePattern(s)
	if err != nil {
		return nil, err
	}
	return &patternParser{patternNodes(pieces)}, nil
}

// run takes what lies between the literals. Where a literal is missing, its capture takes all that is left, and those behind it
// nothing.
func (p *patternParser) run(r *Runner, line []byte) ([]byte, bool) {
	if len(line) == 0 {
		return line, true
	}
	rest, nodes := line, p.nodes
	if nodes[0].literal != nil {
		if !bytes.HasPrefix(rest, nodes[0].literal) {
			return line, true
		}
		rest, nodes = rest[len(nodes[0].literal):], nodes[1:]
	}
	for len(nodes) > 0 {
		found, after := rest, -1
		if len(nodes) > 1 {
			if at := bytes.Index(rest, nodes[1].literal); at >= 0 {
				found, after = rest[:at], at+len(nodes[1].literal)
			}
		}
		if !nodes[0].unnamed() && !r.extract(nodes[0].name, text(found)) {
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
		if n.literal == nil {
			names = append(names, n.name)
		}
	}
	return names
}
