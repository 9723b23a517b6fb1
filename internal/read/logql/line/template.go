package line

import (
	"bytes"
	"errors"
	"slices"
	"text/template"
	"text/template/parse"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

// Names of the functions that know the line.
const (
	lineFunction      = "__line__"
	timestampFunction = "__timestamp__"
)

// textTemplate is a template of Go's text/template over the labels of a line. It belongs to one runner.
type textTemplate struct {
	t *template.Template
	r *Runner
	// field, if set, is the only label that the template consists of.
	field string

	line []byte
	data map[string]string
	out  bytes.Buffer
}

// parseTemplate checks a template and puts the guards into it. What it returns is copied for each runner.
func parseTemplate(name, s string) (*template.Template, error) {
	t, err := template.New(name).Option("missingkey=zero").Funcs((&textTemplate{}).functions()).Parse(s)
	if err != nil {
		return nil, err
	}
	for _, x := range t.Templates() {
		if x.Tree != nil && x.Root != nil {
			guard(x.Root)
		}
	}
	return t, nil
}

// newTextTemplate makes a runner's own copy.
func newTextTemplate(r *Runner, parsed *template.Template) *textTemplate {
	t := &textTemplate{r: r, field: onlyField(parsed)}
	clone, err := parsed.Clone()
	if err != nil { // only a template that has run cannot be cloned, and this one never runs
		clone = parsed
	}
	t.t = clone.Funcs(t.functions())
	return t
}

// onlyField returns the label that a template like {{.label}} consists of, or "".
func onlyField(t *template.Template) string {
	if t.Tree == nil || t.Root == nil || len(t.Root.Nodes) != 1 {
		return ""
	}
	action, ok := t.Root.Nodes[0].(*parse.ActionNode)
	if !ok || len(action.Pipe.Decl) > 0 || len(action.Pipe.Cmds) != 1 || len(action.Pipe.Cmds[0].Args) != 1 {
		return ""
	}
	if f, ok := action.Pipe.Cmds[0].Args[0].(*parse.FieldNode); ok && len(f.Ident) == 1 {
		return f.Ident[0]
	}
	return ""
}

// execute runs the template on a line whose labels are data. The result is valid until the next line. An
// error that is not a limit is for the labels of the line.
func (t *textTemplate) execute(line []byte, data map[string]string) ([]byte, error) {
	t.line, t.data = line, data
	t.out.Reset()
	err := t.t.Execute(limitedOutput{t}, data)
	if err == nil {
		return t.out.Bytes(), nil
	}
	if errors.Is(err, model.ErrLimit) && t.r.limit == nil {
		t.r.limit = limitf("template: it reads and makes more than %d bytes for one line", MaxTemplateWork)
	}
	return nil, err
}

// spend charges work to the line, and to the query what no line before has taken: buffers keep the size that
// one line needed.
func (t *textTemplate) spend(n int) error {
	r := t.r
	if n < 0 || n > r.work {
		r.work = 0
		return model.ErrLimit
	}
	r.work -= n
	if used := MaxTemplateWork - r.work; used > r.charged && r.charge != nil {
		more := (used - r.charged + workStep - 1) / workStep * workStep
		if r.limit = r.charge(int64(more)); r.limit != nil {
			r.work = 0
			return r.limit
		}
		r.charged += more
	}
	return nil
}

type limitedOutput struct{ t *textTemplate }

func (o limitedOutput) Write(b []byte) (int, error) {
	if err := o.t.spend(len(b)); err != nil {
		return 0, err
	}
	return o.t.out.Write(b)
}

// into fills a map with the labels of the line as they are now.
func (l *labels) into(m map[string]string) map[string]string {
	if m == nil {
		m = make(map[string]string)
	}
	clear(m)
	l.sorted = l.all(l.sorted[:0])
	for i := range l.sorted {
		m[l.sorted[i].name] = l.sorted[i].value
	}
	return m
}

// lineFormat is | line_format.
type lineFormat struct {
	t    *textTemplate
	data map[string]string
}

func newLineFormat(s string) (newStage, error) {
	parsed, err := parseTemplate("line", s)
	if err != nil {
		return nil, invalidf("invalid line template: %s", err)
	}
	return func(r *Runner) stage { return &lineFormat{t: newTextTemplate(r, parsed)} }, nil
}

func (f *lineFormat) run(r *Runner, line []byte) ([]byte, bool) {
	if f.t.field != "" {
		return bytesOf(r.labels.value(f.t.field)), true
	}
	f.data = r.labels.into(f.data)
	out, err := f.t.execute(line, f.data)
	if err != nil {
		r.labels.fail(errTemplateFormat, err.Error())
		return line, true
	}
	return out, true
}

// value returns the value of a label, the labels of errors included, or "".
func (l *labels) value(name string) string {
	switch {
	case name == ErrorLabel && l.err != "":
		return l.err
	case name == ErrorDetailsLabel && l.details != "" && !l.asItCame():
		return l.details
	}
	v, _ := l.get(name)
	return v
}

// labelFormat is | label_format: labels are renamed or made by templates, one after the other. All templates
// see the labels as they were when the first of them ran.
type labelFormat struct {
	assignments []assignment
	templates   []*textTemplate // of the runner; nil for a label that is renamed
	data        map[string]string
}

type assignment struct {
	label string
	from  string // the label that is renamed, if parsed is nil
	t     *template.Template
}

func newLabelFormat(s *syntax.LabelFormat) (newStage, error) {
	var all []assignment
	for _, a := range s.Assignments {
		if a.Label == ErrorLabel {
			return nil, invalidf("%s cannot be formatted", a.Label)
		}
		for _, other := range all {
			if other.label == a.Label {
				return nil, invalidf("multiple label name '%s' not allowed in a single format operation", a.Label)
			}
		}
		x := assignment{label: a.Label, from: a.Value}
		if !a.Rename {
			t, err := parseTemplate("label", a.Value)
			if err != nil {
				return nil, invalidf("invalid template for label '%s': %s", a.Label, err)
			}
			x.t = t
		}
		all = append(all, x)
	}
	return func(r *Runner) stage {
		f := &labelFormat{assignments: all, templates: make([]*textTemplate, len(all))}
		for i, a := range all {
			if a.t != nil {
				f.templates[i] = newTextTemplate(r, a.t)
			}
		}
		return f
	}, nil
}

func (f *labelFormat) run(r *Runner, line []byte) ([]byte, bool) {
	l := &r.labels
	clear(f.data)
	for i, a := range f.assignments {
		if a.t == nil {
			if v, ok := l.get(a.from); ok {
				l.setParsed(a.label, v)
				l.del(a.from)
			}
			continue
		}
		if len(f.data) == 0 {
			f.data = l.into(f.data)
		}
		out, err := f.templates[i].execute(line, f.data)
		if r.limit != nil || i%16 == 15 && r.ended() {
			return line, false
		}
		if err != nil {
			l.fail(errTemplateFormat, err.Error())
			continue
		}
		l.setParsed(a.label, l.keep(out))
	}
	return line, true
}

// functions are those that a template may call.
func (t *textTemplate) functions() template.FuncMap {
	m := template.FuncMap{
		lineFunction:      func() string { return text(t.line) },
		timestampFunction: func() time.Time { return time.Unix(0, t.r.at) },
		rangeGuard:        func() (string, error) { return "", t.spend(rangeWork) },
		callGuard:         func() (string, error) { return "", t.spend(callWork) },
	}
	for _, add := range []func(template.FuncMap){t.addStrings, t.addLengthening, t.addRegexps, t.addNumbers, t.addTimes, t.addBuiltins} {
		add(m)
	}
	return m
}

const (
	rangeGuard = "__range__"
	callGuard  = "__call__"
	// rangeWork is what each turn of a range costs, and callWork each call of another template: that takes
	// stack.
	rangeWork = 256
	callWork  = 32 << 10
)

// guard puts a call of a guard at the beginning of each body of a range, and before each call of a template.
// Without them a template could run without end and write nothing.
func guard(list *parse.ListNode) {
	if list == nil {
		return
	}
	for i := 0; i < len(list.Nodes); i++ {
		switch n := list.Nodes[i].(type) {
		case *parse.IfNode:
			guard(n.List)
			guard(n.ElseList)
		case *parse.WithNode:
			guard(n.List)
			guard(n.ElseList)
		case *parse.RangeNode:
			guard(n.List)
			guard(n.ElseList)
			insert(n.List, 0, rangeGuard, n.Pos, n.Line)
		case *parse.TemplateNode:
			insert(list, i, callGuard, n.Pos, n.Line)
			i++
		}
	}
}

func insert(list *parse.ListNode, at int, function string, pos parse.Pos, line int) {
	call := &parse.CommandNode{NodeType: parse.NodeCommand, Pos: pos, Args: []parse.Node{parse.NewIdentifier(function).SetPos(pos)}}
	pipe := &parse.PipeNode{NodeType: parse.NodePipe, Pos: pos, Line: line, Cmds: []*parse.CommandNode{call}}
	action := &parse.ActionNode{NodeType: parse.NodeAction, Pos: pos, Line: line, Pipe: pipe}
	list.Nodes = slices.Insert(list.Nodes, at, parse.Node(action))
}
