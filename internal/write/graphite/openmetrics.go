package graphite

import "bytes"

// isOpenMetrics reports whether carbon reads a path as name{tag="value",...}.
func isOpenMetrics(path []byte) bool {
	return bytes.HasSuffix(path, []byte(`"}`)) && bytes.IndexByte(path, '{') >= 0
}

// readOpenMetrics reads tag="value" pairs as carbon does: separated by a comma or by a colon and a
// comma, with \" and \\ in values, and with no brace in any of them.
func (p *parser) readOpenMetrics(b []byte) (why string) {
	if bytes.IndexByte(b, '{') >= 0 {
		return "a second { follows the first" + storedWhole
	}
	const malformed = `a tag is not of the form tag="value"` + storedWhole
	p.unescaped = p.unescaped[:0]
	for len(b) > 0 {
		name, rest, ok := bytes.Cut(b, []byte(`="`))
		if !ok || len(name) == 0 || bytes.IndexByte(name, '=') >= 0 {
			return malformed
		}
		value, n := p.quoted(rest)
		if n < 0 {
			return malformed
		}
		if why := p.setTag(tag{name, value}); why != "" {
			return why
		}
		b = rest[n:]
		if len(b) == 0 {
			return ""
		}
		if b[0] == ':' {
			b = b[1:]
		}
		if len(b) == 0 || b[0] != ',' {
			return malformed
		}
		b = b[1:]
	}
	return ""
}

// quoted reads a value up to its closing quote, and returns it without escapes, and n, the length with
// the quote. If there is no closing quote or an unknown escape, n is -1.
func (p *parser) quoted(b []byte) (value []byte, n int) {
	begin, copied := len(p.unescaped), 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			if copied == 0 {
				return b[:i], i + 1
			}
			p.unescaped = append(p.unescaped, b[copied:i]...)
			return p.unescaped[begin:], i + 1
		case '\\':
			if i+1 == len(b) || b[i+1] != '"' && b[i+1] != '\\' {
				return nil, -1
			}
			p.unescaped = append(p.unescaped, b[copied:i]...)
			i++
			copied = i // the escaped byte comes with what follows it
		}
	}
	return nil, -1
}
