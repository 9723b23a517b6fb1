package pyregexp

import "strings"

// translate writes a pattern of Python in the spelling of Go: {,n} is {0,n}, \Z is \z, a bracket inside a
// class is literal, (?P=name) is \k<name>. It reports whether the pattern has classes that Python takes from
// Unicode, and whether it surely needs backtracking.
func translate(pattern string) (text string, classes, backtracks bool) {
	var b strings.Builder
	inClass := false
	for i := 0; i < len(pattern); i++ {
		rest := pattern[i:]
		switch c := pattern[i]; {
		case c == '\\' && i+1 < len(pattern):
			next := pattern[i+1]
			i++
			switch {
			case next == 'Z' && !inClass:
				b.WriteString(`\z`)
				continue
			case strings.IndexByte("dDwWsSbB", next) >= 0:
				classes = true
			case next >= '1' && next <= '9' && !inClass:
				backtracks = true
			}
			b.WriteByte(c)
			b.WriteByte(next)
		case inClass:
			if c == '[' {
				b.WriteByte('\\')
			}
			inClass = c != ']'
			b.WriteByte(c)
		case c == '[':
			inClass = true
			n := 1
			for _, lead := range []string{"^", "]"} { // a bracket that comes first is literal
				if strings.HasPrefix(rest[n:], lead) {
					n++
				}
			}
			b.WriteString(strings.Replace(rest[:n], "]", `\]`, 1))
			i += n - 1
		case strings.HasPrefix(rest, "{,"):
			b.WriteString("{0,")
			i++
		case strings.HasPrefix(rest, "(?P="):
			end := strings.IndexByte(rest, ')')
			if end < 0 {
				b.WriteByte(c)
				continue
			}
			b.WriteString(`\k<` + rest[4:end] + `>`)
			i += end
			backtracks = true
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), classes, backtracks
}

// dotnetGroups writes named groups as the backtracking engine spells them.
func dotnetGroups(text string) string { return strings.ReplaceAll(text, "(?P<", "(?<") }
