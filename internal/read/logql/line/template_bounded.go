package line

import (
	"errors"
	"fmt"
	"github.com/shaledb/shale/internal/read/logql/line/match"
	"regexp"
	"strings"
	"text/template"
)

// addBuiltins bounds those functions of text/template that make text: a width of a million in each of a
// thousand verbs is a gigabyte.
func (t *textTemplate) addBuiltins(m template.FuncMap) {
	m["printf"] = func(format string, args ...any) (string, error) {
		if err := t.spend(printfBound(format, args)); err != nil {
			return "", err
		}
		return fmt.Sprintf(format, args...), nil
	}
	m["print"] = func(args ...any) (string, error) { return fmt.Sprint(args...), t.spend(printBound(args)) }
	m["println"] = func(args ...any) (string, error) { return fmt.Sprintln(args...), t.spend(printBound(args)) }
	m["html"] = t.escaper(template.HTMLEscaper)
	m["js"] = t.escaper(template.JSEscaper)
	m["urlquery"] = t.escaper(template.URLQueryEscaper)
}

func (t *textTemplate) escaper(f func(...any) string) func(...any) (string, error) {
	return func(args ...any) (string, error) {
		if err := t.spend(6 * printBound(args)); err != nil {
			return "", err
		}
		return f(args...), nil
	}
}

// valueBound returns about how long a value is at most when it is printed: four bytes for each byte, as in
// \x00. Other values than strings are numbers, or as long as the labels of a line can be.
func valueBound(v any) int {
	switch v := v.(type) {
	case string:
		return 4*len(v) + 16
	case []byte:
		return 4*len(v) + 16
	case map[string]string:
		n := 16
		for k, s := range v {
			n += 4*(len(k)+len(s)) + 16
		}
		return n
	case map[string]any:
		n := 16
		for k, x := range v {
			n += 4*len(k) + 16 + valueBound(x)
		}
		return n
	case []any:
		n := 16
		for _, x := range v {
			n += valueBound(x)
		}
		return n
	}
	return 512
}

func printBound(args []any) int {
	n := 0
	for _, a := range args {
		n += valueBound(a) + 1
	}
	return n
}

// printfBound is how long the result can be: the format, each argument, the widths and precisions. Where
// arguments are named by number each verb may take the longest one, and where a width is an argument it may
// be any number that is.
func printfBound(format string, args []any) int {
	const maxWidth = 1_000_000 // that fmt accepts
	longest, width := 0, 0
	n := len(format)
	for _, a := range args {
		size := valueBound(a)
		n, longest = n+size, max(longest, size)
		if w, ok := basic(a).(int64); ok {
			width = max(width, int(min(max(w, -w), maxWidth)))
		}
	}
	number := 0
	for i := 0; i < len(format); i++ {
		switch c := format[i]; {
		case isDigit(c):
			number = min(number*10+int(c-'0'), maxWidth)
			continue
		case c == '*':
			n += width
		case c == '[':
			n += longest
		}
		// Each number counts, even if it does not set a width: there are few.
		n, number = n+number, 0
	}
	return n + number
}

// addRegexps adds functions of regular expressions. An expression is compiled once, while there are few of
// them.
func (t *textTemplate) addRegexps(m template.FuncMap) {
	compiled := map[string]*match.Matcher{}
	get := func(expr, s string) (*regexp.Regexp, error) {
		if err := t.spend(8 * (len(s) + len(expr))); err != nil {
			return nil, err
		}
		m := compiled[expr]
		if m == nil {
			if err := t.spend(64 * len(expr)); err != nil {
				return nil, err
			}
			var err error
			if m, err = compileTemplateRegexp(expr); err != nil {
				return nil, err
			}
			if len(compiled) < 64 {
				compiled[strings.Clone(expr)] = m
			}
		}
		// A match cannot be ended here, so that a large program costs more: a step takes some 10 ns, and more
		// with many groups.
		return m.Regexp, t.spendTimes(m.Size/16, len(s))
	}
	m["regexReplaceAll"] = func(expr, s, with string) (string, error) {
		re, err := get(expr, s)
		if err != nil {
			return "", err
		}
		return t.replaceAll(re, s, with, strings.Contains(with, "$"))
	}
	m["regexReplaceAllLiteral"] = func(expr, s, with string) (string, error) {
		re, err := get(expr, s)
		if err != nil {
			return "", err
		}
		return t.replaceAll(re, s, with, false)
	}
	m["count"] = func(expr, s string) (int, error) {
		re, err := get(expr, s)
		if err != nil {
			return 0, err
		}
		if err := t.tryMatches(re, s); err != nil {
			return 0, err
		}
		return len(re.FindAllStringIndex(s, -1)), nil
	}
}

// compileTemplateRegexp compiles an expression that is small enough. What is wrong with it is for the labels
// of the line.
func compileTemplateRegexp(expr string) (*match.Matcher, error) {
	m, _, err := match.NewMatcher(expr)
	return m, err
}

// manyMatches is the length from which a string is searched for all matches before they are used.
const manyMatches = 16 << 10

// errNoMore is what ends the search for matches from within.
var errNoMore = errors.New("the query has ended")

// tryMatches searches a long string for all matches, and stops when the query has ended. Each match may look
// at the whole rest of the string (a*b|a), so that all together could take minutes. A panic in the callback
// is the only way to stop package regexp, and goes no further than this function. A search of the rest of the
// string after each match would change what ^ and \b mean there.
func (t *textTemplate) tryMatches(re *regexp.Regexp, s string) (err error) {
	if len(s) < manyMatches || t.r.stop == nil {
		return nil
	}
	defer func() {
		switch p := recover(); p {
		case nil:
		case errNoMore:
			err = t.r.limit
		default:
			panic(p)
		}
	}()
	n := 0
	re.ReplaceAllStringFunc(s, func(match string) string {
		if n++; n%16 == 0 && t.r.stop() {
			panic(errNoMore)
		}
		return ""
	})
	return nil
}

// replaceAll replaces all matches, and charges for each one before it is written.
func (t *textTemplate) replaceAll(re *regexp.Regexp, s, with string, expand bool) (string, error) {
	if err := t.tryMatches(re, s); err != nil {
		return "", err
	}
	all := re.FindAllStringSubmatchIndex(s, -1)
	if all == nil {
		return s, nil
	}
	var out []byte
	at := 0
	for _, m := range all {
		out = append(out, s[at:m[0]]...)
		before := len(out)
		if expand {
			// A reference of two bytes may stand for the whole match.
			if err := t.spendTimes(strings.Count(with, "$"), m[1]-m[0]); err != nil {
				return "", err
			}
			out = re.ExpandString(out, with, s, m)
		} else {
			if err := t.spend(len(with)); err != nil {
				return "", err
			}
			out = append(out, with...)
		}
		if err := t.spend(len(out) - before); err != nil {
			return "", err
		}
		at = m[1]
	}
	return string(append(out, s[at:]...)), nil
}
