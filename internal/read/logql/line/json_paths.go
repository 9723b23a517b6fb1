package line

import (
	"strconv"

	"github.com/shaledb/shale/internal/jsonscan"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// pathParser is | json with expressions: the values at some paths become labels. A path that leads nowhere
// gives an empty label.
type pathParser struct {
	labels []string
	paths  []jsonPath
}

// jsonPath is a way from the top of a JSON value down. A step is a key, or the index of an array in brackets:
// as in Loki, a key that looks like an index is one.
type jsonPath []string

func newPathParser(exprs []syntax.Extraction) (*pathParser, error) {
	p := &pathParser{}
	for _, e := range exprs {
		path, err := parseJSONPath(e.From)
		if err != nil {
			return nil, invalidf("cannot parse expression [%s]: %s", e.From, err)
		}
		p.labels, p.paths = append(p.labels, e.Label), append(p.paths, path)
	}
	return p, nil
}

func (p *pathParser) run(r *Runner, line []byte) ([]byte, bool) {
	if len(line) == 0 || r.parsed() {
		return line, true
	}
	l := &r.labels
	if c := line[0]; c != '"' && c != '{' && c != '[' {
		l.fail(errJSON, "")
		return line, true
	}
	w := &r.paths
	w.begin(p.paths)
	w.each(l, line, func(path int, value []byte, kind jsonscan.Kind, err error) {
		if err != nil {
			l.fail(errJSON, err.Error())
			return
		}
		name := p.labels[path]
		if l.taken(name) {
			name = l.extracted(name)
		}
		switch kind {
		case jsonscan.Null:
			l.setParsed(name, "")
		case jsonscan.Object:
			l.setParsed(name, text(value))
		default:
			l.setParsed(name, l.jsonText(value))
		}
		w.values++
	})
	if w.values < len(p.labels) {
		for _, name := range p.labels {
			if _, ok := l.get(name); !ok {
				l.setParsed(name, "")
			}
		}
	}
	return line, true
}

// pathWalk walks JSON once and finds the values of paths. It does not check what it passes: what it says of
// malformed JSON is what Loki's library says.
type pathWalk struct {
	paths   []jsonPath
	found   []bool
	keys    []string // of the objects around, by level
	indexed []int    // paths that go on in the current array
	left    int      // paths that were not found
	values  int
}

func (w *pathWalk) begin(paths []jsonPath) {
	w.paths, w.left, w.values = paths, len(paths), 0
	w.found, w.keys = w.found[:0], w.keys[:0]
	longest := 0
	for _, p := range paths {
		w.found = append(w.found, false)
		longest = max(longest, len(p))
	}
	for range longest {
		w.keys = append(w.keys, "")
	}
}

// within reports whether a path leads through the keys of the first levels.
func (w *pathWalk) within(p jsonPath, levels int) bool {
	for i := range min(len(p), levels) {
		if p[i] != w.keys[i] {
			return false
		}
	}
	return true
}

type pathVisit func(path int, value []byte, kind jsonscan.Kind, err error)

func (w *pathWalk) each(l *labels, b []byte, visit pathVisit) {
	level := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			end, escaped := jsonscan.StringEnd(b, i+1)
			if end < 0 {
				return
			}
			next := jsonscan.SkipSpace(b, end+1)
			if next == len(b) {
				return
			}
			if b[next] != ':' {
				i = next - 1
				continue
			}
			key, ok := l.jsonKey(b[i+1:end], escaped)
			if !ok {
				return
			}
			if i = next; level <= len(w.keys) {
				if level < 1 {
					visit(-1, nil, 0, errJSONMalformed)
					return
				}
				w.keys[level-1] = key
				if w.member(b, i+1, level, visit); w.left == 0 {
					return
				}
			}
			if jsonscan.SkipSpace(b, i+1) == len(b) {
				return
			}
		case '{':
			level++
		case '}', ']':
			level--
		case '[':
			if level < 0 {
				visit(-1, nil, 0, errJSONMalformed)
				return
			}
			if w.choose(level); len(w.indexed) > 0 {
				level++
				if i = w.array(l, b, i, level, visit) - 1; w.left == 0 {
					return
				}
				continue
			}
			end := jsonscan.BlockEnd(b, i, '[', ']')
			if end < 0 {
				return
			}
			i = end - 1
		}
	}
}

// jsonKey unescapes a key.
func (l *labels) jsonKey(raw []byte, escaped bool) (string, bool) {
	if !escaped {
		return text(raw), true
	}
	at, ok := len(l.arena), false
	l.arena, ok = jsonscan.AppendUnescaped(l.arena, raw, jsonscan.Loki)
	return text(l.arena[at:len(l.arena):len(l.arena)]), ok
}

// member looks whether paths end at the value that begins at b[i].
func (w *pathWalk) member(b []byte, i, level int, visit pathVisit) {
	for n, p := range w.paths {
		if len(p) != level || w.found[n] || !w.within(p, level) {
			continue
		}
		w.found[n] = true
		w.left--
		value, kind, _, err := jsonValue(b, i)
		if visit(n, value, kind, err); w.left == 0 {
			return
		}
	}
}

// choose finds the paths that go on in an array at a level.
func (w *pathWalk) choose(level int) {
	w.indexed = w.indexed[:0]
	for n, p := range w.paths {
		if len(p) > level && !w.found[n] && len(p[level]) > 2 && p[level][0] == '[' && w.within(p, level) {
			w.indexed = append(w.indexed, n)
		}
	}
}

// arrayIndex returns the index that a step means. As in Loki's library, it is 0 for a step without a number.
func arrayIndex(step string) int {
	n, _ := strconv.Atoi(step[1 : len(step)-1])
	return n
}

// array looks into the elements that the chosen paths go through. It returns the place of the bracket that
// ends the array, or where its elements cannot be read any further.
func (w *pathWalk) array(l *labels, b []byte, i, level int, visit pathVisit) int {
	it := arrayWalk{b: b, at: i}
	for n := 0; it.next(); n++ {
		for _, at := range w.indexed {
			p := w.paths[at]
			if arrayIndex(p[level-1]) != n {
				continue
			}
			w.found[at] = true
			w.left--
			from := l.findKeys(it.value, p[level:])
			switch {
			case from < 0:
			case it.kind == jsonscan.String:
				visit(at, it.value[from:], jsonscan.String, nil)
			default:
				value, kind, _, err := jsonValue(it.value, from)
				visit(at, value, kind, err)
			}
		}
	}
	return it.at
}

// arrayWalk walks the elements of an array.
type arrayWalk struct {
	b     []byte
	at    int // of the bracket at first; then where reading goes on, or has ended
	begun bool
	value []byte
	kind  jsonscan.Kind
	start int // of the value; of a string, of its first quote
}

func (a *arrayWalk) next() bool {
	if !a.begun {
		a.begun = true
		a.at++
		i := jsonscan.SkipSpace(a.b, a.at)
		if i == len(a.b) {
			return false
		}
		if a.at = i; a.b[i] == ']' {
			return false
		}
	} else {
		i := jsonscan.SkipSpace(a.b, a.at)
		if i == len(a.b) {
			return false
		}
		if a.at = i; a.b[i] != ',' {
			return false
		}
		a.at++
	}
	value, kind, end, err := jsonValue(a.b, a.at)
	if err != nil {
		return false
	}
	a.value, a.kind, a.start = value, kind, end-len(value)
	if kind == jsonscan.String {
		a.start = end - len(value) - 2
	}
	a.at = end
	return true
}

// findKeys returns the index after the colon of the member, or of the element, that a path leads to, or -1.
// Without a path it returns 0.
func (l *labels) findKeys(b []byte, path jsonPath) int {
	if len(path) == 0 {
		return 0
	}
	level, matched, last := 0, 0, true
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			end, escaped := jsonscan.StringEnd(b, i+1)
			if end < 0 {
				return -1
			}
			next := jsonscan.SkipSpace(b, end+1)
			if next == len(b) {
				return -1
			}
			if b[next] != ':' {
				i = next - 1
				continue
			}
			key, ok := l.jsonKey(b[i+1:end], escaped)
			if !ok || level < 1 || level > len(path) {
				return -1
			}
			i = next
			if last = key == path[level-1]; last && matched == level-1 {
				if matched++; matched == len(path) {
					return i + 1
				}
			}
		case '{':
			if last {
				level++
				continue
			}
			end := jsonscan.BlockEnd(b, i, '{', '}')
			if end < 0 {
				return -1
			}
			i = end - 1
		case '}':
			if level--; level == matched {
				matched--
			}
		case '[':
			if matched == level && level >= 0 && len(path[level]) > 0 && path[level][0] == '[' {
				return l.findElement(b, i, path[level:])
			}
			end := jsonscan.BlockEnd(b, i, '[', ']')
			if end < 0 {
				return -1
			}
			i = end - 1
		case ':':
			return -1
		}
	}
	return -1
}

// findElement goes on in the array at b[i], whose index the path begins with.
func (l *labels) findElement(b []byte, i int, path jsonPath) int {
	step := path[0]
	if len(step) < 3 || step[len(step)-1] != ']' {
		return -1
	}
	index, err := strconv.Atoi(step[1 : len(step)-1])
	if err != nil {
		return -1
	}
	it := arrayWalk{b: b, at: i}
	for n := 0; it.next(); n++ {
		if n != index {
			continue
		}
		value := it.value
		if it.kind == jsonscan.String {
			value = b[it.start : it.start+len(value)+2]
		}
		if len(value) == 0 {
			return -1
		}
		if at := l.findKeys(value, path[1:]); at >= 0 {
			return it.start + at
		}
		return -1
	}
	return -1
}
