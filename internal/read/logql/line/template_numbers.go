package line

import (
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"text/template"
	"time"
)

// addNumbers adds arithmetic. Arguments are converted to numbers, or to 0.
func (t *textTemplate) addNumbers(m template.FuncMap) {
	m["int"] = func(v any) int { return int(toInt(v)) }
	m["float64"] = toFloat
	m["add"] = func(all ...any) int64 {
		var sum int64
		for _, v := range all {
			sum += toInt(v)
		}
		return sum
	}
	m["sub"] = func(a, b any) int64 { return toInt(a) - toInt(b) }
	m["mul"] = func(a any, others ...any) int64 {
		product := toInt(a)
		for _, v := range others {
			product *= toInt(v)
		}
		return product
	}
	m["div"] = func(a, b any) int64 { return toInt(a) / toInt(b) }
	m["mod"] = func(a, b any) int64 { return toInt(a) % toInt(b) }
	m["max"] = func(a any, others ...any) int64 {
		x := toInt(a)
		for _, v := range others {
			x = max(x, toInt(v))
		}
		return x
	}
	m["min"] = func(a any, others ...any) int64 {
		x := toInt(a)
		for _, v := range others {
			x = min(x, toInt(v))
		}
		return x
	}
	m["maxf"] = func(a any, others ...any) float64 { return fold(a, others, math.Max) }
	m["minf"] = func(a any, others ...any) float64 { return fold(a, others, math.Min) }
	m["floor"] = func(a any) float64 { return math.Floor(toFloat(a)) }
	m["ceil"] = func(a any) float64 { return math.Ceil(toFloat(a)) }
	m["round"] = round
	t.addDecimals(m)
	m["bytes"] = func(s string) (float64, error) {
		n, err := parseBytes(s)
		return float64(n), err
	}
	m["duration"], m["duration_seconds"] = seconds, seconds
}

func fold(a any, others []any, f func(a, b float64) float64) float64 {
	x := toFloat(a)
	for _, v := range others {
		x = f(x, toFloat(v))
	}
	return x
}

func seconds(s string) (float64, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, err
	}
	return d.Seconds(), nil
}

// round rounds to some decimal places, from half of one up, or from what else is given.
func round(a any, places int, from ...float64) float64 {
	up := .5
	if len(from) > 0 {
		up = from[0]
	}
	scale := math.Pow(10, float64(places))
	digit := scale * toFloat(a)
	if _, fraction := math.Modf(digit); fraction >= up {
		return math.Ceil(digit) / scale
	}
	return math.Floor(digit) / scale
}

// addDecimals adds arithmetic that is exact in decimals: 0.1 and 0.2 are 0.3.
func (t *textTemplate) addDecimals(m template.FuncMap) {
	ops := map[string]func(z, x, y *big.Rat){
		"addf": func(z, x, y *big.Rat) { z.Add(x, y) },
		"subf": func(z, x, y *big.Rat) { z.Sub(x, y) },
		"mulf": func(z, x, y *big.Rat) { z.Mul(x, y) },
		"divf": divideDecimal,
	}
	for name, op := range ops {
		m[name] = func(a any, others ...any) (float64, error) {
			x := toDecimal(toFloat(a))
			for _, v := range others {
				op(x, x, toDecimal(toFloat(v)))
				size := (x.Num().BitLen() + x.Denom().BitLen()) / 8
				if err := t.spend(64 + size*size/16); err != nil {
					return 0, err
				}
			}
			f, _ := x.Float64()
			return f, nil
		}
	}
	add := m["addf"].(func(any, ...any) (float64, error))
	m["addf"] = func(all ...any) (float64, error) { return add(0.0, all...) }
}

// toDecimal is the decimal number that a float is printed as.
func toDecimal(f float64) *big.Rat {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		panic(fmt.Sprintf("Cannot create a Decimal from %v", f)) // text/template makes it an error of the line
	}
	x, _ := new(big.Rat).SetString(strconv.FormatFloat(f, 'e', -1, 64))
	return x
}

// divideDecimal divides to 16 decimal places, and rounds half of the last one away from zero.
func divideDecimal(z, x, y *big.Rat) {
	if y.Sign() == 0 {
		panic("decimal division by 0")
	}
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(16), nil)
	z.Quo(x, y)
	z.Mul(z, new(big.Rat).SetInt(scale))
	negative := z.Sign() < 0
	twice := new(big.Int).Lsh(new(big.Int).Abs(z.Num()), 1)
	twice.Add(twice, z.Denom())
	q := twice.Quo(twice, new(big.Int).Lsh(z.Denom(), 1))
	if negative {
		q.Neg(q)
	}
	z.SetFrac(q, scale)
}

// basic takes a value down to string, bool, int64, uint64 or float64, or to nil.
func basic(v any) any {
	g := reflect.ValueOf(v)
	for g.Kind() == reflect.Pointer || g.Kind() == reflect.Interface {
		if g.IsNil() {
			return nil
		}
		g = g.Elem()
	}
	switch {
	case !g.IsValid():
		return nil
	case g.CanInt():
		return g.Int()
	case g.CanUint():
		return g.Uint()
	case g.CanFloat():
		return g.Float()
	case g.Kind() == reflect.Bool:
		return g.Bool()
	case g.Kind() == reflect.String:
		return g.String()
	}
	return nil
}

// toInt reads an integer. A text may be hexadecimal or octal, and loses its decimal places. Without a number
// the result is 0.
func toInt(v any) int64 {
	switch v := basic(v).(type) {
	case int64:
		return v
	case uint64:
		return int64(v)
	case float64:
		return int64(v)
	case bool:
		if v {
			return 1
		}
	case string:
		n, err := strconv.ParseInt(withoutDecimals(v), 0, 64)
		if err == nil {
			return n
		}
	}
	return 0
}

// withoutDecimals cuts the decimal places of a plain decimal number.
func withoutDecimals(s string) string {
	whole, decimals, ok := strings.Cut(s, ".")
	if !ok || strings.Trim(decimals, "0123456789") != "" {
		return s
	}
	digits := whole
	if digits != "" && (digits[0] == '-' || digits[0] == '+') {
		digits = digits[1:]
	}
	if strings.Trim(digits, "0123456789") != "" {
		return s
	}
	if digits == "" {
		return whole + "0"
	}
	return whole
}

// toFloat reads a number. Without one the result is 0.
func toFloat(v any) float64 {
	switch v := basic(v).(type) {
	case int64:
		return float64(v)
	case uint64:
		return float64(v)
	case float64:
		return v
	case bool:
		if v {
			return 1
		}
	case string:
		f, err := strconv.ParseFloat(v, 64)
		if err == nil {
			return f
		}
	}
	return 0
}
