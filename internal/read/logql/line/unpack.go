package line

import "github.com/shaledb/shale/internal/jsonscan"

// unpackParser is | unpack: a line that was packed as JSON becomes what it was, under _entry, and the labels
// that were packed with it. All of them are strings; without an entry nothing is unpacked.
type unpackParser struct{}

const packedEntry = "_entry"

func (unpackParser) run(r *Runner, line []byte) ([]byte, bool) {
	if len(line) == 0 || r.parsed() {
		return line, true
	}
	l := &r.labels
	if line[0] != '{' {
		l.fail(errJSON, errJSONExpected.Error())
		return line, true
	}
	var entry []byte
	packed := false
	r.unpacked = r.unpacked[:0]
	_, err := eachMember(line, nil, func(key, value []byte, kind jsonscan.Kind) error {
		switch {
		case kind != jsonscan.String:
			return nil
		case string(key) == packedEntry:
			at, ok := len(l.arena), false
			if l.arena, ok = jsonscan.AppendUnescaped(l.arena, value, jsonscan.Loki); !ok {
				return errJSONEscape
			}
			entry, packed = l.arena[at:len(l.arena):len(l.arena)], true
			return nil
		}
		name := text(key)
		if l.taken(name) {
			name = l.extracted(name)
		}
		if l.wasParsed(name) {
			return nil
		}
		r.unpacked = append(r.unpacked, label{name: l.sanitized(bytesOf(name)), value: l.jsonText(value)})
		return nil
	})
	if err != nil {
		l.fail(errJSON, err.Error())
		return line, true
	}
	if !packed {
		return line, true
	}
	for _, u := range r.unpacked {
		if !r.wants(u.name) {
			continue
		}
		if l.setParsed(u.name, u.value); !r.accepts(u.name) {
			return line, false
		}
	}
	return entry, true
}
