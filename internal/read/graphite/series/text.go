package series

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// General writes a number as Python's %g does: six significant digits.
func General(v float64) string {
	if s := special(v); s != "" {
		return s
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}

// Shortest writes a float as Python's str does: the least digits that give the same number, and .0 after a
// whole one.
func Shortest(v float64) string { return string(AppendShortest(nil, v)) }

// AppendShortest appends what Shortest returns.
func AppendShortest(dst []byte, v float64) []byte {
	if s := special(v); s != "" {
		return append(dst, s...)
	}
	begin := len(dst)
	if a := math.Abs(v); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.AppendFloat(dst, v, 'e', -1, 64)
	}
	dst = strconv.AppendFloat(dst, v, 'f', -1, 64)
	for _, c := range dst[begin:] {
		if c == '.' {
			return dst
		}
	}
	return append(dst, ".0"...)
}

func special(v float64) string {
	switch {
	case math.IsNaN(v):
		return "nan"
	case math.IsInf(v, 1):
		return "inf"
	case math.IsInf(v, -1):
		return "-inf"
	}
	return ""
}

// Text writes an argument as Python's str does.
func Text(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case float64:
		if IsNull(v) {
			return "None"
		}
		return Shortest(v)
	case bool:
		if v {
			return "True"
		}
		return "False"
	case string:
		return v
	}
	return fmt.Sprint(v)
}

// Whole writes a number as Python's %d does: without its fraction.
func Whole(v float64) string {
	if s := special(v); s != "" {
		return s
	}
	return strings.TrimPrefix(strconv.FormatFloat(math.Trunc(v)+0, 'f', 0, 64), "-0")
}

// Round rounds to a number of decimal places, halves to the even digit of the exact decimal value, as
// Python's round does. Negative places round to tens, hundreds, and so on.
func Round(v float64, places int) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	switch {
	case places > 323:
		return v
	case places < -308:
		return math.Copysign(0, v)
	case places >= 0:
		// The text is rounded from the exact value, and read back to the nearest float.
		r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'f', places, 64), 64)
		return r
	}
	pow := math.Pow10(-places)
	y := v / pow
	z := math.Round(y)
	if math.Abs(y-z) == 0.5 {
		z = 2 * math.Round(y/2)
	}
	return z * pow
}
