package pyregexp

import (
	"regexp"
	"strconv"
	"strings"
)

// translation is a pattern in the spelling of both engines.
type translation struct {
	text       string
	classes    bool // Python takes classes, or the case of letters, from Unicode
	backtracks bool // surely
	groups     int
	names      map[string]int
}

// translate writes a pattern of Python in the spelling of Go: {,n} is {0,n}, \Z is \z, a bracket inside a
// class is literal. Groups lose their names, since the backtracking engine numbers those with names last,
// and (?P=name) is \k<number>.
func translate(pattern string) (*translation, error) {
	t := &translation{names: make(map[string]int), classes: strings.Contains(pattern, "(?i")}
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
				t.classes = true
			case next >= '1' && next <= '9' && !inClass:
				t.backtracks = true
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
			n, ok := t.names[rest[4:end]]
			if !ok {
				return nil, errorf("pattern %q refers to the group %q, which does not come before", pattern, rest[4:end])
			}
			b.WriteString(`\k<` + strconv.Itoa(n) + `>`)
			i += end
			t.backtracks = true
		case strings.HasPrefix(rest, "(?P<"):
			end := strings.IndexByte(rest, '>')
			if end < 0 || !identifier.MatchString(rest[4:end]) {
				return nil, errorf("pattern %q has a group without a proper name", pattern)
			}
			if _, twice := t.names[rest[4:end]]; twice {
				return nil, errorf("pattern %q has two groups named %q", pattern, rest[4:end])
			}
			t.groups++
			t.names[rest[4:end]] = t.groups
			b.WriteByte('(')
			i += end
		case c == '(':
			if !strings.HasPrefix(rest, "(?") {
				t.groups++
			}
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	t.text = b.String()
	return t, nil
}

// identifier is what the name of a group may be.
var identifier = regexp.MustCompile(`^[\pL_][\pL\pN_]*$`)
