package names

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/nametree"
)

// maxWords bounds the words of a search, which are numbered in a byte of bits.
const maxWords = 8

// How well a word matches a node. A name matches as well as the worst of its words.
const (
	same = iota
	begins
	contains
	typo
	apart // not at all
)

// Hit is a name that matches the words of a search.
type Hit struct {
	Name string
	// worst is how well the worst word matches, and sum adds up all of them.
	worst, sum int
}

func compareHits(a, b Hit) int {
	return cmp.Or(cmp.Compare(a.worst, b.worst), cmp.Compare(a.sum, b.sum), cmp.Compare(a.Name, b.Name))
}

// Search returns the names that match all words best, at most limit of them. Words are separated by white
// space or dots. A word matches a node that it is equal to, begins, is a part of, or, from four letters on,
// differs from in one letter, in this order; the case of letters does not matter.
func (f *Finder) Search(ctx context.Context, q *Query, text string, limit int) ([]Hit, error) {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r == '.' || r == ' ' || r == '\t' || r == '\n' })
	if n := len(words); n == 0 || n > maxWords {
		return nil, fmt.Errorf("%w: the query has %d words; expected 1 to %d", model.ErrInvalid, n, maxWords)
	}
	if len(text) > maxGlobBytes {
		return nil, fmt.Errorf("%w: the query has %d bytes; at most %d are allowed", model.ErrInvalid, len(text), maxGlobBytes)
	}
	r := f.request(q)
	best := &hits{limit: limit}
	err := f.each(ctx, r, func(s model.NameSet, x *index) (int, error) {
		if x != nil {
			return 0, x.bestOf(ctx, r.Quota, words, best)
		}
		n := 0
		err := s.Each(ctx, func(name []byte) error {
			n++
			best.consider(name, words)
			return nil
		})
		return n, err
	})
	return best.finish(), err
}

// hits keeps the best hits.
type hits struct {
	limit int
	all   []Hit // at most some four times the limit
}

func (h *hits) add(x Hit) {
	h.all = append(h.all, x)
	if len(h.all) >= 4*h.limit+64 {
		h.all = h.finish()
	}
}

// finish returns the best hits, each once.
func (h *hits) finish() []Hit {
	slices.SortFunc(h.all, compareHits)
	h.all = slices.CompactFunc(h.all, func(a, b Hit) bool { return a.Name == b.Name })
	return h.all[:min(len(h.all), h.limit)]
}

// consider adds a name if all words match.
func (h *hits) consider(name []byte, words []string) {
	x := Hit{}
	for _, w := range words {
		best := apart
		for rest := name; ; {
			label, after, more := bytes.Cut(rest, []byte{'.'})
			if best = min(best, closeness(w, label)); !more || best == same {
				break
			}
			rest = after
		}
		if best == apart {
			return
		}
		x.worst, x.sum = max(x.worst, best), x.sum+best
	}
	x.Name = string(name)
	h.add(x)
}

// closeness returns how well a word in lower case matches a node.
func closeness(word string, label []byte) int {
	var small [64]byte
	lower := small[:0]
	if ascii(label) {
		for _, c := range label {
			if 'A' <= c && c <= 'Z' {
				c |= 0x20
			}
			lower = append(lower, c)
		}
	} else {
		lower = bytes.ToLower(label)
	}
	switch {
	case string(lower) == word:
		return same
	case bytes.HasPrefix(lower, []byte(word)):
		return begins
	case bytes.Contains(lower, []byte(word)):
		return contains
	case len(word) >= 4 && oneLetterApart([]byte(word), lower):
		return typo
	}
	return apart
}

func ascii(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}

// oneLetterApart reports whether one byte changed, more or less makes one text the other, or two neighbours
// are exchanged.
func oneLetterApart(a, b []byte) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 {
		return false
	}
	i := nametree.SharedLength(a, b)
	switch {
	case len(a) < len(b):
		return bytes.Equal(a[i:], b[i+1:])
	case i == len(a):
		return true
	case bytes.Equal(a[i+1:], b[i+1:]):
		return true
	}
	return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && bytes.Equal(a[i+2:], b[i+2:])
}

// wordWalk looks in an index for names that all words match at least as well as asked.
type wordWalk struct {
	*index
	ctx   context.Context
	words []string
	best  *hits
	masks []uint8 // by label, the words that match it
	full  uint8
	// dead are pairs of state and words, seen on the way to it, below which no name has the others.
	dead  map[wordKey]bool
	path  []byte
	found int
	steps int
}

type wordKey struct {
	state uint32
	seen  uint8
}

// errEnough ends a walk that has found enough.
var errEnough = errors.New("enough names")

// bestOf adds the best hits of an index. It first asks for words that are equal to nodes, and then for less,
// until it has enough.
func (x *index) bestOf(ctx context.Context, quota *model.Quota, words []string, best *hits) error {
	n := int64(x.Labels) * int64(len(words)+1)
	if err := quota.TakeBytes(n); err != nil {
		return err
	}
	defer func() { _ = quota.TakeBytes(-n) }() // giving back never fails
	ranks := make([]uint8, x.Labels*len(words))
	for id := range x.Labels {
		for w, word := range words {
			ranks[id*len(words)+w] = uint8(closeness(word, x.Label(uint32(id))))
		}
	}
	w := &wordWalk{index: x, ctx: ctx, words: words, best: best, masks: make([]uint8, x.Labels), full: uint8(1<<len(words) - 1)}
	for worst := same; worst < apart && w.found < best.limit; worst++ {
		w.dead, w.path = make(map[wordKey]bool), w.path[:0]
		for id := range w.masks {
			w.masks[id] = 0
			for i, c := range ranks[id*len(words):][:len(words)] {
				if int(c) <= worst {
					w.masks[id] |= 1 << i
				}
			}
		}
		w.found = 0
		if err := w.below(x.Root, 0, 0); err != nil && !errors.Is(err, errEnough) {
			return err
		}
	}
	return nil
}

func (w *wordWalk) below(state uint32, seen uint8, depth int) error {
	key := wordKey{state, seen}
	if w.dead[key] {
		return nil
	}
	if w.steps++; w.steps%1024 == 0 && w.ctx.Err() != nil {
		return w.ctx.Err()
	}
	found := w.found
	from, to := w.List(state)
	for i := from; i < to; i++ {
		e := w.Edge(i)
		now := seen | w.masks[e.Label]
		if e.Child == 0 && now != w.full {
			continue
		}
		length := len(w.path)
		if depth > 0 {
			w.path = append(w.path, '.')
		}
		w.path = append(w.path, w.Label(e.Label)...)
		if e.Child == 0 {
			w.best.consider(w.path, w.words)
			if w.found++; w.found >= w.best.limit {
				return errEnough
			}
		} else if err := w.below(e.Child-1, now, depth+1); err != nil {
			return err
		}
		w.path = w.path[:length]
	}
	if w.found == found {
		w.dead[key] = true
	}
	return nil
}
