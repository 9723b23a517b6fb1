package logs

import (
	"encoding/json"

	"github.com/shaledb/shale/internal/jsonscan"
)

// maxLevelDepth is the number of nesting levels that are searched: the line itself and the objects
// directly in it.
const maxLevelDepth = 2

// escapedASCII begins an escaped ASCII letter, with which a field name can hide from mayNameLevel.
var escapedASCII = []byte(`\u00`)

// jsonLevel returns the first string, undecoded, whose name has a levelRank in a JSON object or the
// objects directly in it. It reads and checks no more of the object than it needs. It returns done if
// the search is finished, because it found the string or the text is not JSON.
func jsonLevel(b []byte, depth int) (value []byte, done bool) {
	p := jsonscan.SkipSpace(b, 0)
	if p == len(b) || b[p] != '{' {
		return nil, true
	}
	if p = jsonscan.SkipSpace(b, p+1); p < len(b) && b[p] == '}' {
		return nil, false
	}
	for p < len(b) {
		if b[p] == '}' {
			return nil, false
		}
		if b[p] != '"' {
			return nil, true
		}
		end, escaped := jsonscan.StringEnd(b, p+1)
		if end < 0 {
			return nil, true
		}
		name := b[p+1 : end]
		if escaped {
			var s string
			if json.Unmarshal(b[p:end+1], &s) != nil {
				return nil, true
			}
			name = []byte(s)
		}
		if p = jsonscan.SkipSpace(b, end+1); p == len(b) || b[p] != ':' {
			return nil, true
		}
		if p = jsonscan.SkipSpace(b, p+1); p == len(b) {
			return nil, true
		}
		if value, p, done = jsonMember(b, p, name, depth); done {
			return value, true
		}
		p = jsonscan.SkipSpace(b, p)
		switch {
		case p == len(b):
			return nil, true
		case b[p] == '}':
			return nil, false
		case b[p] != ',':
			return nil, true
		}
		p = jsonscan.SkipSpace(b, p+1)
	}
	return nil, true
}

// jsonMember examines the value at p of an object's member and returns where it ends.
func jsonMember(b []byte, p int, name []byte, depth int) (value []byte, end int, done bool) {
	kind, end := jsonscan.Value(b, p)
	switch {
	case end < 0 || kind == jsonscan.Unknown:
		return nil, 0, true
	case kind == jsonscan.String && levelRank(name) != noLevel:
		return b[p+1 : end-1], 0, true
	case kind == jsonscan.Object && depth+1 < maxLevelDepth:
		if value, done = jsonLevel(b[p:end], depth+1); done {
			return value, 0, true
		}
	}
	return nil, end, false
}
