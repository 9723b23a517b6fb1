package draw

import (
	"slices"
	"strconv"
	"strings"

	"github.com/shaledb/shale/internal/write/logs"
)

// levelFields are the fields of lines that may hold a level, as they are asked for. The first ones say what
// the level of a line is, whether they are of its stream or not.
var levelFields = func() (all []string) {
	names := slices.DeleteFunc(logs.LevelNames(), func(name string) bool { return strings.Contains(name, ".") })
	for _, name := range append(names, unclearLevels...) {
		if all = append(all, strconv.Quote(name)); strings.Contains(name, "_") {
			all = append(all, strconv.Quote(strings.ReplaceAll(name, "_", ".")), strconv.Quote(strings.ReplaceAll(name, "_", "-")))
		}
	}
	return all
}()

// unclearLevels are fields that are levels only as metadata.
var unclearLevels = []string{"detected_level", "severity_number"}

// Level says whether the level of a line depends on which of its fields are those of its stream.
type Level struct {
	fields  int
	unclear bool
}

// Add adds the name of a field that is not empty.
func (l *Level) Add(field []byte) {
	switch name := strings.Map(underscored, string(field)); {
	case name == "_time", name == "_msg":
	case slices.Contains(unclearLevels, name):
		l.unclear = true
	default:
		l.fields++
	}
}

// IsKnown reports whether the level does not depend on that.
func (l *Level) IsKnown() bool { return !l.unclear && l.fields <= 1 }

func underscored(r rune) rune {
	if r == '.' || r == '-' {
		return '_'
	}
	return r
}
