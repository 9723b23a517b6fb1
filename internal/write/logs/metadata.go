package logs

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"

	"github.com/prometheus/otlptranslator"
	"google.golang.org/protobuf/encoding/protowire"
)

// Metadata collects the structured metadata of one line and makes it canonical. The zero value is ready.
type Metadata struct {
	pairs []pair
	// bytes and entries are what was sent, before names and values were mended.
	bytes, entries int
	// sorted says that the names ascend.
	sorted bool
	// bad is the first name that cannot be mended, and why.
	bad    []byte
	badErr error
	// arena holds names and values that were mended.
	arena []byte
	// base is what many lines have: in order, each name once, each value there. What a line says itself counts more.
	base *Metadata
}

// pair is an entry, and in a base its canonical form.
type pair struct{ name, value, label []byte }

// Reset empties it.
func (m *Metadata) Reset() {
	m.pairs, m.arena, m.base = m.pairs[:0], m.arena[:0], nil
	m.bytes, m.entries, m.sorted, m.bad, m.badErr = 0, 0, true, nil, nil
}

// ResetTo empties it but for what a base has, which must stay as it is until the line has been added. Seal must have been called
// on it.
func (m *Metadata) ResetTo(base *Metadata) {
	m.Reset()
	m.base, m.bytes, m.entries, m.bad, m.badErr = base, base.bytes, base.entries, base.bad, base.badErr
}

// What of a line's metadata is looked at in any case. Beyond that it is only counted: the line is going to be left out.
// With a line of 768 KiB it is less than the megabyte that a stored value may have.
const (
	mostMetadataBytes   = 128 << 10
	mostMetadataEntries = 1 << 10
)

// Full reports whether there is so much that the line is going to be left out.
func (m *Metadata) Full() bool { return m.bytes > mostMetadataBytes || m.entries > mostMetadataEntries }

// Seal makes it fit to be a base.
func (m *Metadata) Seal() {
	if !m.sorted {
		m.sort()
	}
	kept := m.pairs[:0]
	for i, p := range m.pairs {
		if len(p.value) == 0 || i+1 < len(m.pairs) && bytes.Equal(p.name, m.pairs[i+1].name) {
			continue
		}
		begin := len(m.arena)
		m.arena = appendLabel(m.arena, p.name, p.value)
		p.label = m.arena[begin:len(m.arena):len(m.arena)]
		kept = append(kept, p)
	}
	m.pairs = kept
}

// Mend returns a name as Add would keep it.
func (m *Metadata) Mend(name []byte) ([]byte, error) {
	if plainName(name) {
		return name, nil
	}
	return m.mendName(name)
}

// Add adds an entry. The bytes must stay unchanged until the line has been added. A name becomes one of letters, digits and
// single underscores, and what in a value is not UTF-8 becomes a space.
func (m *Metadata) Add(name, value []byte) {
	full := m.Full()
	m.bytes += len(name) + len(value)
	m.entries++
	if full {
		return
	}
	if !plainName(name) {
		var err error
		if name, err = m.mendName(name); err != nil {
			if m.badErr == nil {
				m.bad, m.badErr = name, err
			}
			return
		}
	}
	if !utf8.Valid(value) || bytes.Contains(value, replacement) {
		value = m.mendValue(value)
	}
	m.add(name, value)
}

func (m *Metadata) add(name, value []byte) {
	if n := len(m.pairs); n > 0 && m.sorted && bytes.Compare(m.pairs[n-1].name, name) >= 0 {
		m.sorted = false
	}
	m.pairs = append(m.pairs, pair{name: name, value: value})
}

// replacement is what stands for bytes that were not UTF-8 before.
var replacement = []byte(string(utf8.RuneError))

// mendValue replaces every rune that is no rune by a space, since none such may stand in a label.
func (m *Metadata) mendValue(value []byte) []byte {
	begin := len(m.arena)
	for len(value) > 0 {
		r, size := utf8.DecodeRune(value)
		if r == utf8.RuneError {
			m.arena = append(m.arena, ' ')
		} else {
			m.arena = append(m.arena, value[:size]...)
		}
		value = value[size:]
	}
	return m.arena[begin:len(m.arena):len(m.arena)]
}

// plainName reports whether a name needs no mending.
func plainName(name []byte) bool {
	last := byte('0')
	for i, c := range name {
		switch {
		case c|0x20 >= 'a' && c|0x20 <= 'z':
		case c >= '0' && c <= '9' && i > 0:
		case c == '_' && last != '_':
		default:
			return false
		}
		last = c
	}
	return len(name) > 1 || len(name) == 1 && name[0] != '_'
}

// mendName makes a name of what is there: of the usual kind, dots between words, at once, of others as the library does.
func (m *Metadata) mendName(name []byte) ([]byte, error) {
	begin, letters, last := len(m.arena), 0, byte('0')
	for i, c := range name {
		switch {
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			letters++
		case c >= '0' && c <= '9' && i > 0:
		case c < utf8.RuneSelf && (c < '0' || c > '9') && i > 0: // two underscores in front mean something
			if c = '_'; last == '_' {
				continue
			}
		default:
			letters = -len(name)
		}
		last = c
		m.arena = append(m.arena, c)
	}
	if letters > 0 {
		return m.arena[begin:len(m.arena):len(m.arena)], nil
	}
	m.arena = m.arena[:begin]
	namer := otlptranslator.LabelNamer{}
	s, err := namer.Build(string(name))
	if err != nil {
		return name, err
	}
	m.arena = append(m.arena, s...)
	return m.arena[begin:len(m.arena):len(m.arena)], nil
}

// level returns the value of the name in it that says a level best, and whether there is one.
func (m *Metadata) level() (value []byte, ok bool) {
	best := noLevel
	for i := range m.pairs {
		if r := levelRank(m.pairs[i].name); r <= best && r != noLevel {
			best, value = r, m.pairs[i].value
		}
	}
	if m.base != nil {
		for i := range m.base.pairs {
			if r := levelRank(m.base.pairs[i].name); r < best {
				best, value = r, m.base.pairs[i].value
			}
		}
	}
	return value, best != noLevel
}

// empty reports whether it has nothing.
func (m *Metadata) empty() bool {
	return len(m.pairs) == 0 && (m.base == nil || len(m.base.pairs) == 0)
}

// find returns the last value of a name, or nil.
func (m *Metadata) find(name string) []byte {
	for i := len(m.pairs) - 1; i >= 0; i-- {
		if string(m.pairs[i].name) == name {
			return m.pairs[i].value
		}
	}
	if m.base != nil {
		return m.base.find(name)
	}
	return nil
}

// appendTo appends the canonical form: names in order, of equal ones the last, without empty values.
func (m *Metadata) appendTo(dst []byte) []byte {
	if !m.sorted {
		m.sort()
	}
	var base []pair
	if m.base != nil {
		base = m.base.pairs
	}
	for i := range m.pairs {
		p := &m.pairs[i]
		if i+1 < len(m.pairs) && bytes.Equal(p.name, m.pairs[i+1].name) {
			continue
		}
		for len(base) > 0 {
			c := bytes.Compare(base[0].name, p.name)
			if c > 0 {
				break
			}
			if c < 0 || len(p.value) == 0 {
				dst = append(dst, base[0].label...)
			}
			base = base[1:]
		}
		if len(p.value) > 0 {
			dst = appendLabel(dst, p.name, p.value)
		}
	}
	for i := range base {
		dst = append(dst, base[i].label...)
	}
	return dst
}

// sort orders the pairs by name and leaves equal names as they came. There are few, and most are in order.
func (m *Metadata) sort() {
	for i := 1; i < len(m.pairs); i++ {
		p := m.pairs[i]
		j := i
		for ; j > 0 && bytes.Compare(m.pairs[j-1].name, p.name) > 0; j-- {
			m.pairs[j] = m.pairs[j-1]
		}
		m.pairs[j] = p
	}
	m.sorted = true
}

// appendLabel appends a label in the form that model.Labels has.
func appendLabel(dst, name, value []byte) []byte {
	n, v := len(name), len(value)
	dst = append(dst, 0x0a)
	dst = binary.AppendUvarint(dst, uint64(2+protowire.SizeBytes(n)+protowire.SizeBytes(v)))
	dst = append(dst, 0x0a)
	dst = binary.AppendUvarint(dst, uint64(n))
	dst = append(append(dst, name...), 0x12)
	dst = binary.AppendUvarint(dst, uint64(v))
	return append(dst, value...)
}

// Each calls f for each entry that has a value, of equal names for the last, in order of name.
func (m *Metadata) Each(f func(name, value []byte)) {
	m.Seal()
	for _, p := range m.pairs {
		f(p.name, p.value)
	}
}

// CopyOf makes it a copy of another one, whose bytes must stay as they are.
func (m *Metadata) CopyOf(o *Metadata) {
	m.Reset()
	m.pairs = append(m.pairs, o.pairs...)
	m.bytes, m.entries, m.sorted, m.bad, m.badErr = o.bytes, o.entries, o.sorted, o.bad, o.badErr
}
