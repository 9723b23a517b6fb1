package victorialogs

import (
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/victorialogs/words"
	"github.com/shaledb/shale/internal/write/logs"
)

// filter is what VictoriaLogs is asked to select by. It may let lines pass that the query does not want, and
// holds none back that it wants.
type filter struct {
	streams, lines string
	values         string // of fields of streams, whatever their names are
}

// in returns the filter of the lines of a range.
func (f *filter) in(r model.TimeRange) string {
	text := timeFilter(r)
	for _, more := range []string{f.streams, f.lines} {
		if more != "" {
			text += " " + more
		}
	}
	if f.values != "" {
		text += " | copy _stream " + streamCopy + " | filter " + f.values + " | delete " + streamCopy
	}
	return text
}

func timeFilter(r model.TimeRange) string {
	return "_time:[" + timeText(r.Min) + "," + timeText(r.Max) + "]"
}

// timeText returns a time with all nine digits, since VictoriaLogs rounds an end of fewer digits up.
func timeText(t int64) string {
	return time.Unix(0, max(t, -1<<63+1)).UTC().Format("2006-01-02T15:04:05.000000000Z")
}

// filterOf translates what a request selects.
func (s *Source) filterOf(req *model.Request) filter {
	f, placed := translate(req, s.derives)
	for _, p := range placed {
		s.metrics.placed.WithLabelValues(string(p.Where)).Inc()
	}
	return f
}

// translate translates what a request selects, and says what became of each part.
func translate(req *model.Request, derives bool) (f filter, placed []model.Placed) {
	place := func(part string, where model.Place, reason string) {
		placed = append(placed, model.Placed{Source: "victorialogs", Part: part, Where: where, Reason: reason})
	}
	var streams, values []string
	for i := range req.Matchers {
		m := &req.Matchers[i]
		text, where, reason := streamFilter(m, derives)
		switch value := valueFilter(m, derives); {
		case text != "":
			streams = append(streams, text)
		case value != "":
			values = append(values, value)
			where, reason = model.Partial, reason+": streams are selected by the value there"
		}
		place(matcherText(m), where, reason)
	}
	f.values = strings.Join(values, " ")
	if len(streams) > 0 {
		f.streams = "{" + strings.Join(streams, ",") + "}"
	}
	if req.TextFilter == nil {
		return f, placed
	}
	var lines []string
	for i := range req.TextFilter.Clauses {
		c := &req.TextFilter.Clauses[i]
		text, reason := lineFilter(c)
		if text == "" {
			place(clauseText(c), model.Local, reason)
			continue
		}
		lines = append(lines, text)
		place(clauseText(c), model.Partial, reason)
	}
	f.lines = strings.Join(lines, " ")
	return f, placed
}

func matcherText(m *model.Matcher) string {
	return m.Name + [...]string{"=", "!=", "=~", "!~"}[m.Op] + strconv.Quote(m.Value)
}

func clauseText(c *model.TextClause) string {
	var any []string
	for _, l := range c.Any {
		switch {
		case l.Name != "":
			any = append(any, l.Name+"="+strconv.Quote(l.Value))
		case l.Fold:
			any = append(any, "line contains, in any case, "+strconv.Quote(l.Value))
		default:
			any = append(any, "line contains "+strconv.Quote(l.Value))
		}
	}
	return strings.Join(any, " or ")
}

// streamFilter returns the filter of streams for a matcher, or "" for none. A label with an underscore may
// be a field with a dot or a dash in its place.
func streamFilter(m *model.Matcher, derives bool) (text string, where model.Place, reason string) {
	switch {
	case derives && m.Name == serviceName:
		return "", model.Local, "the label may be made of another one"
	case strings.Contains(m.Name, "_"):
		return "", model.Local, "the name of the field may have other characters in place of an underscore"
	case !utf8.ValidString(m.Value):
		return "", model.Local, "the value is not UTF-8"
	}
	name := strconv.Quote(m.Name)
	switch m.Op {
	case model.MatchEqual:
		return name + "=" + strconv.Quote(m.Value), model.Pushed, "streams are selected by equal values there, too"
	case model.MatchNotEqual:
		return name + "!=" + strconv.Quote(m.Value), model.Pushed, "streams are selected by equal values there, too"
	}
	text, where, reason = regexpFilter(m)
	if text != "" {
		text = name + text
	}
	return text, where, reason
}

// streamCopy has the text of a stream, such as {app="web"}, since _stream itself cannot be filtered by text.
// It is not the name of a field of lines.
const streamCopy = `"shale stream"`

// valueFilter returns the filter of the streams of which a field has a value that a matcher wants, or "" for
// none. It is for labels that any of many fields may be: a name may have any character in place of an
// underscore, so that not all names can be listed. A stream without the fields that make a service_name has
// no field with its value. VictoriaLogs writes values like Go, and plain ones as they are.
func valueFilter(m *model.Matcher, derives bool) string {
	wanted, texts := m.Set, []string(nil)
	switch m.Op {
	case model.MatchEqual:
		wanted = []string{m.Value}
	case model.MatchRegexp:
	default:
		return ""
	}
	for _, v := range wanted {
		quoted := strconv.QuoteToASCII(v)
		if v == "" || quoted != `"`+v+`"` || derives && m.Name == serviceName && v == logs.UnknownService {
			return ""
		}
		texts = append(texts, streamCopy+":"+strconv.Quote("="+quoted))
	}
	if len(texts) < 2 {
		return strings.Join(texts, "")
	}
	return "(" + strings.Join(texts, " or ") + ")"
}

// regexpFilter returns the operator and the value for a regular expression, or "". VictoriaLogs anchors it
// like LogQL, but rewrites it first, and then a dot leaves out line breaks unless it is .* or .+ at the end
// of a literal prefix. So of an expression with other dots only the prefix is sent.
func regexpFilter(m *model.Matcher) (text string, where model.Place, reason string) {
	const dot = "its dot would leave out line breaks there"
	dots, err := hasDots(m.Value)
	switch {
	case err != nil:
		return "", model.Local, "the expression cannot be read"
	case !dots && m.Op == model.MatchRegexp:
		return "=~" + strconv.Quote(m.Value), model.Pushed, "expressions are anchored there, too"
	case !dots:
		return "!~" + strconv.Quote(m.Value), model.Pushed, "expressions are anchored there, too"
	case m.Op == model.MatchNotRegexp:
		return "", model.Local, dot
	case m.Prefix != "":
		return "=~" + strconv.Quote(regexp.QuoteMeta(m.Prefix)+".*"), model.Partial, dot + ": only its prefix is sent"
	case !m.MatchesEmpty():
		return `!=""`, model.Partial, dot + ": only the presence of the label is sent"
	}
	return "", model.Local, dot
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

// lineFilter returns the filter of lines for a clause, or "" for none.
func lineFilter(c *model.TextClause) (text, reason string) {
	var any []string
	for i := range c.Any {
		text, ok := literal(&c.Any[i])
		if !ok {
			return "", "the name or the value may be another one there"
		}
		any = append(any, text)
	}
	const necessary = "what a line must contain is sent; the filter itself runs here"
	switch len(any) {
	case 0:
		return "", "nothing is known of such lines"
	case 1:
		return any[0], necessary
	}
	return "(" + strings.Join(any, " or ") + ")", necessary
}

// literal returns the filter of the lines that have a literal, and whether there is one.
func literal(l *model.TextLiteral) (string, bool) {
	switch {
	case !utf8.ValidString(l.Value) || strings.ContainsRune(l.Value, utf8.RuneError) || l.Value == "":
		return "", false
	case l.Name == "":
		return words.Filter(l.Value, l.Fold), true
	case l.Fold || strings.Contains(l.Name, "_") || strings.Contains(l.Value, " "):
		// The name may be another one there, and a space may be what replaced a byte.
		return "", false
	}
	return strconv.Quote(l.Name) + ":=" + strconv.Quote(l.Value), true
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
