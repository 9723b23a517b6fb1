package names

import (
	"bytes"
	"context"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/nametree"
)

// scan looks for the nodes that satisfy a glob in the sorted names of a part. It leaves out whole branches
// that the glob cannot match, so that a glob with a literal beginning reads few pages.
type scan struct {
	g    *Glob
	emit emit
	// near is how many names are looked at before a seek.
	near int
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

// seekCost is about the cost of a seek in names that are looked at. Branches often have fewer names, so that
// as many are looked at before a seek: a glob with a node that no name has took 5 s with seeks alone.
const seekCost = 16

// run scans, and returns about how many names it has looked at.
func (s *scan) run(ctx context.Context, w model.NameWalk) (looked int, err error) {
	ok := w.Seek([]byte(s.g.literal(1)))
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
			near := 0
			for ; ok && near < s.near && string(w.Name()) < string(skip); near++ {
				ok = w.Next()
			}
			if looked += near; ok && string(w.Name()) < string(skip) {
				looked += seekCost
				ok = w.Seek(skip)
			}
		}
	}
	return looked, w.Err()
}

// visit looks at a name. It returns the least text that a further match may have; nil: the next name may be
// one; empty: there is none.
func (s *scan) visit(name []byte) (skip []byte, err error) {
	shared := nametree.SharedLength(s.last, name)
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
			s.from = append(append(s.from[:0], name[:begin]...), s.g.literal(at)...)
			return s.from
		} else if !bytes.HasPrefix(rest, []byte(n.head)) || n.one && len(rest) > len(n.head) && rest[len(n.head)] > '.' {
			return s.exhausted(name) // all that follow below the same parent are greater
		}
	}
	if leaf {
		return nil
	}
	if n != nil && n.one && string(name[begin:end]) == n.literal {
		return s.exhausted(name)
	}
	return s.after(name[:end])
}

// exhausted returns where a match may follow if there are no more below the last of the levels. If the node
// of that level is literal, there are none below its parent either.
func (s *scan) exhausted(name []byte) []byte {
	for i := len(s.levels) - 1; i >= 0; i-- {
		at := s.g.first
		if i > 0 {
			at = s.levels[i-1].at
		}
		if n := s.g.only(at); n == nil || !n.one {
			return s.after(name[:s.levels[i].end])
		}
	}
	return []byte{}
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
