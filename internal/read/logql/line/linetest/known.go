package linetest

import (
	"bytes"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// Known returns why a case is meant to have another outcome than it has in Loki, or "". It may ask Loki
// again.
func Known(c Case, them, us Outcome, loki func(Case) Outcome) string {
	passes := Plain(c)
	switch {
	case them.Error != "" || us.Error != "":
		return ""
	case us.Keep && !passes:
		return ""
	case them.Keep && !passes, us.Keep != them.Keep && misread.MatchString(c.Query):
		return "Loki takes a regular expression for something simpler that is not the same"
	case them.Keep && us.Keep:
		if why := knownLabels(c, them, us); why != "" || !same(us, loki(twice(c))) {
			return why
		}
		return "Loki notes what is wrong with a label when it is parsed, before the label filter that it is wrong for"
	case us.Keep && strings.Contains(c.Query, "| decolorize"):
		return "Loki runs line filters that follow decolorize before it"
	case us.Keep && sameOrKnown(c, loki(twice(c)), us):
		return "Loki holds a parsed label against a label filter that stands elsewhere"
	}
	return ""
}

// twice writes each label filter as "it or it", which means the same, but is nothing that Loki's parsers hold
// labels against.
func twice(c Case) Case {
	q, err := syntax.ParseLog(c.Query)
	if err != nil {
		return c
	}
	c.Query = (&syntax.LogQuery{Matchers: q.Matchers}).String()
	for _, s := range q.Stages {
		if f, ok := s.(*syntax.LabelFilter); ok {
			c.Query += " | (" + f.Condition.String() + " or " + f.Condition.String() + ")"
			continue
		}
		c.Query += " " + s.String()
	}
	return c
}

func sameOrKnown(c Case, them, us Outcome) bool {
	return same(them, us) || them.Keep && knownLabels(c, them, us) != ""
}

func same(a, b Outcome) bool { return reflect.DeepEqual(a, b) }

// misread are queries with expressions in which Loki's simplification forgets a side that matches anything,
// or takes a.*(b|c) for a(b|c).
var misread = regexp.MustCompile(`[|!]~ "[^"]*(\||\.\*|x\{fffd|ufffd)[^"]*"|[=!]~"([^"]*\.\*[^"]*|)"`)

// knownLabels compares what both kept.
func knownLabels(c Case, them, us Outcome) string {
	if strings.Contains(c.Query, "`{{.__error__}}`") {
		return "Loki's line_format `{{.__error__}}` gives an empty line"
	}
	if them.Line != us.Line {
		return ""
	}
	if sameLabels(them, us) && sameLabels(us, Outcome{Stream: c.Stream}) {
		return "Loki takes labels that are those of the stream again for those of the stream"
	}
	if i := slices.Index(them.Parsed, "__error__"); i >= 0 && slices.Contains(them.Parsed[i+1:], "__error__") {
		return "Loki gives two labels of one name where a parsed one is called like that of an error"
	}
	if i := slices.Index(them.Parsed, "__error_details__"); i >= 0 && slices.Contains(them.Parsed[i+1:], "__error_details__") {
		return "Loki gives two labels of one name where a parsed one is called like that of an error"
	}
	return ""
}

func sameLabels(a, b Outcome) bool {
	flat := func(o Outcome) map[string]string {
		m := map[string]string{}
		for _, l := range [][]string{o.Stream, o.Metadata, o.Parsed} {
			for i := 0; i < len(l); i += 2 {
				m[l[i]] = l[i+1]
			}
		}
		return m
	}
	x, y := flat(a), flat(b)
	if len(x) != len(y) {
		return false
	}
	for k, v := range x {
		if w, ok := y[k]; !ok || v != w {
			return false
		}
	}
	return true
}

// Plain reports whether a line passes the line filters before the first stage that
// changes lines, by the plainest means.
func Plain(c Case) bool {
	q, err := syntax.ParseLog(c.Query)
	if err != nil {
		return false
	}
	for _, s := range q.Stages {
		switch s := s.(type) {
		case *syntax.LineFormat, *syntax.UnpackParser, *syntax.Decolorize:
			return true
		case *syntax.LineFilter:
			if !PlainFilter(s, []byte(c.Line)) {
				return false
			}
		}
	}
	return true
}

// PlainFilter reports whether a line passes a line filter, by the plainest means; addresses are not looked
// at.
func PlainFilter(s *syntax.LineFilter, line []byte) bool {
	some := false
	for _, o := range s.Any {
		switch {
		case o.IP:
			return true // not looked at
		case s.Op == syntax.LinePattern || s.Op == syntax.LineNotPattern:
			some = some || plainPattern(o.Value, line)
		case s.Op == syntax.LineMatches || s.Op == syntax.LineNotMatch:
			some = some || regexp.MustCompile(o.Value).Match(line)
		default:
			some = some || bytes.Contains(line, []byte(o.Value))
		}
	}
	return some != s.Op.Negated()
}

// plainPattern is the pattern of a line filter as an expression: what is before the first literal may be
// anything, what is between two of them too, but not empty, and without the next literal in it; so is what
// follows the last one, where a capture ends the pattern.
func plainPattern(pattern string, line []byte) bool {
	pieces, err := syntax.ParseLinePattern(pattern)
	if err != nil || len(pieces) == 0 || len(line) == 0 {
		return err == nil && len(pieces) == 0 && len(line) == 0
	}
	rest := string(line)
	for i, p := range pieces {
		if p.Capture {
			continue
		}
		before, after, ok := strings.Cut(rest, p.Text)
		if !ok || i > 0 && before == "" {
			return false
		}
		rest = after
	}
	return (rest != "") == pieces[len(pieces)-1].Capture
}
