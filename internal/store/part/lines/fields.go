package lines

import "github.com/shaledb/shale/internal/store/part/file"

// Log lines are fixed text with values in between: numbers, and identifiers in hexadecimal digits, where
// only the spelling can be saved. The codec takes the values out of a page of lines. Fragments of text
// remain. There are few of them, and they follow each other as in the source of the program that logs. The
// page has:
//
//   - a column for each text that values follow: of integers, of digits, or of anything;
//   - for each column, and for the beginning of a line, a list of the fragments that follow its values, and
//     for each value which one follows;
//   - the text of all fragments.
//
// Columns of integers and text go through zstd together, digits do not. docs/adr/0005-codec-of-lines.md
// compares this with plain zstd. The encoder alone decides what is a value; the decoder treats all columns
// alike.

// Kinds of values, as stored.
const (
	fieldEnd    byte = 0 // no value: the line ends
	fieldNumber byte = 1 // decimal, without leading zeros
	fieldDigits byte = 2 // decimal, fixed number of digits
	fieldHex    byte = 3 // 0-9a-f, fixed number of digits
	fieldHexUp  byte = 4 // 0-9A-F
	fieldString byte = 5 // any bytes, at least one
	fieldDate   byte = 6 // dddd-dd-dd, as a number of eight digits
	fieldClock  byte = 7 // dd:dd:dd, as seconds
	fieldKinds  byte = 8
)

const (
	minFieldHex, maxFieldHex = 4, 64 // digits
	maxFieldDigits           = 18    // fit an int64
	// maxFieldColumns bounds the columns. From manyFieldColumns on, new texts share one column for each kind
	// and length.
	maxFieldColumns, manyFieldColumns = 512, 200
	// A page has at most one value per minFieldBytes bytes; with more it is not worth splitting. The limit
	// bounds the memory of a decoder.
	minFieldBytes = 4
	// maxFieldBytes bounds the lines of a page with columns, and maxSoftBytes the bytes of its columns.
	// Decoded values take many times the memory of their bytes, and a few bytes stand for any number of equal
	// values.
	maxFieldBytes, maxSoftBytes = 2 << 20, 4 << 20
	// MaxPageLines bounds the lines of a page.
	MaxPageLines = file.MaxPageRows
	// fieldTail is how much of the text before a value selects its column.
	fieldTail = 6
)

// Classes of bytes, as bits.
const (
	isDigit byte = 1 << iota
	isHexLow
	isHexUp
	isLetter
)

// runClass gives the class of the bytes that make up runs, and 0 for others. T and Z are not among them,
// because in times they separate numbers.
var runClass = func() (class [256]byte) {
	for c := '0'; c <= '9'; c++ {
		class[c] = isDigit
	}
	for c := 'a'; c <= 'z'; c++ {
		class[c], class[c-'a'+'A'] = isLetter, isLetter
	}
	for c := 'a'; c <= 'f'; c++ {
		class[c], class[c-'a'+'A'] = isHexLow, isHexUp
	}
	class['T'], class['Z'] = 0, 0
	return class
}()

// runKind classifies a run of bytes that have a class.
type runKind uint8

const (
	runText   runKind = iota // letters
	runDigits                // a number
	runHex                   // hexadecimal digits, letters and others
	runHexUp
	runMixed  // text with numbers in it
	runString // letters and digits in any order
)

// kindOf classifies a run whose bytes have the classes of or.
func kindOf(run []byte, or byte) runKind {
	n := len(run)
	switch {
	case or&isDigit == 0:
		return runText
	case n > maxFieldHex:
		return runString
	case or == isDigit:
		return runDigits
	case or == isDigit|isHexLow && n >= minFieldHex:
		return runHex
	case or == isDigit|isHexUp && n >= minFieldHex:
		return runHexUp
	case n < 6:
		return runMixed
	}
	changes := 0
	for k := 1; k < n; k++ {
		if (runClass[run[k]] == isDigit) != (runClass[run[k-1]] == isDigit) {
			changes++
		}
	}
	if changes > 2 {
		return runString
	}
	return runMixed
}

// fieldOf returns the kind of the value that begins with the run b[i:j], its number of digits, and where it
// ends; dates and times of day end after further runs. It returns fieldEnd if the run is not one value. A
// single digit is text.
func fieldOf(b []byte, i, j int, k runKind) (kind byte, n, end int) {
	switch k {
	case runDigits:
		n = j - i
		if n == 1 {
			return fieldEnd, 0, j
		}
		if n == 2 && isClock(b[i:]) {
			return fieldClock, 0, i + len("00:00:00")
		}
		if n == 4 && isDate(b[i:]) {
			return fieldDate, 0, i + len("2006-01-02")
		}
		kind, n = digitsKind(b, i, j)
		return kind, n, j
	case runHex:
		return fieldHex, j - i, j
	case runHexUp:
		return fieldHexUp, j - i, j
	case runString:
		return fieldString, 0, j
	}
	return fieldEnd, 0, j
}

// digitsKind returns how the digits b[i:j] are stored: after a decimal point their number matters.
func digitsKind(b []byte, i, j int) (kind byte, n int) {
	n = j - i
	switch {
	case n > maxFieldDigits:
		return fieldHex, n
	case n > 1 && b[i] == '0':
		return fieldDigits, n
	case n > 1 && n <= 9 && i > 0:
		switch b[i-1] {
		case '.', ',':
			return fieldDigits, n
		}
	}
	return fieldNumber, 0
}

// isClock reports whether b, which begins with a run of two digits, is a time of day up to the end of a
// run.
func isClock(b []byte) bool {
	return len(b) >= 8 && b[2] == ':' && b[5] == ':' && twoDigits(b[3:]) && twoDigits(b[6:]) && b[3] < '6' && b[6] < '6' &&
		(len(b) == 8 || runClass[b[8]] == 0)
}

// isDate reports whether b, which begins with a run of four digits, is a date up to the end of a run.
func isDate(b []byte) bool {
	return len(b) >= 10 && b[4] == '-' && b[7] == '-' && twoDigits(b[5:]) && twoDigits(b[8:]) && (len(b) == 10 || runClass[b[10]] == 0)
}

func twoDigits(b []byte) bool { return runClass[b[0]] == isDigit && runClass[b[1]] == isDigit }
