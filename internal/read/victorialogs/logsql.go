package victorialogs

import (
	"cmp"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/model"
)

// filter is what VictoriaLogs is asked to select by. It may let lines pass that the query does not want, and
// holds none back that it wants.
type filter struct{ streams, lines string }

// in returns the filter of the lines of a range.
func (f *filter) in(r model.TimeRange) string {
	text := "_time:[" + timeText(r.Min) + "," + timeText(r.Max) + "]"
	for _, more := range []string{f.streams, f.lines} {
		if more != "" {
			text += " " + more
		}
	}
	return text
}

// timeText returns a time with all nine digits, since VictoriaLogs rounds an end of fewer digits up.
func timeText(t int64) string {
	return time.Unix(0, max(t, -1<<63+1)).UTC().Format("2006-01-02T15:04:05.000000000Z")
}

// parseTime reads a time as VictoriaLogs writes it.
func parseTime(text []byte) (int64, bool) {
	t, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil || t.Before(time.Unix(0, -1<<63)) || t.After(time.Unix(0, 1<<63-1)) {
		return 0, false
	}
	return t.UnixNano(), true
}

// filterOf translates what a request selects.
func (s *Source) filterOf(req *model.Request) filter {
	f := filter{streams: streamFilter(req.Matchers, s.derives)}
	if req.TextFilter != nil {
		f.lines = lineFilter(req.TextFilter)
	}
	return f
}

// streamFilter returns a filter of streams, or "" for all. Its matchers are those whose label can only be the
// field of that name. A label with an underscore may be a field with a dot or a dash in its place.
func streamFilter(matchers []model.Matcher, derives bool) string {
	var out []string
	for i := range matchers {
		m := &matchers[i]
		if strings.Contains(m.Name, "_") || derives && m.Name == serviceName || !utf8.ValidString(m.Value) {
			continue
		}
		name := strconv.Quote(m.Name)
		switch m.Op {
		case model.MatchEqual:
			out = append(out, name+"="+strconv.Quote(m.Value))
		case model.MatchNotEqual:
			out = append(out, name+"!="+strconv.Quote(m.Value))
		case model.MatchRegexp, model.MatchNotRegexp:
			if text := regexpFilter(m); text != "" {
				out = append(out, name+text)
			}
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "{" + strings.Join(out, ",") + "}"
}

// regexpFilter returns the operator and the value for a regular expression, or "". VictoriaLogs anchors it
// like LogQL, but rewrites it first, and then a dot leaves out line breaks unless it is .* or .+ at the end
// of a literal prefix. So of an expression with other dots only the prefix is sent.
func regexpFilter(m *model.Matcher) string {
	dots, err := hasDots(m.Value)
	switch {
	case err != nil:
		return ""
	case !dots && m.Op == model.MatchRegexp:
		return "=~" + strconv.Quote(m.Value)
	case !dots:
		return "!~" + strconv.Quote(m.Value)
	case m.Op == model.MatchNotRegexp:
		return ""
	case m.Prefix != "":
		return "=~" + strconv.Quote(regexp.QuoteMeta(m.Prefix)+".*")
	case !m.MatchesEmpty():
		return `!=""`
	}
	return ""
}

// hasDots reports whether an expression has a dot, or what its parser makes one.
func hasDots(text string) (bool, error) {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return false, err
	}
	var walk func(*syntax.Regexp) bool
	walk = func(x *syntax.Regexp) bool {
		return x.Op == syntax.OpAnyChar || x.Op == syntax.OpAnyCharNotNL || slices.ContainsFunc(x.Sub, walk)
	}
	return walk(tree), nil
}

const serviceName = "service_name"

// lineFilter returns a filter of lines, or "" for all.
func lineFilter(f *model.TextFilter) string {
	var out []string
clauses:
	for _, c := range f.Clauses {
		var any []string
		for _, l := range c.Any {
			text, ok := literal(&l)
			if !ok {
				continue clauses
			}
			any = append(any, text)
		}
		if len(any) == 1 {
			out = append(out, any[0])
		} else if len(any) > 1 {
			out = append(out, "("+strings.Join(any, " or ")+")")
		}
	}
	return strings.Join(out, " ")
}

// literal returns the filter of the lines that have a literal, and whether there is one.
func literal(l *model.TextLiteral) (string, bool) {
	switch {
	case !utf8.ValidString(l.Value) || strings.ContainsRune(l.Value, utf8.RuneError) || l.Value == "":
		return "", false
	case l.Name == "":
		return contains(l.Value, l.Fold), true
	case l.Fold || strings.Contains(l.Name, "_") || strings.Contains(l.Value, " "):
		// The name may be another one there, and a space may be what replaced a byte.
		return "", false
	}
	return strconv.Quote(l.Name) + ":=" + strconv.Quote(l.Value), true
}

// contains returns the filter of the lines that contain a text. VictoriaLogs has an index of words, so whole
// words within the text are asked for, too.
func contains(text string, fold bool) string {
	pattern := regexp.QuoteMeta(text)
	if fold {
		return "_msg:~" + strconv.Quote("(?i)"+pattern)
	}
	out := "_msg:~" + strconv.Quote(pattern)
	for _, w := range wholeWords(text) {
		out += " _msg:" + strconv.Quote(w)
	}
	if strings.Contains(out, " ") {
		return "(" + out + ")"
	}
	return out
}

// maxWords bounds the words of one text that are asked for.
const maxWords = 4

// wholeWords returns words within a text, the longest first. A word at an end of the text may be part of a
// longer one in a line, and letters beyond ASCII are left to VictoriaLogs: neither is returned.
func wholeWords(text string) (words []string) {
	begin := -1 // after a byte that is in no word
	for i := range len(text) {
		switch c := text[i]; {
		case c >= utf8.RuneSelf:
			begin = -1
		case !isWordByte(c):
			if begin >= 0 && begin < i {
				words = append(words, text[begin:i])
			}
			begin = i + 1
		}
	}
	slices.SortStableFunc(words, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return words[:min(len(words), maxWords)]
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
