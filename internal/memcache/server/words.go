package server

import "math"

// mostWords bounds the words of a line: memcached looks at so many at a time.
const mostWords = 23

// words cuts a line at spaces. Rest is what comes after mostWords. A zero byte ends a line.
func words(line []byte, into *[mostWords][]byte) (list [][]byte, rest []byte) {
	n, from := 0, -1
	for i, c := range line {
		switch {
		case c == 0:
			line = line[:i]
		case c != ' ':
			if from < 0 {
				from = i
			}
			continue
		default:
			if from >= 0 {
				into[n] = line[from:i]
				n, from = n+1, -1
				if n == mostWords {
					return into[:n], line[i+1:]
				}
			}
			continue
		}
		break
	}
	if from >= 0 && from < len(line) {
		into[n] = line[from:]
		n++
	}
	return into[:n], nil
}

// number parses a decimal number of 64 bits.
func number(b []byte) (n uint64, ok bool) {
	if len(b) > 0 && b[0] == '+' {
		b = b[1:]
	}
	if len(b) == 0 {
		return 0, false
	}
	for _, c := range b {
		d := uint64(c - '0')
		if d > 9 || n > math.MaxUint64/10 || n*10 > math.MaxUint64-d {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}

// number32 parses a number of 32 bits, and signed32 one with a sign.
func number32(b []byte) (uint32, bool) {
	n, ok := number(b)
	return uint32(n), ok && n <= math.MaxUint32
}

func signed32(b []byte) (int32, bool) {
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		b = b[1:]
		if len(b) > 0 && b[0] == '+' {
			return 0, false
		}
	}
	n, ok := number(b)
	switch {
	case !ok || n > math.MaxInt32+1 || !negative && n > math.MaxInt32:
		return 0, false
	case negative:
		return int32(-int64(n)), true
	}
	return int32(n), true
}

// counter parses the number at the beginning of a value, as memcached does: space may come before and after
// it.
func counter(value []byte) (uint64, bool) {
	for len(value) > 0 && isSpace(value[0]) {
		value = value[1:]
	}
	for i, c := range value {
		if isSpace(c) || c == 0 {
			return number(value[:i])
		}
	}
	return number(value)
}

func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }
