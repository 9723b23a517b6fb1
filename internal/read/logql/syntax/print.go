package syntax

import (
	"math"
	"strconv"
	"strings"

	"github.com/shaledb/shale/internal/model"
)

// printer collects canonical text. One walk over a tree writes it all, so that a deep tree costs no more than
// a long one.
type printer struct {
	b []byte
	// limit, if not 0, is the length beyond which the text is cut.
	limit int
}

func text(n Node) string {
	var p printer
	n.write(&p)
	return string(p.b)
}

// longer reports whether the text of a node is longer than limit bytes.
func longer(n Node, limit int) bool {
	p := printer{limit: limit}
	n.write(&p)
	return len(p.b) > limit
}

func (p *printer) node(n Node) {
	if p.limit == 0 || len(p.b) <= p.limit {
		n.write(p)
	}
}

func (p *printer) str(parts ...string) {
	for _, s := range parts {
		p.b = append(p.b, s...)
	}
}

func (p *printer) quote(s string) { p.b = strconv.AppendQuote(p.b, s) }

// number writes a float without an exponent.
func (p *printer) number(f float64) { p.b = strconv.AppendFloat(p.b, f, 'f', -1, 64) }

func (q *LogQuery) write(p *printer) {
	p.str("{")
	for i, m := range q.Matchers {
		if i > 0 {
			p.str(", ")
		}
		p.node(m)
	}
	p.str("}")
	for _, s := range q.Stages {
		p.str(" ")
		p.node(s)
	}
}

func (m *Matcher) write(p *printer) {
	m.writeName(p)
	p.quote(m.Value)
}

// writeName writes the name and the operator. An invalid name, which single quotes and stray characters give,
// is quoted and cannot be read again.
func (m *Matcher) writeName(p *printer) {
	if isName(m.Name) {
		p.str(m.Name)
	} else {
		p.quote(m.Name)
	}
	switch m.Op {
	case model.MatchEqual:
		p.str("=")
	case model.MatchNotEqual:
		p.str("!=")
	case model.MatchRegexp:
		p.str("=~")
	case model.MatchNotRegexp:
		p.str("!~")
	}
}

func isName(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c == '_', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', i > 0 && '0' <= c && c <= '9':
		default:
			return false
		}
	}
	return s != ""
}

func (s *LineFilter) write(p *printer) {
	p.str(string(s.Op), " ")
	for i, o := range s.Any {
		if i > 0 {
			p.str(" or ")
		}
		if o.IP {
			p.str("ip(")
			p.quote(o.Value)
			p.str(")")
		} else {
			p.quote(o.Value)
		}
	}
}

func (s *JSONParser) write(p *printer) {
	p.str("| json")
	writeExtractions(p, s.Extract)
}

func (s *LogfmtParser) write(p *printer) {
	p.str("| logfmt")
	if s.Strict {
		p.str(" --strict")
	}
	if s.KeepEmpty {
		p.str(" --keep-empty")
	}
	writeExtractions(p, s.Extract)
}

func writeExtractions(p *printer, extract []Extraction) {
	for i, x := range extract {
		if i == 0 {
			p.str(" ")
		} else {
			p.str(",")
		}
		p.str(x.Label, "=")
		p.quote(x.From)
	}
}

func (s *RegexpParser) write(p *printer) {
	p.str("| regexp ")
	p.quote(s.Pattern)
}

func (s *PatternParser) write(p *printer) {
	p.str("| pattern ")
	p.quote(s.Pattern)
}

func (s *UnpackParser) write(p *printer) { p.str("| unpack") }

func (s *LabelFilter) write(p *printer) {
	p.str("| ")
	p.node(s.Condition)
}

func (s *LineFormat) write(p *printer) {
	p.str("| line_format ")
	p.quote(s.Template)
}

func (s *LabelFormat) write(p *printer) {
	p.str("| label_format ")
	for i, a := range s.Assignments {
		if i > 0 {
			p.str(",")
		}
		p.str(a.Label, "=")
		if a.Rename {
			p.str(a.Value)
		} else {
			p.quote(a.Value)
		}
	}
}

func (s *Decolorize) write(p *printer) { p.str("| decolorize") }

func (s *DropLabels) write(p *printer) {
	p.str("| drop ")
	writeChoices(p, s.Labels)
}

func (s *KeepLabels) write(p *printer) {
	p.str("| keep ")
	writeChoices(p, s.Labels)
}

func writeChoices(p *printer, labels []LabelChoice) {
	for i, l := range labels {
		if i > 0 {
			p.str(",")
		}
		if l.Matcher != nil {
			p.node(l.Matcher)
		} else {
			p.str(l.Name)
		}
	}
}

func (c *AndCondition) write(p *printer) { writeBoth(p, c.Left, " , ", c.Right) }

func (c *OrCondition) write(p *printer) { writeBoth(p, c.Left, " or ", c.Right) }

func writeBoth(p *printer, left Condition, between string, right Condition) {
	p.str("( ")
	p.node(left)
	p.str(between)
	p.node(right)
	p.str(" )")
}

// write prints expressions that are more than a choice of literals in backquotes, as Loki does.
func (c *StringCondition) write(p *printer) {
	c.writeName(p)
	if c.Op == model.MatchRegexp && !strings.ContainsAny(c.Value, "`\x00") && !onlyLiterals(c.Value) {
		p.str("`", c.Value, "`")
		return
	}
	p.quote(c.Value)
}

func (c *NumberCondition) write(p *printer) {
	p.str(c.Label, string(c.Op))
	p.number(c.Value)
}

func (c *DurationCondition) write(p *printer) {
	p.str(c.Label, string(c.Op), c.Value.String())
}

func (c *BytesCondition) write(p *printer) {
	p.str(c.Label, string(c.Op), formatBytes(c.Value))
}

func (c *IPCondition) write(p *printer) {
	op := "="
	if c.Op == CompareNotEqual {
		op = "!="
	}
	p.str(c.Label, op, "ip(")
	p.quote(c.Addresses)
	p.str(")")
}

// formatBytes rounds to the unit, as Loki does, if the result means the same size; else it is exact, in the
// unit that leaves the smallest number.
func formatBytes(n uint64) string {
	if n == 0 {
		return "0kB" // 0B, as Loki has it, is a binary number without digits
	}
	short := roundBytes(n)
	if got, err := parseBytes(short); err == nil && got == n {
		return short
	}
	number, unit := n, "B"
	for _, u := range [...]struct {
		name string
		size uint64
	}{{"kB", 1e3}, {"KiB", 1 << 10}, {"MB", 1e6}, {"MiB", 1 << 20}, {"GB", 1e9}, {"GiB", 1 << 30}, {"TB", 1e12}, {"TiB", 1 << 40}} {
		if n%u.size == 0 {
			number, unit = n/u.size, u.name
		}
	}
	return strconv.FormatUint(number, 10) + unit
}

// roundBytes gives a size in the largest decimal unit that leaves at least 1, with one digit after the point
// below 10.
func roundBytes(n uint64) string {
	if n < 10 {
		return strconv.FormatUint(n, 10) + "B"
	}
	units := [...]string{"B", "kB", "MB", "GB", "TB", "PB", "EB"}
	e := min(int(math.Floor(math.Log(float64(n))/math.Log(1000))), len(units)-1)
	v := math.Floor(float64(n)/math.Pow(1000, float64(e))*10+0.5) / 10
	digits := 0
	if v < 10 {
		digits = 1
	}
	return strconv.FormatFloat(v, 'f', digits, 64) + units[e]
}
