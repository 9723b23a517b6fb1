package match

import (
	"bytes"

	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// PatternNode is a literal or a capture of a pattern. The unnamed capture is called _.
type PatternNode struct {
	Literal []byte // nil: a capture
	Name    string
}

func (n *PatternNode) Unnamed() bool { return n.Name == "_" }

func PatternNodes(pieces []syntax.PatternPiece) []PatternNode {
	var nodes []PatternNode
	for _, p := range pieces {
		if p.Capture {
			nodes = append(nodes, PatternNode{Name: p.Text})
		} else {
			nodes = append(nodes, PatternNode{Literal: []byte(p.Text)})
		}
	}
	return nodes
}

// patternTest is the pattern of a line filter.
type patternTest []PatternNode

func newPatternTest(s string) (regexpTest, error) {
	pieces, err := syntax.ParseLinePattern(s)
	if err != nil {
		return regexpTest{}, err
	}
	nodes := PatternNodes(pieces)
	t := regexpTest{test: patternTest(nodes)}
	for i := range nodes {
		if nodes[i].Literal != nil {
			t.needed = append(t.needed, Clause{{text: nodes[i].Literal}})
		}
	}
	return t, nil
}

// Matches finds the literals one after the other, each at its first place, with something between any two of
// them. There must be something after the last one exactly if the pattern says so; before the first one there
// may be.
func (t patternTest) Matches(line []byte) bool {
	if len(line) == 0 || len(t) == 0 {
		return len(line) == 0 && len(t) == 0
	}
	rest := line
	for i := range t {
		if t[i].Literal == nil {
			continue
		}
		at := bytes.Index(rest, t[i].Literal)
		if at < 0 || at == 0 && i > 0 {
			return false
		}
		rest = rest[at+len(t[i].Literal):]
	}
	return (t[len(t)-1].Literal == nil) == (len(rest) > 0)
}
