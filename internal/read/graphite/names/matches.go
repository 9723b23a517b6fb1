package names

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/shaledb/shale/internal/model"
)

// Match is a node that satisfies a glob: a name, or the beginning of names.
type Match struct {
	Path string
	Leaf bool
	// Range bounds the times of the names, as far as it is known without reading them.
	Range model.TimeRange
}

// Node returns the last node of the path.
func (m *Match) Node() string {
	for i := len(m.Path) - 1; i >= 0; i-- {
		if m.Path[i] == '.' {
			return m.Path[i+1:]
		}
	}
	return m.Path
}

// matches collects the matches of one query, each set after the other. The texts lie in one piece of memory.
type matches struct {
	limit  int // 0: none
	quota  *model.Quota
	leaves bool // branches are not wanted

	text    []byte
	found   []found
	rg      model.TimeRange // of the current set
	charged int64
	before  int // matches before the current set
}

// found is a match: the end of its path in the text of all.
type found struct {
	end  uint32
	leaf bool
	rg   model.TimeRange
}

// matchBytes estimates the memory of a match: in the list, in the result, and as text while it is written.
const matchBytes = 120

func (m *matches) begin(rg model.TimeRange) { m.rg, m.before = rg, len(m.found) }

func (m *matches) add(path []byte, leaf bool) error {
	if m.leaves && !leaf {
		return nil
	}
	if m.limit > 0 && len(m.found)-m.before >= m.limit {
		return m.tooMany()
	}
	m.text = append(m.text, path...)
	if len(m.text) > math.MaxUint32 {
		return m.tooMany()
	}
	m.found = append(m.found, found{uint32(len(m.text)), leaf, m.rg})
	if n := int64(len(m.text)) + matchBytes*int64(len(m.found)); n-m.charged >= 64<<10 {
		if err := m.quota.TakeBytes(n - m.charged); err != nil {
			return err
		}
		m.charged = n
	}
	return nil
}

func (m *matches) tooMany() error {
	return fmt.Errorf("%w: the pattern matches more than %d names (graphite.max-names); narrow it", model.ErrLimit, m.limit)
}

// finish returns the matches sorted by path, each once, branches first.
func (m *matches) finish() ([]Match, error) {
	all := make([]Match, len(m.found))
	text, begin := unsafe.String(unsafe.SliceData(m.text), len(m.text)), uint32(0)
	for i, f := range m.found {
		all[i], begin = Match{text[begin:f.end], f.leaf, f.rg}, f.end
	}
	slices.SortFunc(all, compareMatches)
	out := all[:0]
	for _, x := range all {
		if n := len(out); n > 0 && compareMatches(out[n-1], x) == 0 {
			last := &out[n-1].Range
			last.Min, last.Max = min(last.Min, x.Range.Min), max(last.Max, x.Range.Max)
			continue
		}
		out = append(out, x)
	}
	if m.limit > 0 && len(out) > m.limit {
		return nil, m.tooMany()
	}
	return out, nil
}

func compareMatches(a, b Match) int {
	switch {
	case a.Path != b.Path && a.Path < b.Path:
		return -1
	case a.Path != b.Path:
		return 1
	case a.Leaf == b.Leaf:
		return 0
	case a.Leaf:
		return 1
	}
	return -1
}

// once lets each node through once, for sets without an order, whose names repeat their branches.
type once struct {
	seen  map[string]struct{}
	quota *model.Quota
	last  []byte
}

func (o *once) emit(to emit) emit {
	return func(path []byte, leaf bool) error {
		if !leaf {
			if bytes.Equal(path, o.last) {
				return nil
			}
			if _, known := o.seen[string(path)]; known {
				return nil
			}
			if err := o.quota.TakeBytes(int64(len(path)) + matchBytes); err != nil {
				return err
			}
			o.seen[string(path)] = struct{}{}
			o.last = append(o.last[:0], path...)
		}
		return to(path, leaf)
	}
}
