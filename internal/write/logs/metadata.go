package logs

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"github.com/prometheus/otlptranslator"
	"google.golang.org/protobuf/encoding/protowire"
)

// Metadata collects the structured metadata of one line and brings it into canonical form. The zero
// value is ready to use.
type Metadata struct {
	pairs []pair
	// bytes and entries count what was sent, before names and values were sanitized.
	bytes, entries int
	// size is the sum of the lengths of all names and values in pairs, or more.
	size int
	// sorted means that the names are in ascending order.
	sorted bool
	// bad is the first name that cannot be sanitized, and badErr is the error.
	bad    []byte
	badErr error
	// arena holds the sanitized names and values.
	arena []byte
	// base is sealed metadata that many lines share. The line's own entries take precedence.
	base *Metadata
}

// pair is an entry. label is its canonical form; only entries of a base have it.
type pair struct{ name, value, label []byte }

// Reset removes all entries.
func (m *Metadata) Reset() {
	m.pairs, m.arena, m.base = m.pairs[:0], m.arena[:0], nil
	m.bytes, m.entries, m.size, m.sorted, m.bad, m.badErr = 0, 0, 0, true, nil, nil
}

// ResetTo removes all entries except those of base. Seal must have been called on base, and base must
// not change until the line has been added.
func (m *Metadata) ResetTo(base *Metadata) {
	m.Reset()
	m.base, m.bytes, m.entries, m.bad, m.badErr = base, base.bytes, base.entries, base.bad, base.badErr
}

// Entries beyond these limits are only counted, because the line will be rejected. With a line of 768
// KiB, the metadata stays below 1 MiB, the most that a stored value may have.
const (
	mostMetadataBytes   = 128 << 10
	mostMetadataEntries = 1 << 10
)

// AddLong counts an entry of so many bytes that the line will be rejected: more than MostBytes.
func (m *Metadata) AddLong(bytes int) {
	m.bytes += bytes
	m.entries++
}

// MostBytes is the most metadata of a line, in bytes, whatever the limits are.
const MostBytes = mostMetadataBytes

// Full reports whether the metadata exceeds the limits, so that the line will be rejected.
func (m *Metadata) Full() bool { return m.bytes > mostMetadataBytes || m.entries > mostMetadataEntries }

// Lost says why Add has left entries out, or is empty.
func (m *Metadata) Lost() string {
	switch {
	case m.Full():
		return fmt.Sprintf("structured metadata of %d entries and %d bytes, more than %d or %d", m.entries, m.bytes, mostMetadataEntries, mostMetadataBytes)
	case m.badErr != nil:
		return fmt.Sprintf("the name %q: %v", cut(m.bad), m.badErr)
	}
	return ""
}

// Seal prepares m for use as a base: it sorts the entries and drops duplicates and empty values.
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

// Sanitize returns a name as Add would store it.
func (m *Metadata) Sanitize(name []byte) ([]byte, error) {
	if plainName(name) {
		return name, nil
	}
	return m.sanitizeName(name)
}

// Add adds an entry. The bytes must not change until the line has been added. It sanitizes the name to
// letters, digits and single underscores, and replaces invalid UTF-8 in the value by spaces.
func (m *Metadata) Add(name, value []byte) {
	m.bytes += len(name) + len(value)
	m.entries++
	if m.Full() {
		return
	}
	if !plainName(name) {
		var err error
		if name, err = m.sanitizeName(name); err != nil {
			if m.badErr == nil {
				m.bad, m.badErr = name, err
			}
			return
		}
	}
	if !utf8.Valid(value) || bytes.Contains(value, replacement) {
		value = m.sanitizeValue(value)
	}
	m.add(name, value)
}

func (m *Metadata) add(name, value []byte) {
	if n := len(m.pairs); n > 0 && m.sorted && bytes.Compare(m.pairs[n-1].name, name) >= 0 {
		m.sorted = false
	}
	m.pairs = append(m.pairs, pair{name: name, value: value})
	m.size += len(name) + len(value)
}

// replacement is the character that other software writes for invalid UTF-8.
var replacement = []byte(string(utf8.RuneError))

// sanitizeValue replaces every invalid rune by a space, since labels must be valid UTF-8.
func (m *Metadata) sanitizeValue(value []byte) []byte {
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

// plainName reports whether a name needs no sanitizing.
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

// sanitizeName sanitizes a name. It handles the common kind, words with dots between them, itself and
// leaves all others to otlptranslator.
func (m *Metadata) sanitizeName(name []byte) ([]byte, error) {
	begin, letters, last := len(m.arena), 0, byte('0')
	for i, c := range name {
		switch {
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			letters++
		case c >= '0' && c <= '9' && i > 0:
		case c < utf8.RuneSelf && (c < '0' || c > '9') && i > 0: // otlptranslator handles leading underscores
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

// level returns the value of the entry whose name has the highest levelRank, or nil.
func (m *Metadata) level() (value []byte) {
	best := noLevel
	for i := range m.pairs {
		if r := levelRank(m.pairs[i].name); r < best {
			if v := m.find(string(m.pairs[i].name)); v != nil {
				best, value = r, v
			}
		}
	}
	if m.base != nil {
		for i := range m.base.pairs {
			if r := levelRank(m.base.pairs[i].name); r < best {
				best, value = r, m.base.pairs[i].value
			}
		}
	}
	return value
}

// mostBytes returns at least the bytes that appendTo appends, with a level of at most level bytes or a value
// of the metadata as level.
func (m *Metadata) mostBytes(level int) int {
	const lengths = 3 + 3*binary.MaxVarintLen32
	pairs, size := 1+len(m.pairs), m.size
	if m.base != nil {
		pairs, size = pairs+len(m.base.pairs), size+m.base.size
	}
	return pairs*lengths + len(detectedLevel) + size + max(level, size)
}

// empty reports whether there are no entries.
func (m *Metadata) empty() bool {
	return len(m.pairs) == 0 && (m.base == nil || len(m.base.pairs) == 0)
}

// find returns the value that appendTo stores for a name, or nil if it stores none: the last value of the
// line's own, unless that is empty, and otherwise the value of the base.
func (m *Metadata) find(name string) []byte {
	for i := len(m.pairs) - 1; i >= 0; i-- {
		if string(m.pairs[i].name) == name {
			if v := m.pairs[i].value; len(v) > 0 {
				return v
			}
			break
		}
	}
	if m.base != nil {
		return m.base.find(name)
	}
	return nil
}

// appendTo appends the canonical form: sorted by name, only the last of equal names, no empty values.
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

// sort sorts the pairs by name and is stable. There are few pairs, and most are in order already.
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

// appendLabel appends a label in the encoding of [model.Labels].
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

// Each calls f for each entry with a value in order of name, and only for the last of equal names.
func (m *Metadata) Each(f func(name, value []byte)) {
	m.Seal()
	for _, p := range m.pairs {
		f(p.name, p.value)
	}
}

// CopyFrom makes m a copy of o. The names and values of o must not change.
func (m *Metadata) CopyFrom(o *Metadata) {
	m.Reset()
	m.pairs = append(m.pairs, o.pairs...)
	m.bytes, m.entries, m.size, m.sorted, m.bad, m.badErr = o.bytes, o.entries, o.size, o.sorted, o.bad, o.badErr
}
