package names

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// The bounds of a glob. Nodes are numbered in a word of bits.
const (
	maxGlobBytes    = 64 << 10
	maxGlobNodes    = 63
	maxAlternatives = 4096
)

// Glob is a compiled pattern: nodes separated by dots, as graphite-web reads them. Within a node, * stands
// for any text, ? for a character, [a-c] for one of a set, [!a] for one that is not of the set, and {a,b} for
// alternatives, which may be nested. A node that is ** stands for any number of nodes, and at the end for at
// least one. A backslash makes the following character literal.
type Glob struct {
	nodes []node
	first positions
}

// positions is a set of positions in a glob: bit i says that node i is to be matched next, and the bit after
// the last node that all are matched.
type positions uint64

// ParseGlob compiles a pattern. Its errors are of class invalid or limit.
func ParseGlob(pattern string) (*Glob, error) {
	if len(pattern) > maxGlobBytes {
		return nil, fmt.Errorf("%w: the pattern has %d bytes; at most %d are allowed", model.ErrInvalid, len(pattern), maxGlobBytes)
	}
	parts := splitNodes(pattern)
	if parts[len(parts)-1] == "**" {
		parts = append(parts, "*")
	}
	if len(parts) > maxGlobNodes {
		return nil, fmt.Errorf("%w: the pattern has %d nodes; at most %d are allowed", model.ErrInvalid, len(parts), maxGlobNodes)
	}
	g := &Glob{nodes: make([]node, 0, len(parts))}
	for _, p := range parts {
		n, err := parseNode(p)
		if err != nil {
			return nil, err
		}
		g.nodes = append(g.nodes, n)
	}
	g.first = g.closure(1)
	return g, nil
}

// splitNodes splits a pattern at its dots. An escaped dot cannot be part of a node, so it separates as well.
func splitNodes(pattern string) []string {
	var parts []string
	begin := 0
	for i := 0; i < len(pattern); i++ {
		if pattern[i] == '.' {
			end := i
			if escaped(pattern[begin:i]) {
				end--
			}
			parts, begin = append(parts, pattern[begin:end]), i+1
		}
	}
	return append(parts, pattern[begin:])
}

// escaped reports whether a text ends in a backslash that is not escaped itself.
func escaped(s string) bool {
	n := len(s) - len(strings.TrimRight(s, `\`))
	return n%2 == 1
}

// done is the position after the last node.
func (g *Glob) done() positions { return 1 << len(g.nodes) }

// closure adds the positions that are reached without a node: those after a **.
func (g *Glob) closure(p positions) positions {
	for i := range g.nodes {
		if g.nodes[i].deep && p>>i&1 == 1 {
			p |= 1 << (i + 1)
		}
	}
	return p
}

// step returns the positions after a node of a name.
func (g *Glob) step(from positions, label []byte) positions {
	var to positions
	for rest := from &^ g.done(); rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros64(uint64(rest))
		switch n := &g.nodes[i]; {
		case n.deep:
			to |= 1 << i
		case n.match(label):
			to |= 1 << (i + 1)
		}
	}
	if to == 0 {
		return 0
	}
	return g.closure(to)
}

// only returns the node to be matched next if there is one only, and else nil.
func (g *Glob) only(from positions) *node {
	if from &^= g.done(); from&(from-1) != 0 || from == 0 {
		return nil
	}
	return &g.nodes[bits.TrailingZeros64(uint64(from))]
}

// anything reports whether any node satisfies the positions, and leads to one position only, which it
// returns.
func (g *Glob) anything(from positions) (to positions, ok bool) {
	if n := g.only(from); n != nil && n.any {
		return g.closure(from &^ g.done() << 1), true
	}
	return 0, false
}

// literal returns the text with which all nodes begin that match from one position on.
func (g *Glob) literal(at positions) string {
	text := ""
	for i := bits.TrailingZeros64(uint64(at)); i < len(g.nodes); i++ {
		n := &g.nodes[i]
		if !n.one {
			return text + n.head
		}
		text += n.literal
		if i+1 < len(g.nodes) {
			text += "."
		}
	}
	return text
}
