package line

import (
	"strings"

	"github.com/shaledb/shale/internal/read/logql/line/extract"
)

// names keeps label names, so that the same name of the next line costs no memory. What a hostile line calls
// its labels must not stay forever, so they are few and short.
type names struct {
	known map[string]string
	keys  map[string]string // sanitized form by the key as it stands in lines
}

const (
	maxNames     = 1024
	maxNameBytes = 256
)

// intern returns a lasting copy of a name and true, or the name itself and false where it would be too many.
func (n *names) intern(name string) (string, bool) {
	if s, ok := n.known[name]; ok {
		return s, true
	}
	if len(n.known) >= maxNames || len(name) > maxNameBytes {
		return name, false
	}
	if n.known == nil {
		n.known = make(map[string]string)
	}
	s := strings.Clone(name)
	n.known[s] = s
	return s, true
}

// sanitized returns the label name that a key of a line stands for: without space around it, each character
// that a name cannot have as an underscore, and one before a leading digit. It is empty if the key is nothing
// but space.
func (l *labels) sanitized(key []byte) string {
	if s, ok := l.names.keys[string(key)]; ok {
		return s
	}
	at := len(l.arena)
	l.arena = extract.AppendName(l.arena, key, true)
	s := text(l.arena[at:len(l.arena):len(l.arena)])
	if len(l.names.keys) >= maxNames || len(key) > maxNameBytes {
		return s
	}
	if l.names.keys == nil {
		l.names.keys = make(map[string]string)
	}
	s = strings.Clone(s)
	l.arena = l.arena[:at]
	l.names.keys[string(key)] = s
	return s
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
