package extract

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/jsonscan"
)

// findLogfmt finds the fields of a line of logfmt.
func (f *Finder) findLogfmt(line []byte) bool {
	next := &f.keys.all[0].first
	for i := 0; ; {
		for i < len(line) && line[i] <= ' ' {
			i++
		}
		if i == len(line) {
			return true
		}
		k := &f.keys.all[*next]
		if n := len(k.text); n > 0 && len(line)-i >= n && string(line[i:i+n]) == string(k.text) {
			i += n
		} else {
			end, ok := keyEnd(line, i)
			switch {
			case !ok:
				return false
			case end == len(line) || line[end] <= ' ': // a key alone
				if f.keepEmpty {
					return false
				}
				i = end
				continue
			case line[end] == '"' || end == i:
				if f.strict {
					return false
				}
				i = wordEnd(line, end)
				continue
			}
			id := f.keys.add(0, line[i:end], "", "=", f.names)
			if id == 0 {
				return false
			}
			*next = id
			k, i = &f.keys.all[id], end+1
		}
		next = &k.next
		value, end, ok := f.logfmtValue(line, i, k.field)
		if !ok {
			return false
		}
		if i = end; len(value) == 0 || k.field < 0 {
			continue
		}
		if !f.take(k.field, value, false) {
			return false
		}
		if f.all() {
			return true
		}
	}
}

// logfmtValue returns the value at line[i], empty if the pair is left out, and the index after it. It returns
// false for ok if the value is not plain or, where that counts, empty or wrong.
func (f *Finder) logfmtValue(line []byte, i, field int) (value []byte, end int, ok bool) {
	switch {
	case i == len(line) || line[i] <= ' ':
		return nil, i, !f.keepEmpty
	case line[i] == '"':
		end, escaped := jsonscan.StringEnd(line, i+1)
		if end < 0 {
			return nil, len(line), !f.strict
		}
		value = line[i+1 : end]
		if escaped { // perhaps in a wrong way
			return nil, end + 1, !f.strict && field < 0
		}
		return value, end + 1, len(value) > 0 || !f.keepEmpty
	}
	end = valueEnd(line, i)
	if end < len(line) && line[end] > ' ' { // must not be there
		return nil, wordEnd(line, end), !f.strict
	}
	return line[i:end], end, true
}

// keyEnd returns where the key at line[i] ends. It returns false if the key has other characters than ASCII.
func keyEnd(line []byte, i int) (end int, ok bool) {
	for ; i < len(line); i++ {
		switch c := line[i]; {
		case c <= ' ' || c == '=' || c == '"':
			return i, true
		case c >= utf8.RuneSelf:
			return 0, false
		}
	}
	return i, true
}

// wordEnd returns the index of the next space from i on.
func wordEnd(line []byte, i int) int {
	for i < len(line) && line[i] > ' ' {
		i++
	}
	return i
}

// valueEnd returns the index of the next space, equals sign or quote from i on, or the length of the line.
func valueEnd(line []byte, i int) int {
	const each, high = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(line); i += 8 {
		// The highest bit of a byte is set if it is what is looked for, and perhaps of bytes after that one.
		x := binary.LittleEndian.Uint64(line[i:])
		equals, quote := x^'='*each, x^'"'*each
		ends := ((x-(' '+1)*each)&^x | (equals-each)&^equals | (quote-each)&^quote) & high
		if ends != 0 {
			return i + bits.TrailingZeros64(ends)/8
		}
	}
	for i < len(line) && line[i] > ' ' && line[i] != '=' && line[i] != '"' {
		i++
	}
	return i
}
