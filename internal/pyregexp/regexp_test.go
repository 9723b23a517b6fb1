package pyregexp

import (
	"strings"
	"testing"
	"time"
)

func TestSearch(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{`^carbon\.`, "carbon.agents.a", true},
		{`^carbon\.`, "xcarbon.agents", false},
		{`\.count$`, "a.count", true},
		{`\.count$`, "a.counts", false},
		{`^a\.b$`, "a.b", true},
		{`^a\.b$`, "a.b.c", false},
		{`cpu`, "a.cpu.b", true},
		{`.*`, "", true},
		{`^stats\..*`, "stats.x", true},
		{`^stats\..*`, "x.stats.x", false},
		{`^a.*b$`, "axb", true},
		{`(?i)^CPU`, "cpu.x", true},
		{`^(?!carbon\.).*`, "carbon.x", false},
		{`^(?!carbon\.).*`, "servers.x", true},
		{`(?<=\.)count$`, "a.count", true},
		{`(a)\1`, "aa", true},
		{`(a)\1`, "ab", false},
		{`(?P<x>a+)-(?P=x)`, "aa-aa", true},
		{`(?P<x>a+)-b`, "aa-b", true},
		{`^a{,2}$`, "aaa", false},
		{`^a{,2}$`, "aa", true},
		{`x\Z`, "ax", true},
		{`^[[a]$`, "[", true},
		{`^[[:x]$`, ":", true},
		{`^[]a]$`, "]", true},
		{`^[^]a]$`, "b", true},
		{`^[\]a]+$`, "]a", true},
		{`^\w+$`, "straße", true},
		{`^\w+$`, "strasse", true},
		{`^\w+$`, "a.b", false},
		{`^\d$`, "٣", true},
		{`^(a|b)\.c`, "b.c", true},
	} {
		re, err := Compile(c.pattern, false)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		if got, err := re.Search(c.text); err != nil || got != c.want {
			t.Errorf("%s in %q: got %v and error %v, want %v", c.pattern, c.text, got, err, c.want)
		}
	}
	re, err := Compile(`^CPU\.`, true)
	if err != nil {
		t.Fatal(err)
	}
	if ok, _ := re.Search("cpu.x"); !ok {
		t.Error("case is not ignored")
	}
}

func TestCompileRefuses(t *testing.T) {
	for _, c := range []struct{ pattern, want string }{
		{`(`, "not a regular expression"},
		{`a**`, "not a regular expression"},
		{strings.Repeat("a", maxPattern+1), "too long"},
		{"\xff", "not UTF-8"},
	} {
		if _, err := Compile(c.pattern, false); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.20q: got error %v, want %q", c.pattern, err, c.want)
		}
	}
}

// A pattern that backtracks without end is given up.
func TestSearchIsBounded(t *testing.T) {
	re, err := Compile(`^(?!x)(a+)+$`, false)
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	_, err = re.Search(strings.Repeat("a", 60) + "!")
	if err == nil || !strings.Contains(err.Error(), "took longer than 100ms") {
		t.Errorf("got error %v after %s", err, time.Since(begun))
	}
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{`^a\.`, `(?P<x>a)(?P=x)`, `[]a]`, `{,2}`, `\Z\`, `(?!x)`, `[^]`, `(?P=`} {
		f.Add(s, "a.b")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 100 || len(text) > 100 {
			return
		}
		re, err := Compile(pattern, false)
		if err != nil {
			return
		}
		_, _ = re.Search(text)
	})
}
