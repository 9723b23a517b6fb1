package syntax

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
)

func (r *LogRange) write(p *printer) {
	p.node(r.Query)
	if r.Unwrap != nil {
		p.str(" ")
		p.node(r.Unwrap)
	}
	p.str("[", model.Duration(r.Range).String(), "]")
	if r.Offset != 0 {
		p.str(" offset ", r.Offset.String())
	}
}

func (u *Unwrap) write(p *printer) {
	u.writeLabel(p)
	for _, c := range u.Filters {
		p.str(" | ")
		p.node(c)
	}
}

func (u *Unwrap) writeLabel(p *printer) {
	if u.Conversion == ConvertNumber {
		p.str("| unwrap ", u.Label)
	} else {
		p.str("| unwrap ", string(u.Conversion), "(", u.Label, ")")
	}
}

func (e *RangeAggregation) write(p *printer) {
	p.str(string(e.Op), "(")
	if e.Op == QuantileOverTime {
		p.number(e.Quantile)
		p.str(",")
	}
	p.node(e.Range)
	p.str(")")
	if e.Grouping != nil {
		p.str(e.Grouping.String())
	}
}

// String returns the canonical text, with a space before it.
func (g *Grouping) String() string {
	word := " by ("
	if g.Without {
		word = " without ("
	}
	return word + strings.Join(g.Labels, ",") + ")"
}

func (e *VectorAggregation) write(p *printer) {
	p.str(string(e.Op))
	if e.Grouping.Without || len(e.Grouping.Labels) > 0 {
		p.str(e.Grouping.String())
	}
	p.str("(")
	if e.K != 0 {
		p.str(strconv.Itoa(e.K), ",")
	}
	p.node(e.Expr)
	p.str(")")
}

func (e *BinaryExpr) write(p *printer) {
	p.str("(")
	p.node(e.Left)
	p.str(" ", string(e.Op))
	if e.Bool {
		p.str(" bool")
	}
	_, parens := e.Right.(*BinaryExpr)
	e.Matching.write(p, ",", parens)
	p.str(" ")
	p.node(e.Right)
	p.str(")")
}

// write prints the labels with comma between them. followed says that a parenthesis follows, which must not
// be taken for the labels of group_left, as Loki does with what it prints itself.
func (m *VectorMatching) write(p *printer, comma string, followed bool) {
	switch {
	case m.On:
		p.str(" on (")
	case len(m.Labels) > 0 || m.Card != OneToOne:
		// Loki leaves out ignoring () with group_left after it; that would be another query.
		p.str(" ignoring (")
	default:
		return
	}
	p.str(strings.Join(m.Labels, comma), ") ", m.Card.String())
	if len(m.Include) > 0 || m.Card != OneToOne && followed {
		p.str(" (", strings.Join(m.Include, comma), ")")
	}
}

// String returns group_left, group_right or, for OneToOne, nothing.
func (c Cardinality) String() string {
	switch c {
	case ManyToOne:
		return "group_left"
	case OneToMany:
		return "group_right"
	}
	return ""
}

func (e *Literal) write(p *printer) { p.str(fmt.Sprint(e.Value)) }

// write prints six digits after the point, as Loki does, if that is the value.
func (e *Vector) write(p *printer) {
	s := strconv.FormatFloat(e.Value, 'f', 6, 64)
	if f, err := strconv.ParseFloat(s, 64); err == nil && f != e.Value {
		s = strconv.FormatFloat(e.Value, 'f', -1, 64)
	}
	p.str("vector(", s, ")")
}

func (e *LabelReplace) write(p *printer) {
	p.str("label_replace(")
	p.node(e.Expr)
	for _, s := range [...]string{e.Dst, e.Replacement, e.Src, e.Pattern} {
		p.str(",")
		p.quote(s)
	}
	p.str(")")
}
