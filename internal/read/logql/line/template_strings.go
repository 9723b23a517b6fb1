package line

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"reflect"
	"strings"
	"text/template"
	"unicode/utf8"
)

// plain wraps a function whose result is about as long as what it is given, and charges for both.
func (t *textTemplate) plain(f func(string) string) func(string) (string, error) {
	return func(s string) (string, error) {
		if err := t.spend(4 * len(s)); err != nil {
			return "", err
		}
		return f(s), nil
	}
}

// plain2 is plain for functions of two strings.
func (t *textTemplate) plain2(f func(a, b string) string) func(a, b string) (string, error) {
	return func(a, b string) (string, error) {
		if err := t.spend(len(a) + len(b)); err != nil {
			return "", err
		}
		return f(a, b), nil
	}
}

// test2 is plain2 for functions that say yes or no.
func (t *textTemplate) test2(f func(a, b string) bool) func(a, b string) (bool, error) {
	return func(a, b string) (bool, error) { return f(a, b), t.spend(len(a) + len(b)) }
}

// swapped turns the arguments round: what a pipe brings comes last.
func swapped[T any](f func(a, b string) T) func(a, b string) T {
	return func(a, b string) T { return f(b, a) }
}

// addStrings adds what does not make strings much longer.
func (t *textTemplate) addStrings(m template.FuncMap) {
	m["ToLower"], m["lower"] = t.plain(strings.ToLower), t.plain(strings.ToLower)
	m["ToUpper"], m["upper"] = t.plain(strings.ToUpper), t.plain(strings.ToUpper)
	m["TrimSpace"], m["trim"] = t.plain(strings.TrimSpace), t.plain(strings.TrimSpace)
	//lint:ignore SA1019 in LogQL title is this function, with its faults
	m["title"] = t.plain(strings.Title)
	m["Trim"], m["TrimLeft"], m["TrimRight"] = t.plain2(strings.Trim), t.plain2(strings.TrimLeft), t.plain2(strings.TrimRight)
	m["TrimPrefix"], m["TrimSuffix"] = t.plain2(strings.TrimPrefix), t.plain2(strings.TrimSuffix)
	m["trimAll"] = t.plain2(swapped(strings.Trim))
	m["trimPrefix"], m["trimSuffix"] = t.plain2(swapped(strings.TrimPrefix)), t.plain2(swapped(strings.TrimSuffix))
	m["contains"] = t.test2(swapped(strings.Contains))
	m["hasPrefix"], m["hasSuffix"] = t.test2(swapped(strings.HasPrefix)), t.test2(swapped(strings.HasSuffix))
	m["urlencode"] = t.plain(url.QueryEscape)
	m["urldecode"] = func(s string) (string, error) {
		if err := t.spend(len(s)); err != nil {
			return "", err
		}
		return url.QueryUnescape(s)
	}
	m["b64enc"] = t.plain(func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) })
	m["b64dec"] = t.plain(decodeBase64)
	m["trunc"] = truncate
	m["substr"] = substring
	m["fromJson"] = func(s string) (any, error) {
		if err := t.spend(16 * len(s)); err != nil {
			return nil, err
		}
		var v any
		_ = json.Unmarshal([]byte(s), &v) // what cannot be read is nil
		return v, nil
	}
	m["default"] = func(d any, given ...any) any {
		if len(given) == 0 || isUnset(given[0]) {
			return d
		}
		return given[0]
	}
}

func decodeBase64(s string) string {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// truncate takes so many bytes, from the end if they are negative.
func truncate(n int, s string) string {
	switch {
	case n < 0 && len(s)+n > 0:
		return s[len(s)+n:]
	case n >= 0 && len(s) > n:
		return s[:n]
	}
	return s
}

// substring takes the bytes from start up to end. It fails where there are none: that is an error of the
// line.
func substring(start, end int, s string) string {
	switch {
	case start < 0:
		return s[:end]
	case end < 0 || end > len(s):
		return s[start:]
	}
	return s[start:end]
}

// isUnset reports whether a value is what default replaces: nothing, zero, false or empty.
func isUnset(v any) bool {
	g := reflect.ValueOf(v)
	if !g.IsValid() {
		return true
	}
	switch g.Kind() {
	case reflect.Array, reflect.Slice, reflect.Map, reflect.String:
		return g.Len() == 0
	case reflect.Struct:
		return false
	case reflect.Bool, reflect.Complex64, reflect.Complex128, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return g.IsZero()
	}
	return g.IsNil()
}

// addLengthening adds what can make strings much longer. They charge before they make them.
func (t *textTemplate) addLengthening(m template.FuncMap) {
	m["repeat"] = func(n int, s string) (string, error) {
		if err := t.spendTimes(n, len(s)); err != nil {
			return "", err
		}
		return strings.Repeat(s, n), nil
	}
	m["indent"] = t.indent
	m["nindent"] = func(n int, s string) (string, error) {
		out, err := t.indent(n, s)
		return "\n" + out, err
	}
	m["alignLeft"] = func(n int, s string) (string, error) { return t.align(n, s, false) }
	m["alignRight"] = func(n int, s string) (string, error) { return t.align(n, s, true) }
	m["replace"] = func(old, new, s string) (string, error) { return t.replace(s, old, new, -1) }
	m["Replace"] = t.replace
}

// spendTimes charges n times so many bytes. What is negative or too large is for the function to complain of,
// or of no length.
func (t *textTemplate) spendTimes(n, size int) error {
	if n <= 0 || size == 0 {
		return nil
	}
	if n > MaxTemplateWork/size {
		return t.spend(MaxTemplateWork + 1)
	}
	return t.spend(n * size)
}

func (t *textTemplate) indent(n int, s string) (string, error) {
	if err := t.spendTimes(n, 2+strings.Count(s, "\n")); err != nil {
		return "", err
	}
	if err := t.spend(2 * len(s)); err != nil {
		return "", err
	}
	pad := strings.Repeat(" ", n)
	return pad + strings.ReplaceAll(s, "\n", "\n"+pad), nil
}

// align makes a string n characters long: with spaces, or without what is too much.
func (t *textTemplate) align(n int, s string, right bool) (string, error) {
	if err := t.spend(len(s)); err != nil {
		return "", err
	}
	have := utf8.RuneCountInString(s)
	if n < 0 || n == have {
		return s, nil
	}
	if n < have {
		runes := []rune(s)
		if right {
			return string(runes[have-n:]), nil
		}
		return string(runes[:n]), nil
	}
	if err := t.spendTimes(n-have, 2); err != nil {
		return "", err
	}
	pad := strings.Repeat(" ", n-have)
	if right {
		return pad + s, nil
	}
	return s + pad, nil
}

func (t *textTemplate) replace(s, old, new string, n int) (string, error) {
	if err := t.spend(2 * len(s)); err != nil {
		return "", err
	}
	if n != 0 {
		count := strings.Count(s, old)
		if n > 0 {
			count = min(count, n)
		}
		if err := t.spendTimes(count, len(new)); err != nil {
			return "", err
		}
	}
	return strings.Replace(s, old, new, n), nil
}
