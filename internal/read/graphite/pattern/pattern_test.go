package pattern

import (
	"errors"
	"strings"
	"testing"
	"time"

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
	} {
		r, err := Compile(c.regex)
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

func TestRefused(t *testing.T) {
	for _, regex := range []string{"(", "a**(", strings.Repeat("a", maxLength+1)} {
		if _, err := Compile(regex); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%.20s: %v", regex, err)
		}
	}
	r, err := Compile("(a)")
	if err != nil {
		t.Fatal(err)
	}
	for _, template := range []string{`\2`, `\g<x>`, `\q`} {
		if _, err := r.Template(template); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%s: %v", template, err)
		}
	}
}

// A backtracking engine would need years here.
func TestHostileRegexEnds(t *testing.T) {
	r, err := Compile(`(?=a)(a|aa)+$`)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_, err = r.Find(strings.Repeat("a", 60) + "!")
	if !errors.Is(err, model.ErrInvalid) {
		t.Errorf("the search ended without an error: %v", err)
	}
	if d := time.Since(began); d > 10*time.Second {
		t.Errorf("it took %v", d)
	}
}

func FuzzReplace(f *testing.F) {
	f.Add("(^.*$)", `\1 A`, "a.b")
	f.Add("x*", "-", "größe")
	f.Add("(?P<a>.)(?P=a)", `\g<a>`, "aab")
	f.Fuzz(func(t *testing.T, regex, template, text string) {
		r, err := Compile(regex)
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
