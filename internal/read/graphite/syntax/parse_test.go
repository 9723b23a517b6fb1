package syntax

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/model"
)

// text writes a tree with the kinds of its nodes.
func text(e Expr) string {
	switch n := e.(type) {
	case *Path:
		return "<" + n.Text + ">"
	case *Literal:
		return fmt.Sprintf("%T:%v", n.Value, n.Value)
	case *Template:
		return fmt.Sprintf("template(%s,%v)", text(n.Body), n.Values)
	case *Call:
		var args []string
		for _, a := range n.Args {
			args = append(args, text(a))
		}
		for _, k := range n.Kwargs {
			args = append(args, k.Name+"="+text(k.Value))
		}
		return n.Name + "(" + strings.Join(args, ",") + ")"
	}
	return "?"
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ target, want string }{
		{"a.b.c", "<a.b.c>"},
		{" a ", "<a>"},
		{"a.*.{b,c}[0-9]?", "<a.*.{b,c}[0-9]?>"},
		{"a.{b.c,{d,}}", "<a.{b.c,{d,}}>"},
		{"a;dc=x", "<a;dc=x>"},
		{`a\(b\).c`, "<a(b).c>"},
		{"größe.мера", "<größe.мера>"},
		{"5", "<5>"},
		{"f()", "f()"},
		{"f( a , 5 )", "f(<a>,int64:5)"},
		{"f(a,-1.5,1e3,1.5E-2)", "f(<a>,float64:-1.5,float64:1000,float64:0.015)"},
		{"f(1.5.6)", "f(<1.5.6>)"},
		{"f(5a,-)", "f(<5a>,<->)"},
		{"f(true,FALSE,None,inf,nonesuch)", "f(bool:true,bool:false,<nil>:<nil>,float64:+Inf,<nonesuch>)"},
		{`aliasSub(a,"(^.*$)","\1 A")`, `aliasSub(<a>,string:(^.*$),string:\1 A)`},
		{`f('a"b',"c'd","")`, `f(string:a"b,string:c'd,string:)`},
		{`f("a\"b")`, `f(string:a\"b)`},
		{`f("a""b")`, `f(string:a""b)`},
		{"f(a,n=5,func='sum')", "f(<a>,n=int64:5,func=string:sum)"},
		{"f(a=b,c=d)", "f(a=<b>,c=<d>)"},
		{"a|f(5)|g()", "g(f(<a>,int64:5))"},
		{"h(a | f(5) , b)", "h(f(<a>,int64:5),<b>)"},
		{"template(f($h.cpu,$1),h='web',2)", "template(f(<$h.cpu>,<$1>),[{h web} {2 2}])"},
		{"template.a", "<template.a>"},
		{"99999999999999999999", "<99999999999999999999>"},
		{"f(99999999999999999999)", "f(float64:1e+20)"},
		{"f(1e999)", "f(float64:+Inf)"},
	} {
		e, err := Parse(c.target)
		if err != nil {
			t.Errorf("%s: %v", c.target, err)
			continue
		}
		if got := text(e); got != c.want {
			t.Errorf("%s: got %s, want %s", c.target, got, c.want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct {
		target string
		at     int
		want   string
	}{
		{"", 0, "a path or a call"},
		{"f(a,1", 5, ", or )"},
		{"f(a))", 4, "the end of the target"},
		{"a b", 2, "the end of the target"},
		{"a|b", 2, "a call after |"},
		{"f(,)", 2, "a path or a call"},
		{"f(a,)", 4, "a path or a call"},
		{"f(a=1,2)", 6, "an argument with a name"},
		{`f("a)`, 5, "the end of the string"},
		{"a.", 0, "a path or a call"},
		{"a..b", 0, "a path or a call"},
		{"{a", 0, "a path or a call"},
		{`"a"`, 0, "a path or a call"},
		{"template(template(a))", 9, "a path or a call in template()"},
		{"template(a,b)", 11, "a number or a string"},
		{strings.Repeat("f(", 200) + "a" + strings.Repeat(")", 200), 200, "nested calls"},
		{"a" + strings.Repeat("|f()", 200), 402, "pipes"},
	} {
		_, err := Parse(c.target)
		var e *Error
		if !errors.As(err, &e) || !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%.40s: %v", c.target, err)
			continue
		}
		if !strings.Contains(e.Want, c.want) || c.at >= 0 && e.At != c.at && c.want != "a path or a call" {
			t.Errorf("%.40s: %v", c.target, err)
		}
	}
}

func TestFirstPathOf(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"a.b", "a.b"},
		{"f(g(a.b,5),c)", "a.b"},
		{"f(a.b,1", "f"},
		{"constantLine(5)", ""},
		{"", ""},
		{"f()", ""},
	} {
		if got := FirstPathOf(c.name); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"a.b.c", "f(a,1)|g(x='y')", "template(f($a),a=5)", `f("\1",'',1e5,inf,true)`, "a.{b,c", "((((", "a\\(", "f(\xff)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, target string) {
		e, err := Parse(target)
		FirstPathOf(target)
		if err != nil {
			var at *Error
			if !errors.As(err, &at) || at.At < 0 || at.At > len(target) {
				t.Fatalf("position of %v", err)
			}
			return
		}
		if l, ok := e.(*Literal); ok {
			t.Fatalf("%q is a literal %v", target, l.Value)
		}
		if v, ok := constant(target); ok && v != nil {
			if f, ok := v.(float64); ok && math.IsNaN(f) {
				t.Fatalf("%q is NaN", target)
			}
		}
	})
}
