package line

import (
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/jsonscan"
)

// JSONPaths calls visit with the name of each label that | json makes of an object, and with the keys that
// lead to its value. taken reports whether a stream label has a name. A line that is not an object has none.
func JSONPaths(object []byte, taken func(name string) bool, visit func(name string, path []string)) {
	w := &pathNames{taken: taken, visit: visit}
	w.members(object, 0)
}

// pathNames walks an object for JSONPaths.
type pathNames struct {
	taken func(string) bool
	visit func(string, []string)
	path  []string
	state jsonState // builds names as the parser does
}

func (w *pathNames) members(object []byte, depth int) {
	if depth >= MaxJSONDepth {
		return
	}
	// A malformed rest has no labels either, so the error says nothing new.
	_, _ = eachMember(object, nil, func(key, value []byte, kind jsonscan.Kind) error {
		before := len(w.state.prefix)
		w.path = append(w.path, string(key))
		switch kind {
		case jsonscan.Null, jsonscan.Array:
		case jsonscan.Object:
			w.state.descend(key, depth == 0)
			w.members(value, depth+1)
		default:
			w.leaf(key, depth)
		}
		w.path = w.path[:len(w.path)-1]
		w.state.prefix = w.state.prefix[:before]
		return nil
	})
}

func (w *pathNames) leaf(key []byte, depth int) {
	before := len(w.state.prefix)
	w.state.descend(key, depth == 0)
	if w.taken(string(w.state.prefix)) {
		w.state.prefix = w.state.prefix[:before]
		w.state.descend([]byte(string(key)+extractedSuffix), depth == 0)
	}
	if name := string(w.state.prefix); name != "" {
		path := slices.Clone(w.path)
		for i := range path {
			// Loki takes the suffix off keys of nested values, whoever has added it.
			if depth > 0 {
				path[i] = strings.TrimSuffix(path[i], extractedSuffix)
			}
		}
		w.visit(name, path)
	}
}
