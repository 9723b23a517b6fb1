package jsonscan

// NumberEnd returns the index after the number that begins at b[i], or -1 if no comma, closing brace or space
// follows it.
func NumberEnd(b []byte, i int) int {
	end := i + 1
	for end < len(b) && (b[end]-'0' <= 9 || b[end] == '.' || b[end] == '-' || b[end] == '+' || b[end]|0x20 == 'e') {
		end++
	}
	if end == len(b) || !endsMember(b[end]) {
		return -1
	}
	return end
}

// HasWord reports whether b begins with a word, such as true, and a comma, a closing brace or space after it.
func HasWord(b []byte, word string) bool {
	return len(b) > len(word) && string(b[:len(word)]) == word && endsMember(b[len(word)])
}

func endsMember(c byte) bool { return c == ',' || c == '}' || Space(c) }

// ArrayEnd returns the index after the array whose bracket is at b[i], or -1 if brackets within it do not
// match. It keeps open brackets in a list, whose memory it returns.
func ArrayEnd(b []byte, i int, open []byte) (end int, memory []byte) {
	open = open[:0]
	for ; i < len(b); i++ {
		switch c := b[i]; c {
		case '"':
			if i, _ = StringEnd(b, i+1); i < 0 {
				return -1, open
			}
		case '[', '{':
			open = append(open, c+2) // in ASCII each is two before the one that closes it
		case ']', '}':
			last := len(open) - 1
			if open[last] != c {
				return -1, open
			}
			if open = open[:last]; last == 0 {
				return i + 1, open
			}
		}
	}
	return -1, open
}

// Closes reports whether the text after i closes at least depth braces more than it opens.
func Closes(b []byte, i, depth int) bool {
	if i < len(b) && b[i] == '"' {
		i++
	}
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			if i, _ = StringEnd(b, i+1); i < 0 {
				return false
			}
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return true
			}
		}
	}
	return false
}
