package names

import (
	"bytes"
	"context"

	"github.com/shaledb/shale/internal/model"
)

// scan looks for the nodes that satisfy a glob in the sorted names of a part. It leaves out whole branches
// that the glob cannot match, so that a glob with a literal beginning reads few pages.
type scan struct {
	g    *Glob
	emit emit
	// last is the name before, and levels are its nodes.
	last   []byte
	levels []scanLevel
	from   []byte
}

// scanLevel is a node of the name: where it ends, and the positions of the glob after it.
type scanLevel struct {
	end int
	at  positions
}

// seekCost is about the cost of a seek in names that are looked at.
const seekCost = 16

// run scans, and returns about how many names it has looked at.
func (s *scan) run(ctx context.Context, w model.NameWalk) (looked int, err error) {
	ok := w.Seek([]byte(s.prefix()))
	for steps := 0; ok; steps++ {
		if steps%1024 == 0 && ctx.Err() != nil {
			return looked, ctx.Err()
		}
		skip, err := s.visit(w.Name())
		switch {
		case err != nil:
			return looked, err
		case skip == nil:
			looked++
			ok = w.Next()
		case len(skip) == 0:
			return looked, nil
		default:
			looked += seekCost
			ok = w.Seek(skip)
		}
	}
	return looked, w.Err()
}

// prefix returns the literal text with which all matches begin.
func (s *scan) prefix() string {
	text := ""
	for i := range s.g.nodes {
		n := &s.g.nodes[i]
		if !n.one {
			return text + n.head
		}
		text += n.literal
		if i+1 < len(s.g.nodes) {
			text += "."
		}
	}
	return text
}

// visit looks at a name. It returns the least text that a further match may have; nil: the next name may be
// one; empty: there is none.
func (s *scan) visit(name []byte) (skip []byte, err error) {
	shared := sharedLength(s.last, name)
	n := 0
	for n < len(s.levels) && s.levels[n].end < shared {
		n++
	}
	s.levels = s.levels[:n]
	s.last = append(s.last[:0], name...)
	at, begin := s.g.first, 0
	if n > 0 {
		at, begin = s.levels[n-1].at, s.levels[n-1].end+1
	}
	for {
		i := bytes.IndexByte(name[begin:], '.')
		leaf := i < 0
		end := len(name)
		if !leaf {
			end = begin + i
		}
		next := s.g.step(at, name[begin:end])
		if next&s.g.done() != 0 {
			if err := s.emit(name[:end], leaf); err != nil {
				return nil, err
			}
		}
		switch {
		case leaf && next == 0:
			return s.beyond(name, begin, end, at, true), nil
		case leaf:
			return nil, nil
		case next&^s.g.done() == 0:
			return s.beyond(name, begin, end, at, false), nil
		}
		s.levels = append(s.levels, scanLevel{end, next})
		at, begin = next, end+1
	}
}

// beyond returns where a match may follow a node of a name that has none below it: name[begin:end], of a glob
// at some positions before it.
func (s *scan) beyond(name []byte, begin, end int, at positions, leaf bool) []byte {
	n := s.g.only(at)
	if n != nil && n.head != "" {
		// Compared as names, in which a dot follows a branch.
		if rest := name[begin:]; string(rest) < n.head {
			s.from = append(append(s.from[:0], name[:begin]...), n.head...)
			return s.from
		} else if !bytes.HasPrefix(rest, []byte(n.head)) || n.one && len(rest) > len(n.head) && rest[len(n.head)] > '.' {
			// All that follow below the same parent are greater.
			if begin == 0 {
				return []byte{}
			}
			return s.after(name[:begin-1])
		}
	}
	if leaf {
		return nil
	}
	if n != nil && n.one && string(name[begin:end]) == n.literal && begin > 0 {
		return s.after(name[:begin-1])
	}
	return s.after(name[:end])
}

// after returns the least text that does not begin with a node and a dot, and is greater.
func (s *scan) after(node []byte) []byte {
	s.from = append(append(s.from[:0], node...), '.'+1)
	return s.from
}

// whole looks at each name on its own.
func (g *Glob) whole(name []byte, emit emit) error {
	at, begin := g.first, 0
	for {
		i := bytes.IndexByte(name[begin:], '.')
		end := len(name)
		if i >= 0 {
			end = begin + i
		}
		if at = g.step(at, name[begin:end]); at&g.done() != 0 {
			if err := emit(name[:end], i < 0); err != nil {
				return err
			}
		}
		if i < 0 || at&^g.done() == 0 {
			return nil
		}
		begin = end + 1
	}
}
