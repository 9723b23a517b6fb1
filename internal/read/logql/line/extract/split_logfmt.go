package extract

import (
	"bytes"

	"github.com/shaledb/shale/internal/model"
)

// logfmtText reads text of a line of logfmt.
func (x *splitFinder) logfmtText(b []byte) {
	for i := 0; i < len(b); {
		switch x.now.mode {
		case unknown, ended:
			return
		case betweenPairs:
			for i < len(b) && b[i] <= ' ' {
				i++
			}
			if i < len(b) {
				i = x.logfmtKey(b, i)
			}
		case inKey:
			i = x.logfmtKeyEnd(b, i)
		case inWord:
			if i = wordEnd(b, i); i < len(b) {
				x.now = place{mode: betweenPairs}
			}
		case beginsValue:
			i = x.logfmtValue(b, i)
		case inPlain:
			i = x.logfmtPlain(b, i)
		case inQuoted:
			i = x.logfmtQuoted(b, i)
		case inQuotedEscape:
			x.now.mode, x.now.begun = inQuoted, true
			i++
		}
	}
}

// logfmtKey reads a key and the equals sign, or what stands in its place.
func (x *splitFinder) logfmtKey(b []byte, i int) int {
	end, ok := keyEnd(b, i)
	switch {
	case !ok:
		x.now.mode = unknown
	case end == len(b):
		x.now.mode = inKey
	case b[end] <= ' ':
		x.keyAlone()
	case b[end] == '"' || end == i:
		x.drop()
	default:
		x.now = place{key: x.keys.add(0, b[i:end], "", "=", x.names)}
		if x.now.key != 0 {
			x.now.mode = beginsValue
		}
		end++
	}
	return end
}

// logfmtKeyEnd reads the rest of a key of which a part lies before. It must be alone.
func (x *splitFinder) logfmtKeyEnd(b []byte, i int) int {
	end, ok := keyEnd(b, i)
	switch {
	case !ok || end < len(b) && b[end] == '=':
		x.now.mode = unknown
	case end == len(b):
	case b[end] == '"':
		x.drop()
	default:
		x.keyAlone()
	}
	return end
}

// keyAlone ends a key without a value.
func (x *splitFinder) keyAlone() {
	if x.now = (place{mode: betweenPairs}); x.keepEmpty {
		x.now.mode = unknown
	}
}

// drop leaves out a pair that is wrong, up to the next space.
func (x *splitFinder) drop() {
	if x.now = (place{mode: inWord}); x.strict {
		x.now.mode = unknown
	}
}

// logfmtValue reads the beginning of a value.
func (x *splitFinder) logfmtValue(b []byte, i int) int {
	x.now.begun = false
	switch c := b[i]; {
	case c <= ' ':
		x.keyAlone()
	case c == '"':
		x.now.mode = inQuoted
		i++
	default:
		x.now.mode = inPlain
	}
	return i
}

// logfmtPlain reads a value without quotes. It is left out if a quote or an equals sign follows.
func (x *splitFinder) logfmtPlain(b []byte, i int) int {
	end := valueEnd(b, i)
	switch {
	case end == len(b):
		x.addText(b[i:], i)
	case b[end] > ' ':
		x.drop()
	default:
		x.endPair(b[i:end], i)
	}
	return end
}

// logfmtQuoted reads a value in quotes, and the last quote.
func (x *splitFinder) logfmtQuoted(b []byte, i int) int {
	n := bytes.IndexAny(b[i:], `"\`)
	switch {
	case n < 0:
		x.addText(b[i:], i)
		return len(b)
	case b[i+n] == '\\':
		if x.now.mode = inQuotedEscape; x.strict || x.field() >= 0 {
			x.now.mode = unknown
		}
	case n == 0 && !x.now.begun:
		x.keyAlone()
	default:
		x.endPair(b[i:i+n], i)
	}
	return i + n + 1
}

// endPair ends a value that is not empty.
func (x *splitFinder) endPair(b []byte, off int) {
	if x.endValue(b, off, false); x.now.mode != unknown {
		x.now = place{mode: betweenPairs}
	}
}

// logfmtColumn reads a value of a column.
func (x *splitFinder) logfmtColumn(column uint32) {
	if x.page.Columns[column].Class == model.TextAny {
		x.now.mode = unknown
		return
	}
	switch x.now.mode {
	case betweenPairs:
		x.now.mode = inKey
	case inKey, inWord:
	case beginsValue:
		x.now.mode, x.now.begun = inPlain, false
		x.addColumn(column)
	case inPlain, inQuoted:
		x.addColumn(column)
	case inQuotedEscape:
		x.now.mode, x.now.begun = inQuoted, true
	default:
		x.now.mode = unknown
	}
}

// logfmtEnd reads the end of a line.
func (x *splitFinder) logfmtEnd() {
	switch x.now.mode {
	case inKey, beginsValue:
		if x.keepEmpty {
			x.now.mode = unknown
			return
		}
	case inPlain:
		x.endValue(nil, 0, false)
	case inQuoted, inQuotedEscape:
		if x.strict {
			x.now.mode = unknown
			return
		}
	}
	if x.now.mode != unknown {
		x.now.mode = ended
	}
}
