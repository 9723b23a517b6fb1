package pyregexp

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/model"
)

// The wanted texts are those of re.sub of Python 3.11.
func TestReplace(t *testing.T) {
	for _, c := range []struct{ regex, template, text, want string }{
		{"(^.*$)", `\1 A`, "servers.web1.cpu", "servers.web1.cpu A"},
		{"(.*)", `\1 A`, "abc", "abc A A"},
		{"x*", "-", "abxd", "-a-b--d-"},
		{"b", "$1", "abc", "a$1c"},
		{`(\w+)\.(\w+)`, `\2.\g<1>`, "größe.мера", "мера.größe"},
		{`\d+`, "N", "web12.disk3", "webN.diskN"},
		{"(?P<host>web\\d)", `<\g<host>>`, "a.web1.b", "a.<web1>.b"},
		{"(a)(?!b)", `[\1]`, "abac", "ab[a]c"},
		{"(?<=x)y", "z", "xyy", "xzy"},
		{`(.)\1`, "=", "aabbc", "==c"},
		{"(?P<c>.)(?P=c)", "=", "aab", "=b"},
		{"(a)|(b)", `<\1\2>`, "ab", "<a><b>"},
		{"^", "p.", "a.b", "p.a.b"},
		{"$", ".s", "a.b", "a.b.s"},
		{"a", `\\`, "a", `\`},
		{"", "-", "ab", "-a-b-"},
		{"(?i)CPU", "x", "a.cpu", "a.x"},
		{`(?P<a>.)(.)(?=c)`, `\2\1\g<a>`, "abc", "baac"},
		{`(?P<a>\w)(\w)`, `\2\1`, "éa", "aé"},
		{`(\w)\1`, "x", "\xff\xffaa\xfe", "\xff\xffx\xfe"},
		{`\w`, "x", "a\xff\xe9b", "x\xff\xe9x"},
		{`x*`, "-", "\xff", "-\xff-"},
	} {
		r, err := Compile(c.regex, false)
		if err != nil {
			t.Errorf("%s: %v", c.regex, err)
			continue
		}
		tm, err := r.Template(c.template)
		if err != nil {
			t.Errorf("%s: %v", c.template, err)
			continue
		}
		if got, err := tm.Replace(c.text); err != nil || got != c.want {
			t.Errorf("%s on %s: got %q, %v, want %q", c.regex, c.text, got, err, c.want)
		}
	}
}

func TestTemplateRefused(t *testing.T) {
	for _, regex := range []string{"(", "a**(", strings.Repeat("a", maxPattern+1)} {
		if _, err := Compile(regex, false); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%.20s: %v", regex, err)
		}
	}
	r, err := Compile("(a)", false)
	if err != nil {
		t.Fatal(err)
	}
	for _, template := range []string{`\2`, `\g<x>`, `\q`} {
		if _, err := r.Template(template); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%s: %v", template, err)
		}
	}
}

// All matches of a pattern of a request have one limit, too, after which each match fails.
func TestTotalIsBounded(t *testing.T) {
	r, err := Compile(`(?=a)(a|aa)+$`, false)
	if err != nil {
		t.Fatal(err)
	}
	r.LimitTotal(1)
	if ok, err := r.Search("aaa"); !ok || err != nil || r.Err() != nil {
		t.Errorf("the first match: %v %v", ok, err)
	}
	if _, err := r.Search("aaa"); !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), "for all texts") || r.Err() == nil {
		t.Errorf("the second match: %v", err)
	}
}

// Groups have the numbers that Python gives them, in either engine.
func TestGroups(t *testing.T) {
	for _, pattern := range []string{`(?P<x>a+)(b)?(?P<y>c)`, `(?=a)(?P<x>a+)(b)?(?P<y>c)`, `(?P<x>a+)(b)?(?P<y>\w)`} {
		r, err := Compile(pattern, false)
		if err != nil {
			t.Fatal(err)
		}
		groups, ok, err := r.Groups("-aac")
		if !ok || err != nil || !slices.Equal(groups, []string{"aac", "aa", "", "c"}) || r.Group("y") != 3 || r.Group("z") != -1 {
			t.Errorf("%s: %q %v %v", pattern, groups, ok, err)
		}
		if groups, ok, err := r.Groups("x"); ok || err != nil {
			t.Errorf("%s: %q %v", pattern, groups, err)
		}
	}
}

func FuzzReplace(f *testing.F) {
	f.Add("(^.*$)", `\1 A`, "a.b")
	f.Add("x*", "-", "größe\xff")
	f.Add("(?P<a>.)(?P=a)", `\g<a>`, "aab")
	f.Fuzz(func(t *testing.T, regex, template, text string) {
		r, err := Compile(regex, false)
		if err != nil {
			return
		}
		tm, err := r.Template(template)
		if err != nil {
			return
		}
		if got, err := tm.Replace(text); err == nil && len(got) > maxResult+len(text) {
			t.Fatalf("%d bytes", len(got))
		}
	})
}
