package line

import (
	"errors"
	"fmt"
	"strconv"
)

// parseJSONPath reads a.b["c d"][0].
func parseJSONPath(s string) (jsonPath, error) {
	var path jsonPath
	rest := []rune(s)
	for first := true; ; first = false {
		rest = trimSpace(rest)
		if len(rest) == 0 {
			if first {
				return nil, errors.New("syntax error: unexpected $end, expecting LSB or FIELD")
			}
			return path, nil
		}
		switch c := rest[0]; {
		case c == '[':
			step, after, err := bracketStep(trimSpace(rest[1:]))
			if err != nil {
				return nil, err
			}
			path, rest = append(path, step), after
			continue
		case c == '.' && !first:
			rest = trimSpace(rest[1:])
		case !first:
			return nil, fmt.Errorf("syntax error: unexpected %q", c)
		}
		n := fieldLen(rest)
		if n == 0 {
			return nil, errors.New("syntax error: a field is missing")
		}
		path, rest = append(path, string(rest[:n])), rest[n:]
	}
}

func trimSpace(s []rune) []rune {
	for len(s) > 0 && (s[0] == ' ' || s[0] == '\t' || s[0] == '\n') {
		s = s[1:]
	}
	return s
}

func fieldLen(s []rune) int {
	for i, r := range s {
		if r > 0x7f || !nameByte(byte(r)) || i == 0 && isDigit(byte(r)) {
			return i
		}
	}
	return len(s)
}

// bracketStep reads what follows an opening bracket: "a key" or an index, and the closing bracket. A key ends
// at the first quote or closing bracket: there are no escapes.
func bracketStep(s []rune) (step string, rest []rune, err error) {
	if len(s) == 0 {
		return "", nil, errors.New("syntax error: unexpected $end, expecting STRING or INDEX")
	}
	switch {
	case s[0] == '"':
		n := 1
		for n < len(s) && s[n] != '"' && s[n] != ']' {
			n++
		}
		step, rest = string(s[1:n]), s[min(n+1, len(s)):]
	case s[0] >= '0' && s[0] <= '9':
		n := 0
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		if n < len(s) && s[n] == '.' {
			return "", nil, errors.New("cannot use float as array index")
		}
		i, err := strconv.Atoi(string(s[:n]))
		if err != nil {
			return "", nil, err
		}
		step, rest = fmt.Sprintf("[%d]", i), s[n:]
	default:
		return "", nil, fmt.Errorf("unexpected char %c", s[0])
	}
	rest = trimSpace(rest)
	if len(rest) == 0 || rest[0] != ']' {
		return "", nil, errors.New("syntax error: expecting RSB")
	}
	return step, rest[1:], nil
}
