package logs

import (
	"bytes"
	"strconv"
	"unicode"
)

// level is a log level that can be detected.
type level uint8

const (
	none level = iota
	levelUnknown
	levelTrace
	levelDebug
	levelInfo
	levelWarn
	levelError
	levelCritical
	levelFatal
	levels // the number of levels
)

// String returns the level as the value of detected_level.
func (l level) String() string {
	return [levels]string{"", "unknown", "trace", "debug", "info", "warn", "error", "critical", "fatal"}[l]
}

// LevelNames returns the labels and fields that may hold the level of a line, in order of precedence.
func LevelNames() []string {
	return []string{
		"level", "LEVEL", "Level", "log.level", "severity", "SEVERITY", "Severity", "SeverityText", "lvl", "LVL", "Lvl",
		"severity_text", "Severity_Text", "SEVERITY_TEXT",
	}
}

// noLevel is the rank of a name that does not hold a level.
const noLevel = 99

// levelRank returns the precedence of a label or field that may hold a level, 0 being the highest, or
// noLevel.
func levelRank(name []byte) int {
	switch len(name) {
	case 3, 5, 8, 9, 12, 13:
	default:
		return noLevel
	}
	switch string(name) {
	case "level":
		return 0
	case "LEVEL":
		return 1
	case "Level":
		return 2
	case "log.level":
		return 3
	case "severity":
		return 4
	case "SEVERITY":
		return 5
	case "Severity":
		return 6
	case "SeverityText":
		return 7
	case "lvl":
		return 8
	case "LVL":
		return 9
	case "Lvl":
		return 10
	case "severity_text":
		return 11
	case "Severity_Text":
		return 12
	case "SEVERITY_TEXT":
		return 13
	}
	return noLevel
}

// parseLevel parses a level in any case. It returns none if value is not a level.
func parseLevel(value []byte) level {
	if len(value) < 3 || len(value) > len("information") {
		return none
	}
	var lower [len("information")]byte
	for i, c := range value {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		lower[i] = c
	}
	switch string(lower[:len(value)]) {
	case "trace", "trc":
		return levelTrace
	case "debug", "dbg":
		return levelDebug
	case "info", "inf", "information":
		return levelInfo
	case "warn", "wrn", "warning":
		return levelWarn
	case "error", "err":
		return levelError
	case "critical":
		return levelCritical
	case "fatal":
		return levelFatal
	}
	return none
}

// severity returns the level for an OpenTelemetry severity number in decimal.
func severity(number []byte) level {
	n, err := strconv.Atoi(string(number))
	switch {
	case err != nil:
		return levelInfo
	case n == 0 || n > 24:
		return levelUnknown
	case n <= 4:
		return levelTrace
	case n <= 8:
		return levelDebug
	case n <= 12:
		return levelInfo
	case n <= 16:
		return levelWarn
	case n <= 20:
		return levelError
	}
	return levelFatal
}

// lineLevel detects the level of a line in the same way as Loki 3.7. If the line is JSON or logfmt, a
// field with the name of a level counts, otherwise the first word that is a level.
func lineLevel(line []byte) level {
	var value []byte
	switch {
	case isJSON(line):
		if mayNameLevel(line) || bytes.Contains(line, escapedASCII) {
			value, _ = jsonLevel(line, 0)
		}
	case bytes.IndexByte(line, '=') >= 0:
		if mayNameLevel(line) {
			value = logfmtLevel(line)
		}
	}
	if l := parseLevel(value); l != none {
		return l
	}
	return wordLevel(line)
}

// mayNameLevel reports whether a line may have a field that holds a level. All names of such fields
// have a v between two letters that are e or l. Searching for single bytes is much faster than parsing
// all fields.
func mayNameLevel(line []byte) bool {
	return hasLevelV(line, 'v') || hasLevelV(line, 'V')
}

func hasLevelV(line []byte, v byte) bool {
	for i := 1; i < len(line)-1; {
		n := bytes.IndexByte(line[i:len(line)-1], v)
		if n < 0 {
			return false
		}
		i += n
		if a, b := line[i-1]|0x20, line[i+1]|0x20; (a == 'e' || a == 'l') && (b == 'e' || b == 'l') {
			return true
		}
		i++
	}
	return false
}

// isJSON reports whether the line is in braces, apart from white space around them.
func isJSON(line []byte) bool {
	front := line
	if len(front) > 0 && front[0] != '{' {
		front = bytes.TrimLeftFunc(front, unicode.IsSpace)
	}
	if len(front) == 0 || front[0] != '{' {
		return false
	}
	for i := len(line) - 1; i >= 0; i-- {
		if c := line[i]; !unicode.IsSpace(rune(c)) { // tests bytes, not runes, as Loki does
			return c == '}'
		}
	}
	return false
}
