package line

import (
	"slices"
	"strings"
	"text/template/parse"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// earlyConditions finds label filters on single labels that a parser may hold a label against as soon as it
// has set it: nothing between the first parser and the filter changes labels otherwise.
func earlyConditions(stages []syntax.Stage) ([]earlyCondition, error) {
	var early []earlyCondition
	parsers := 0
	for i, s := range stages {
		switch s := s.(type) {
		case *syntax.JSONParser:
			if parsers++; len(s.Extract) > 0 {
				return early, nil // may set a label that another parser has set
			}
		case *syntax.LogfmtParser:
			if parsers++; len(s.Extract) > 0 {
				return early, nil
			}
		case *syntax.RegexpParser, *syntax.PatternParser:
			parsers++
		case *syntax.LineFilter, *syntax.LineFormat, *syntax.Decolorize:
		case *syntax.LabelFilter:
			name := onlyLabel(s.Condition)
			if parsers == 0 || name == "" || slices.ContainsFunc(early, func(e earlyCondition) bool { return e.label == name }) {
				continue
			}
			c, err := newCondition(s.Condition)
			if err != nil {
				return nil, err
			}
			early = append(early, earlyCondition{name, c, i})
		default:
			return early, nil
		}
	}
	return early, nil
}

// onlyLabel returns the label that a condition looks at, if it is the only one and nothing else is looked at.
func onlyLabel(c syntax.Condition) string {
	switch c := c.(type) {
	case *syntax.StringCondition:
		if c.Name != ErrorLabel {
			return c.Name
		}
	case *syntax.NumberCondition:
		return c.Label
	case *syntax.DurationCondition:
		return c.Label
	case *syntax.BytesCondition:
		return c.Label
	}
	return ""
}

// metadataClauses finds label filters that only structured metadata can satisfy, as long as no stream has a
// label of that name: no stage before them can set it. parsed are the labels that parsers with fixed labels
// set.
func metadataClauses(stages []syntax.Stage, parsed map[syntax.Stage][]string) []model.TextClause {
	var out []model.TextClause
	set := map[string]bool{}
	for _, s := range stages {
		switch s := s.(type) {
		case *syntax.LabelFilter:
			for _, c := range conjuncts(s.Condition, nil) {
				if clause, ok := metadataClause(c, set); ok {
					out = append(out, clause)
				}
			}
		case *syntax.RegexpParser, *syntax.PatternParser:
			for _, name := range parsed[s] {
				set[name], set[name+extractedSuffix] = true, true
			}
		case *syntax.LabelFormat:
			for _, a := range s.Assignments {
				set[a.Label] = true
			}
		case *syntax.LineFilter, *syntax.LineFormat, *syntax.Decolorize, *syntax.DropLabels, *syntax.KeepLabels:
		default:
			return out // sets labels of any name
		}
	}
	return out
}

// conjuncts takes a condition apart into those that must all hold.
func conjuncts(c syntax.Condition, dst []syntax.Condition) []syntax.Condition {
	if and, ok := c.(*syntax.AndCondition); ok {
		return conjuncts(and.Right, conjuncts(and.Left, dst))
	}
	return append(dst, c)
}

// metadataClause is what a condition says of metadata: one name and one of some values, or one of several
// such.
func metadataClause(c syntax.Condition, set map[string]bool) (model.TextClause, bool) {
	var out model.TextClause
	switch c := c.(type) {
	case *syntax.OrCondition:
		left, ok1 := metadataClause(c.Left, set)
		right, ok2 := metadataClause(c.Right, set)
		out.Any = append(left.Any, right.Any...)
		return out, ok1 && ok2
	case *syntax.AndCondition: // below an or: either side will do
		if left, ok := metadataClause(c.Left, set); ok {
			return left, true
		}
		return metadataClause(c.Right, set)
	case *syntax.StringCondition:
		if set[c.Name] || strings.HasPrefix(c.Name, "__error") || strings.HasSuffix(c.Name, extractedSuffix) {
			return out, false
		}
		var values []string
		switch c.Op {
		case model.MatchEqual:
			values = []string{c.Value}
		case model.MatchRegexp:
			values = c.Set
		}
		for _, v := range values {
			if v == "" {
				return out, false
			}
			out.Any = append(out.Any, model.TextLiteral{Name: c.Name, Value: v})
		}
	}
	return out, len(out.Any) > 0
}

// neededLabels adds to the wanted labels what the stages look at. nil means all.
func neededLabels(stages []syntax.Stage, wanted []string) map[string]struct{} {
	needed := map[string]struct{}{}
	add := func(names ...string) {
		for _, n := range names {
			needed[n] = struct{}{}
		}
	}
	add(wanted...)
	for _, s := range stages {
		switch s := s.(type) {
		case *syntax.LabelFilter:
			syntax.Walk(s.Condition, func(n syntax.Node) bool {
				add(conditionLabel(n))
				return true
			})
		case *syntax.LabelFormat:
			for _, a := range s.Assignments {
				if a.Rename {
					add(a.Value, a.Label)
					continue
				}
				fields, all := templateFields("label", a.Value)
				if all {
					return nil
				}
				add(append(fields, a.Label)...)
			}
		case *syntax.LogfmtParser:
			// A key that has become a label before is not looked at again, and a label that is there already
			// under both of its names ends the search, and with it the errors.
			for _, e := range s.Extract {
				add(e.From, e.Label, e.Label+extractedSuffix)
			}
		case *syntax.LineFormat:
			fields, all := templateFields("line", s.Template)
			if all {
				return nil
			}
			add(fields...)
		case *syntax.DropLabels:
			for _, c := range s.Labels {
				add(c.Name)
			}
		case *syntax.KeepLabels:
			for _, c := range s.Labels {
				add(c.Name)
			}
		}
	}
	return needed
}

func conditionLabel(n syntax.Node) string {
	switch c := n.(type) {
	case *syntax.StringCondition:
		return c.Name
	case *syntax.NumberCondition:
		return c.Label
	case *syntax.DurationCondition:
		return c.Label
	case *syntax.BytesCondition:
		return c.Label
	case *syntax.IPCondition:
		return c.Label
	}
	return ""
}

// templateFields returns the labels that a template looks at, and whether it can look at any.
func templateFields(name, s string) (fields []string, all bool) {
	t, err := parseTemplate(name, s)
	if err != nil {
		return nil, true
	}
	f := fieldFinder{}
	for _, x := range t.Templates() {
		if x.Tree != nil && x.Root != nil {
			f.list(x.Root)
		}
	}
	return f.fields, f.all
}

// fieldFinder walks a template. What it does not know it takes for a look at all labels.
type fieldFinder struct {
	fields []string
	all    bool
}

func (f *fieldFinder) list(l *parse.ListNode) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		f.node(n)
	}
}

func (f *fieldFinder) node(n parse.Node) {
	switch n := n.(type) {
	case *parse.ActionNode:
		f.pipe(n.Pipe)
	case *parse.PipeNode:
		f.pipe(n)
	case *parse.IfNode:
		f.branch(&n.BranchNode)
	case *parse.FieldNode:
		f.fields = append(f.fields, n.Ident[0])
	case *parse.ChainNode:
		f.node(n.Node)
	case *parse.VariableNode:
		// $ is the labels, and any other variable may be; what .x is in them is not followed.
		f.all = true
	case *parse.TextNode, *parse.StringNode, *parse.NumberNode, *parse.BoolNode, *parse.NilNode, *parse.IdentifierNode, *parse.CommentNode:
	default: // the dot itself, with, range, template
		f.all = true
	}
}

func (f *fieldFinder) branch(b *parse.BranchNode) {
	f.pipe(b.Pipe)
	f.list(b.List)
	f.list(b.ElseList)
}

func (f *fieldFinder) pipe(p *parse.PipeNode) {
	if p == nil {
		return
	}
	for _, c := range p.Cmds {
		for _, a := range c.Args {
			f.node(a)
		}
	}
}
