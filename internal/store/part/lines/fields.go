package lines

import "github.com/shaledb/shale/internal/store/part/file"

// Lines of logs are fixed text with values in between: numbers, and identifiers in hexadecimal digits, of
// which nothing can be saved but their spelling. The codec of lines takes the values out of a page of lines.
// What is left are fragments of text, of which there are few, and which follow each other as they do in the
// source of the program that logs. So there is
//
//   - a column for each place at which values stand, known by the text before it: of integers, of digits, of anything;
//   - after each column, and at the beginning of a line, a list of the fragments that have been seen there, and a column that
//     says which one follows;
//   - the text of all fragments.
//
// Columns of integers and text go through zstd together, digits do not. Against zstd of the whole lines that
// takes two thirds of the room on generated JSON, logfmt and access logs with random identifiers, for about
// the same work, and less to decode; see docs/benchmarks.md. What is a value is for the encoder to decide: to
// a decoder it is all the same.

// Kinds of values, as stored.
const (
	fieldEnd    byte = 0 // none: the line ends
	fieldNumber byte = 1 // decimal, without leading zeros
	fieldDigits byte = 2 // decimal, of a certain number of digits
	fieldHex    byte = 3 // 0-9a-f, of a certain number of digits
	fieldHexUp  byte = 4 // 0-9A-F
	fieldString byte = 5 // any bytes, at least one
	fieldDate   byte = 6 // dddd-dd-dd, as a number of eight digits
	fieldClock  byte = 7 // dd:dd:dd, as seconds
	fieldKinds  byte = 8
)

const (
	minFieldHex, maxFieldHex = 4, 64 // digits
	maxFieldDigits           = 18    // fit an int64
	// maxFieldColumns bounds the columns. From manyFieldColumns on, places that are new share one for each
	// kind and length.
	maxFieldColumns, manyFieldColumns = 512, 200
	// A page has at most one value for so many bytes: else it is not worth taking apart. That bounds the
	// memory of a decoder.
	minFieldBytes = 4
	// maxFieldBytes bounds the lines of a page that is taken apart, and twice as many its columns. Values
	// take many times the memory of their bytes while they are decoded, and of what is all equal a few bytes
	// stand for any number.
	maxFieldBytes, maxSoftBytes = 2 << 20, 4 << 20
	// MaxPageLines bounds the lines of a page.
	MaxPageLines = file.MaxPageRows
	// fieldTail is how much of the text before a value tells its column.
	fieldTail = 6
)

// Classes of bytes, as bits.
const (
	isDigit byte = 1 << iota
	isHexLow
	isHexUp
	isLetter
)

// runClass gives the class of the bytes of which runs are made, and 0 for others. T and Z are not among them,
// since in times they stand between numbers.
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

// runKind says what a run of bytes that have a class is.
type runKind uint8

const (
	runText   runKind = iota // letters
	runDigits                // a number
	runHex                   // hexadecimal digits, letters and others
	runHexUp
	runMixed  // text with numbers in it
	runString // letters and digits without an order
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
// ends, which for dates and times of day is after further runs. It is fieldEnd if the run is not one value; a
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

// digitsKind says how the digits b[i:j] are kept: after a decimal point the length counts.
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

// isClock reports whether b, which begins with a run of two digits, goes on as a time of day, and ends there.
func isClock(b []byte) bool {
	return len(b) >= 8 && b[2] == ':' && b[5] == ':' && twoDigits(b[3:]) && twoDigits(b[6:]) && b[3] < '6' && b[6] < '6' &&
		(len(b) == 8 || runClass[b[8]] == 0)
}

// isDate reports whether b, which begins with a run of four digits, goes on as a date, and ends there.
func isDate(b []byte) bool {
	return len(b) >= 10 && b[4] == '-' && b[7] == '-' && twoDigits(b[5:]) && twoDigits(b[8:]) && (len(b) == 10 || runClass[b[10]] == 0)
}

func twoDigits(b []byte) bool { return runClass[b[0]] == isDigit && runClass[b[1]] == isDigit }
