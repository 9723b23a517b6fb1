package linetest

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Generator makes random cases: stages that are put together from pieces that know the lines, and lines that
// were changed a little.
type Generator struct {
	r     *rand.Rand
	lines []string
	extra []string
}

// NewGenerator returns a generator whose cases depend on the seed alone.
func NewGenerator(seed uint64) *Generator {
	return &Generator{r: rand.New(rand.NewPCG(seed, 7)), lines: Lines(), extra: Queries()}
}

func (g *Generator) pick(all ...string) string { return all[g.r.IntN(len(all))] }

// Case returns the next case.
func (g *Generator) Case() Case {
	all := streams()
	c := all[g.r.IntN(len(all))]
	if g.r.IntN(4) == 0 {
		c.Metadata = nil
		for _, n := range []string{"a", "b", "level", "status", "x"} {
			if v := g.value(); v != "" && g.r.IntN(3) == 0 {
				c.Metadata = append(c.Metadata, n, v)
			}
		}
	}
	var q strings.Builder
	q.WriteString(`{app="web"}`)
	for range 1 + g.r.IntN(5) {
		q.WriteByte(' ')
		if g.r.IntN(12) == 0 {
			q.WriteString(g.extra[g.r.IntN(len(g.extra))])
		} else {
			q.WriteString(g.stage())
		}
	}
	c.Query, c.Line = q.String(), g.line()
	return c
}

func (g *Generator) label() string {
	return g.pick("a", "b", "c", "d", "e", "x", "y", "level", "msg", "status", "app", "user", "n", "f", "size", "dur", "nested_a", "nested_b_c", "b_c",
		"level_extracted", "app_extracted", "trace_id", "__error__", "_1a", "x_y")
}

func (g *Generator) value() string {
	return g.pick("info", "error", "1", "2", "200", "503", "web", "x", "first", "abc123", "", "15ms", "1h30m", "5 MB", "1.5KB", "hello", "0.5", "-3")
}

func (g *Generator) needle() string {
	return g.pick("foo", "bar", "a", "level", "200", "error", ":", "=", "o w", "é", "x", "GET", "}", "status", "hello world", "q", " ")
}

func (g *Generator) regexp() string {
	piece := func() string {
		return g.pick("foo", "bar", "a", "o+", ".", ".*", "[a-f]", "\\\\d+", "(?i)level", "(info|error)", "e?", "\\\\w+", "=", "(a|b|cd)", "x{1,3}", "^", "$", "(GET|hello) ", "\\\\s", "[^:]", "(?:)", "l{2}", "(?i:ok)", "s")
	}
	var b strings.Builder
	for range 1 + g.r.IntN(4) {
		b.WriteString(piece())
		if g.r.IntN(6) == 0 {
			b.WriteByte('|')
		}
	}
	return b.String()
}

func (g *Generator) stage() string {
	switch g.r.IntN(24) {
	case 0:
		return fmt.Sprintf(`%s "%s"`, g.pick("|=", "!="), g.needle())
	case 1:
		return fmt.Sprintf(`%s "%s" or "%s"`, g.pick("|=", "!=", "|~", "!~"), g.needle(), g.needle())
	case 2:
		return fmt.Sprintf(`%s "%s"`, g.pick("|~", "!~"), g.regexp())
	case 3:
		return fmt.Sprintf(`%s "%s"`, g.pick("|>", "!>"), g.pick("<_>"+g.needle(), g.needle()+"<_>", "<_>"+g.needle()+"<_>"+g.needle()+"<_>", g.needle()))
	case 4, 5, 6:
		return "| json"
	case 7, 8:
		return "| logfmt" + g.pick("", "", " --strict", " --keep-empty")
	case 9:
		return g.pick("| unpack", "| decolorize")
	case 10:
		return fmt.Sprintf(`| json %s="%s"`, g.label(), g.path())
	case 11:
		return fmt.Sprintf(`| logfmt%s %s="%s"`, g.pick("", " --strict"), g.label(), g.pick("a", "b", "level", "msg", "status", "app", "x"))
	case 12:
		return fmt.Sprintf(`| regexp "(?P<%s>%s)"`, g.pick("a", "b", "level", "x", "app"), g.regexp())
	case 13:
		return fmt.Sprintf(`| pattern "%s<%s>%s<%s>"`, g.pick("", g.needle()), g.pick("a", "level", "_"), g.needle(), g.pick("b", "x", "app"))
	case 14, 15, 16:
		return "| " + g.condition(2)
	case 17, 18:
		return fmt.Sprintf("| line_format `%s`", g.template())
	case 19, 20:
		return fmt.Sprintf("| label_format %s=%s", g.pick("a", "b", "level", "x", "new"), g.pick(g.label(), "`"+g.template()+"`"))
	case 21:
		return fmt.Sprintf("| drop %s", g.choices())
	case 22:
		return fmt.Sprintf("| keep %s", g.choices())
	}
	return fmt.Sprintf("| label_format %s=`%s`, %s=`%s`", g.pick("a", "b"), g.template(), g.pick("level", "x"), g.template())
}

func (g *Generator) choices() string {
	var all []string
	for range 1 + g.r.IntN(3) {
		c := g.label()
		if g.r.IntN(3) == 0 {
			c += fmt.Sprintf(`%s"%s"`, g.pick("=", "!="), g.value())
		}
		all = append(all, c)
	}
	return strings.Join(all, ", ")
}

// PathCase returns the next case whose query is one stage with a path or a key, which is mostly wrong.
func (g *Generator) PathCase() Case {
	c := Case{Stream: []string{"app", "web"}, Line: g.line()}
	c.Query = fmt.Sprintf(`{app="web"} %s x=%s`, g.pick("| json", "| logfmt"), strconv.Quote(g.anyPath()))
	return c
}

// anyPath returns tokens of paths in any order, among them some that no path has.
func (g *Generator) anyPath() string {
	var b strings.Builder
	for range g.r.IntN(6) {
		b.WriteString(g.pick("a", "level", "_x1", "nested", ".", "[", "]", "[0]", "[1]", `["a"]`, `["x y"]`, `"`, `"a"`, `"k"`, "0", "12", "007",
			"99999999999999999999", " ", "\t", "\n", "\r", "\x00", "\xff", "-", "#", "é", "ключ", "\ufffd", "{", "'", "\\"))
	}
	return b.String()
}

func (g *Generator) path() string {
	var b strings.Builder
	b.WriteString(g.pick("a", "b", "nested", "arr", "level", "[0]", "[1]", "e", "status"))
	for range g.r.IntN(3) {
		b.WriteString(g.pick(".a", ".b", ".c", ".d", "[0]", "[1]", "[2]", ".three", ".e"))
	}
	return b.String()
}

func (g *Generator) condition(depth int) string {
	switch n := g.r.IntN(10); {
	case n < 4 || depth == 0 && n > 6:
		return fmt.Sprintf(`%s%s"%s"`, g.label(), g.pick("=", "!="), g.value())
	case n == 4:
		return fmt.Sprintf(`%s%s%s`, g.label(), g.pick(">", "<", ">=", "<=", "==", "!="), g.pick("0", "5", "200", "-1.5", "503"))
	case n == 5:
		return fmt.Sprintf(`%s%s%s`, g.label(), g.pick(">", "<", ">=", "<=", "==", "!="), g.pick("10ms", "1h30m", "2s", "1KB", "3MiB"))
	case n == 6:
		return fmt.Sprintf(`%s%s"%s"`, g.label(), g.pick("=~", "!~"), g.pick("info|error", "a|1|x", "info", "(?i)INFO", "web|base"))
	case n == 7:
		return fmt.Sprintf(`%s and %s`, g.condition(depth-1), g.condition(depth-1))
	case n == 8:
		return fmt.Sprintf(`%s or %s`, g.condition(depth-1), g.condition(depth-1))
	}
	return "(" + g.condition(depth-1) + ")"
}

func (g *Generator) template() string {
	var b strings.Builder
	for range 1 + g.r.IntN(3) {
		switch g.r.IntN(7) {
		case 0:
			b.WriteString(g.pick("x", " ", "level=", "{\"a\":\"", "\"}", "-", "foo"))
		case 1, 2:
			b.WriteString("{{." + g.label() + "}}")
		case 3:
			b.WriteString("{{__line__}}")
		case 4:
			b.WriteString("{{." + g.label() + " | " + g.pick("upper", "lower", "title", "trunc 2", "trim", "len", "b64enc", "replace \"o\" \"0\"", "add 1", "default \"d\"", "int", "float64", "substr 0 1", "count \"o\"") + "}}")
		case 5:
			b.WriteString("{{if ." + g.label() + "}}yes{{else}}no{{end}}")
		default:
			b.WriteString("{{printf \"%s/%s\" ." + g.label() + " ." + g.label() + "}}")
		}
	}
	return b.String()
}

// line returns a line of the corpus, or one that was cut, doubled, joined with another, or has other bytes in
// it.
func (g *Generator) line() string {
	l := g.lines[g.r.IntN(len(g.lines))]
	for g.r.IntN(2) == 0 && len(l) > 0 {
		i := g.r.IntN(len(l))
		switch g.r.IntN(6) {
		case 0:
			l = l[:i]
		case 1:
			l = l[i:]
		case 2:
			l = l[:i] + g.pick("\"", "{", "}", "[", "]", ",", ":", "=", "\\", " ", "\xff", "é", "\x1b[3m", "1", "null", "\\u00", "\n") + l[i:]
		case 3:
			l = l[:i] + l[i+1:]
		case 4:
			m := g.lines[g.r.IntN(len(g.lines))]
			l = l[:i] + m[min(i, len(m)):]
		default:
			l += g.pick(" ", "", "}") + g.lines[g.r.IntN(len(g.lines))]
		}
	}
	return l
}
