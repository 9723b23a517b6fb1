package pickle

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// quoted pushes the string whose Python repr is b, which begins at offset begin of the pickle.
func (d *Decoder) quoted(begin int, b []byte) error {
	trimmed := bytes.TrimRight(b, " \t\r")
	n := len(trimmed)
	if n < 2 || trimmed[0] != trimmed[n-1] || trimmed[0] != '\'' && trimmed[0] != '"' {
		return d.fail("STRING without quotes")
	}
	begin, b = begin+1, trimmed[1:n-1]
	if bytes.IndexByte(b, '\\') < 0 {
		return d.push(Value{kind: Text, n: uint32(len(b)), bits: uint64(begin)})
	}
	at, err := d.roomForText(len(b))
	if err != nil {
		return err
	}
	for len(b) > 0 {
		if b[0] != '\\' {
			d.text = append(d.text, b[0])
			b = b[1:]
			continue
		}
		c, n := unescape(b)
		if n == 0 {
			return d.fail("STRING with a broken escape")
		}
		if n == 1 {
			d.text = append(d.text, '\\') // an unknown escape is kept as it is
		} else {
			d.text = append(d.text, c)
		}
		b = b[n:]
	}
	return d.pushText(at)
}

// unescape decodes one escape of a byte string and returns its length: 1 if the backslash stands for
// itself, 0 if the escape is broken.
func unescape(b []byte) (c byte, n int) {
	if len(b) < 2 {
		return 0, 0
	}
	const from, to = "\\'\"abfnrtv", "\\'\"\a\b\f\n\r\t\v"
	switch c := b[1]; {
	case c == 'x':
		v, ok := hex(b[2:min(4, len(b))])
		if !ok || len(b) < 4 {
			return 0, 0
		}
		return byte(v), 4
	case c-'0' <= 7:
		v, n := 0, 1
		for n < len(b) && n < 4 && b[n]-'0' <= 7 {
			v = v*8 + int(b[n]-'0')
			n++
		}
		return byte(v), n
	default:
		for i := range len(from) {
			if from[i] == c {
				return to[i], 2
			}
		}
	}
	return '\\', 1
}

// unicode pushes a string in the raw form of protocol 0: bytes are Latin-1, and other characters are \u
// or \U with four or eight hexadecimal digits.
func (d *Decoder) unicode(begin int, b []byte) error {
	plain := true
	for _, c := range b {
		plain = plain && c < 0x80 && c != '\\'
	}
	if plain {
		return d.push(Value{kind: Text, n: uint32(len(b)), bits: uint64(begin)})
	}
	at, err := d.roomForText(2 * len(b))
	if err != nil {
		return err
	}
	for len(b) > 0 {
		if b[0] == '\\' && len(b) > 1 && b[1] != 'u' && b[1] != 'U' {
			// The backslash and the next byte both stand for themselves.
			d.text = utf8.AppendRune(append(d.text, '\\'), rune(b[1]))
			b = b[2:]
			continue
		}
		r, n, ok := rawRune(b)
		if !ok {
			return d.fail("UNICODE with a broken escape")
		}
		b = b[n:]
		if r >= 0xd800 && r < 0xdc00 {
			// Old versions of Python write runes above 16 bits as surrogate pairs.
			if low, m, ok := rawRune(b); ok && low >= 0xdc00 && low < 0xe000 {
				r = utf16.DecodeRune(r, low)
				b = b[m:]
			}
		}
		if r >= 0xd800 && r < 0xe000 {
			// A lone surrogate is not valid UTF-8; the caller checks that. Binary pickles encode it
			// like this too.
			d.text = append(d.text, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0xbf, 0x80|byte(r)&0xbf)
			continue
		}
		d.text = utf8.AppendRune(d.text, r)
	}
	return d.pushText(at)
}

// rawRune decodes one rune of the raw form.
func rawRune(b []byte) (r rune, n int, ok bool) {
	if len(b) == 0 {
		return 0, 0, false
	}
	if b[0] != '\\' || len(b) < 2 || b[1] != 'u' && b[1] != 'U' {
		return rune(b[0]), 1, true
	}
	n = 6
	if b[1] == 'U' {
		n = 10
	}
	if len(b) < n {
		return 0, 0, false
	}
	v, ok := hex(b[2:n])
	return rune(v), n, ok && v <= utf8.MaxRune
}

func hex(b []byte) (v uint32, ok bool) {
	for _, c := range b {
		switch {
		case c-'0' <= 9:
			v = v<<4 | uint32(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			v = v<<4 | uint32(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return v, true
}

func (d *Decoder) roomForText(n int) (at int, err error) {
	at = len(d.text)
	d.text, err = room(d, d.text, n)
	return at, err
}

func (d *Decoder) pushText(at int) error {
	return d.push(Value{kind: Text, n: uint32(len(d.text) - at), bits: uint64(at) | unescaped})
}
