package line

import (
	"bytes"

	"github.com/shaledb/shale/internal/jsonscan"
	"github.com/shaledb/shale/internal/read/logql/line/extract"
)

// jsonParser is | json without expressions: each value that is neither null nor in an array becomes a label,
// named after the keys that lead to it.
type jsonParser struct{}

// jsonState is what a runner keeps for it.
type jsonState struct {
	prefix   []byte // the sanitized keys of the objects around
	brackets []byte // open ones within an array
	tooDeep  bool
}

func (jsonParser) run(r *Runner, line []byte) ([]byte, bool) {
	s := &r.json
	if r.parsed() {
		return line, true
	}
	s.prefix, s.tooDeep = s.prefix[:0], false
	r.labels.mark()
	i := jsonscan.SkipSpace(line, 0)
	if i < len(line) && line[i] == '{' {
		switch _, o := s.object(r, line, i+1, 0); o {
		case jsonDone:
			return line, true
		case jsonRefused:
			return line, false
		case jsonParsed:
			return line, true
		}
	}
	// Something is unusual. What was found up to there need not be what Loki finds: it first looks for the end
	// of an object, and then into it. So it is done again, in its way.
	r.labels.rewind()
	s.prefix = s.prefix[:0]
	err := s.lenient(r, line, 0)
	switch {
	case s.tooDeep:
		r.limit = limitf("json: objects lie deeper in each other than %d", MaxJSONDepth)
		return line, false
	case err == errRefused:
		return line, false
	case err == errParsed:
	case err != nil:
		r.labels.fail(errJSON, err.Error())
	}
	return line, true
}

// outcome is how reading well-formed JSON ended.
type outcome uint8

const (
	jsonDone outcome = iota
	jsonRefused
	jsonUnusual
	jsonParsed // the sample needs nothing of the rest
)

// object reads the members of an object whose bracket is before line[i], and returns the index after it. It
// reads well-formed JSON only, in one pass.
func (s *jsonState) object(r *Runner, line []byte, i, depth int) (int, outcome) {
	for {
		if i = jsonscan.SkipSpace(line, i); i >= len(line) {
			return 0, jsonUnusual
		}
		if line[i] == '}' {
			return i + 1, jsonDone
		}
		if line[i] != '"' {
			return 0, jsonUnusual
		}
		end, escaped := jsonscan.StringEnd(line, i+1)
		if end < 0 {
			return 0, jsonUnusual
		}
		key := line[i+1 : end]
		if escaped {
			at, ok := len(r.labels.arena), false
			if r.labels.arena, ok = jsonscan.AppendUnescaped(r.labels.arena, key, jsonscan.Loki); !ok {
				return 0, jsonUnusual
			}
			key = r.labels.arena[at:len(r.labels.arena):len(r.labels.arena)]
		}
		if i = jsonscan.SkipSpace(line, end+1); i >= len(line) || line[i] != ':' {
			return 0, jsonUnusual
		}
		if i = jsonscan.SkipSpace(line, i+1); i >= len(line) {
			return 0, jsonUnusual
		}
		var o outcome
		if i, o = s.value(r, line, i, depth, key); o != jsonDone {
			return 0, o
		}
		if i = jsonscan.SkipSpace(line, i); i >= len(line) {
			return 0, jsonUnusual
		}
		switch line[i] {
		case ',':
			i++
		case '}':
			return i + 1, jsonDone
		default:
			return 0, jsonUnusual
		}
	}
}

// value reads the value that begins at line[i].
func (s *jsonState) value(r *Runner, line []byte, i, depth int, key []byte) (int, outcome) {
	switch c := line[i]; {
	case c == '"':
		end, _ := jsonscan.StringEnd(line, i+1)
		if end < 0 {
			return 0, jsonUnusual
		}
		return end + 1, s.leaf(r, line, end, depth, key, line[i+1:end], jsonscan.String)
	case c == '{':
		before := len(s.prefix)
		s.descend(key, depth == 0)
		end, o := 0, jsonUnusual
		if !extract.LooksInto(r.p.hints, s.prefix) {
			if end = jsonscan.BlockEnd(line, i, '{', '}'); end >= 0 {
				o = jsonDone
			}
		} else if depth+1 < MaxJSONDepth {
			end, o = s.object(r, line, i+1, depth+1)
		}
		s.prefix = s.prefix[:before]
		return end, o
	case c == '[':
		var end int
		if end, s.brackets = jsonscan.ArrayEnd(line, i, s.brackets); end < 0 {
			return 0, jsonUnusual
		}
		return end, jsonDone
	case c == 't' && jsonscan.HasWord(line[i:], "true"):
		return i + 4, s.leaf(r, line, i, depth, key, line[i:i+4], jsonscan.Bool)
	case c == 'f' && jsonscan.HasWord(line[i:], "false"):
		return i + 5, s.leaf(r, line, i, depth, key, line[i:i+5], jsonscan.Bool)
	case c == 'n' && jsonscan.HasWord(line[i:], "null"):
		return i + 4, jsonDone
	case c == '-' || isDigit(c):
		end := jsonscan.NumberEnd(line, i)
		if end < 0 {
			return 0, jsonUnusual
		}
		return end, s.leaf(r, line, end, depth, key, line[i:end], jsonscan.Number)
	}
	return 0, jsonUnusual
}

// descend adds a key to the prefix.
func (s *jsonState) descend(key []byte, first bool) {
	if len(bytes.TrimSpace(key)) == 0 {
		return
	}
	if !first && len(s.prefix) > 0 {
		s.prefix = append(s.prefix, '_')
	}
	s.prefix = extract.AppendName(s.prefix, key, len(s.prefix) == 0)
}

// name returns the name of the label for a key below the prefix, or false if there is none or the label is
// not to be set.
func (s *jsonState) name(r *Runner, depth int, key []byte) (string, bool) {
	l := &r.labels
	if depth == 0 {
		if r.skips(key) {
			return "", false
		}
		name := l.sanitized(key)
		if name == "" {
			return "", false
		}
		return r.admit(name)
	}
	before, at := len(s.prefix), len(l.arena)
	s.descend(key, false)
	name, own := l.names.intern(text(s.prefix))
	if l.taken(name) {
		s.prefix = s.prefix[:before]
		l.arena = append(append(l.arena, key...), extractedSuffix...)
		s.descend(l.arena[at:], false)
		l.arena = l.arena[:at]
		name, own = l.names.intern(text(s.prefix))
	}
	if !own {
		name = l.keep(s.prefix)
	}
	s.prefix = s.prefix[:before]
	return name, !l.wasParsed(name) && r.wants(name)
}

// leaf sets the label of a value that is not nested.
func (s *jsonState) leaf(r *Runner, line []byte, i, depth int, key, value []byte, kind jsonscan.Kind) outcome {
	name, ok := s.name(r, depth, key)
	if !ok {
		return jsonDone
	}
	v := text(value)
	if kind == jsonscan.String {
		v = r.labels.jsonText(value)
	}
	r.labels.setParsed(name, v)
	if r.accepts(name) {
		if len(r.p.hints) == 0 || !r.parsed() {
			return jsonDone
		}
		// As below: a label within an object counts only if the object is closed.
		if depth > 0 && !jsonscan.Closes(line, i, depth) {
			return jsonUnusual
		}
		return jsonParsed
	}
	// The line is dropped for this label only if the objects around it are really closed: else it would not
	// have been found.
	if depth > 0 && !jsonscan.Closes(line, i, depth) {
		return jsonUnusual
	}
	return jsonRefused
}

// lenient reads an object as Loki does: first its end, then its members, each of the same way.
func (s *jsonState) lenient(r *Runner, object []byte, depth int) error {
	if depth >= MaxJSONDepth {
		s.tooDeep = true
		return errRefused
	}
	// Keys are copied to memory of their own: the arena grows while they are looked at.
	_, err := eachMember(object, nil, func(key, value []byte, kind jsonscan.Kind) error {
		switch kind {
		case jsonscan.Null, jsonscan.Array:
			return nil
		case jsonscan.Object:
			before := len(s.prefix)
			s.descend(key, depth == 0)
			var err error
			if extract.LooksInto(r.p.hints, s.prefix) {
				err = s.lenient(r, value, depth+1)
			}
			s.prefix = s.prefix[:before]
			return err
		}
		name, ok := s.name(r, depth, key)
		if !ok {
			return nil
		}
		v := text(value)
		if kind == jsonscan.String {
			v = r.labels.jsonText(value)
		}
		r.labels.setParsed(name, v)
		switch {
		case !r.accepts(name):
			return errRefused
		case len(r.p.hints) > 0 && r.parsed():
			return errParsed
		}
		return nil
	})
	return err
}
