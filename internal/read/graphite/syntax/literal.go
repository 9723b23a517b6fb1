package syntax

import (
	"math"
	"strconv"
	"strings"
)

// literal consumes a literal, or returns nil. If it returns nil and has moved, a string has no end.
func (p *parser) literal() *Literal {
	begin := p.at
	if p.at == len(p.text) {
		return nil
	}
	if c := p.text[p.at]; c == '"' || c == '\'' {
		s, ok := p.quoted(c)
		if !ok {
			p.at = len(p.text)
			return nil
		}
		return &Literal{At: begin, Value: s}
	}
	end := p.at
	for end < len(p.text) && strings.IndexByte(" \t\n\r,)", p.text[end]) < 0 {
		end++
	}
	v, ok := constant(p.text[begin:end])
	if !ok {
		return nil
	}
	p.at = end
	if p.space(); p.at < len(p.text) && p.text[p.at] != ',' && p.text[p.at] != ')' {
		p.at = begin
		return nil
	}
	return &Literal{At: begin, Value: v}
}

// quoted consumes a string. As in graphite-web, its value is the text between the quotes with all
// backslashes: "\1" is a backslash and a digit. A backslash before a quote, and two quotes, do not end the
// string.
func (p *parser) quoted(quote byte) (string, bool) {
	begin := p.at + 1
	for i := begin; i < len(p.text); i++ {
		switch c := p.text[i]; c {
		case '\n', '\r':
			return "", false
		case '\\':
			i++
		case quote:
			if i+1 < len(p.text) && p.text[i+1] == quote {
				i++
				continue
			}
			p.at = i + 1
			return p.text[begin:i], true
		}
	}
	return "", false
}

// constant reads a keyword or a number: digits, a fraction after a point, an exponent.
func constant(s string) (any, bool) {
	switch strings.ToLower(s) {
	case "true":
		return true, true
	case "false":
		return false, true
	case "none":
		return nil, true
	case "inf":
		return math.Inf(1), true
	}
	digits := func(s string) int {
		n := 0
		for n < len(s) && '0' <= s[n] && s[n] <= '9' {
			n++
		}
		return n
	}
	rest, whole := strings.TrimPrefix(s, "-"), true
	n := digits(rest)
	if n == 0 {
		return nil, false
	}
	if rest = rest[n:]; strings.HasPrefix(rest, ".") && digits(rest[1:]) > 0 {
		rest, whole = rest[1+digits(rest[1:]):], false
	}
	if rest != "" && (rest[0] == 'e' || rest[0] == 'E') {
		exponent := strings.TrimPrefix(rest[1:], "-")
		if n := digits(exponent); n > 0 {
			rest, whole = exponent[n:], false
		}
	}
	if rest != "" {
		return nil, false
	}
	if whole {
		if i, err := strconv.ParseInt(s, 10, 64); err == nil {
			return i, true
		}
	}
	f, _ := strconv.ParseFloat(s, 64) // beyond its range it is infinite or 0, as in Python
	return f, true
}
