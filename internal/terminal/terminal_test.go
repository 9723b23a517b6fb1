package terminal

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/prometheus/prometheus/promql/parser"
)

// harmless reports whether a terminal only shows the text.
func harmless(text []byte) bool {
	return utf8.Valid(text) && !bytes.ContainsFunc(text, obeyed)
}

func TestEscape(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                     "plain",
		"größe 日本 \U0001f600":       "größe 日本 \U0001f600",
		"a\nb\r\n\tc":               `a\nb\r\n\tc`,
		"\x1b[31mred\x1b[0m":        `\x1b[31mred\x1b[0m`,
		"\x1b]0;title\x07":          `\x1b]0;title\a`,
		"\u009b2J \u0085":           `\u009b2J \u0085`,
		"\x9b2J \xff":               `\x9b2J \xff`,
		"\x00\x7f\b":                `\x00\x7f\b`,
		`{"msg":"a \"b\" \n c:\d"}`: `{"msg":"a \"b\" \n c:\d"}`,
		"a\u202eb\u2066c\u2028d":    `a\u202eb\u2066c\u2028d`,
		"\ufffd":                    "\ufffd",
	} {
		if got := string(Escape(nil, []byte(text))); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got, want := EscapeLines("one\ntwo\x1b[2J\r\n"), "one\ntwo\\x1b[2J\\r\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// FuzzEscape: whatever the text is, nothing that a terminal obeys is left of it, and what is harmless stays.
func FuzzEscape(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		text := make([]byte, r.IntN(40))
		for i := range text {
			text[i] = "\x00\x07\n\r\t\x1b[]m;\x7f\x80\x9b\x9d\xc2\xe2\x80\xae\xa8\xf0\xff a\\\""[r.IntN(25)]
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got := Escape(nil, text)
		if !harmless(got) || harmless(text) && !bytes.Equal(got, text) || !bytes.Equal(Escape(nil, got), got) {
			t.Errorf("%q: %q", text, got)
		}
		if lines := EscapeLines(string(text)); strings.Count(lines, "\n") != bytes.Count(text, []byte("\n")) || !harmless([]byte(strings.ReplaceAll(lines, "\n", ""))) {
			t.Errorf("%q: lines %q", text, lines)
		}
		labels := map[string]string{"__name__": string(text), "a" + string(text): string(text), "b": "c"}
		if s := Selector(labels, nil); !harmless([]byte(s)) {
			t.Errorf("%q: %s", text, s)
		}
		document, err := json.Marshal(labels)
		if err != nil {
			t.Fatal(err)
		}
		escaped := EscapeJSON(nil, document)
		var plain, again map[string]string
		if err := json.Unmarshal(document, &plain); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(escaped, &again); err != nil || !reflect.DeepEqual(plain, again) || !harmless(escaped) {
			t.Errorf("%q: %v: %s", text, err, escaped)
		}
	})
}

// TestSelector: labels are written as a selector that selects them.
func TestSelector(t *testing.T) {
	for _, c := range []struct {
		labels, without map[string]string
		want            string
	}{
		{nil, nil, "{}"},
		{map[string]string{"__name__": "up"}, nil, "up"},
		{map[string]string{"__name__": "a:b", "job": "x", "app": "\"q\"\n"}, nil, `a:b{app="\"q\"\n", job="x"}`},
		{map[string]string{"__name__": "a.b"}, nil, `{"a.b"}`},
		{map[string]string{"__name__": "a.b", "x y": "1", "_": "2"}, nil, `{"a.b", "x y"="1", _="2"}`},
		{map[string]string{"a": "1", "b": "2"}, map[string]string{"a": "1"}, `{b="2"}`},
		{map[string]string{"__name__": "up", "a": "1"}, map[string]string{"a": "1"}, "up"},
		{map[string]string{"__name__": ""}, nil, `{""}`},
	} {
		got := Selector(c.labels, c.without)
		if got != c.want {
			t.Errorf("%v: %s, want %s", c.labels, got, c.want)
		}
		if len(c.labels) < 2 || c.without != nil {
			continue
		}
		ms, err := parser.NewParser(parser.Options{}).ParseMetricSelector(got)
		if err != nil || len(ms) != len(c.labels) {
			t.Errorf("%s: %v, %v", got, ms, err)
		}
		for _, m := range ms {
			if c.labels[m.Name] != m.Value {
				t.Errorf("%s: %s", got, m)
			}
		}
	}
}

// TestCommon: the common labels of random rows are those of the intersection, at every row, and a row's own
// labels together with them are all of its labels.
func TestCommon(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		var c Common
		rows := make([]map[string]string, 1+r.IntN(5))
		for i := range rows {
			rows[i] = map[string]string{"__name__": "m"}
			for name := 'a'; name < 'f'; name++ {
				if n := r.IntN(7); n > 0 {
					rows[i][string(name)] = strings.Repeat("x", n/5)
				}
			}
			before := len(c.Labels)
			if fewer := c.Narrow(rows[i]); fewer != (i > 0 && len(c.Labels) < before) {
				t.Fatalf("row %d of %v: fewer is %v, %d of %d labels", i, rows, fewer, len(c.Labels), before)
			}
			for name := 'a'; name < 'f'; name++ {
				value, all := rows[0][string(name)]
				for _, row := range rows[:i+1] {
					other, ok := row[string(name)]
					all = all && ok && other == value
				}
				if got, ok := c.Labels[string(name)]; ok != all || got != value && all {
					t.Fatalf("row %d of %v: common are %v", i, rows, c.Labels)
				}
			}
		}
	}
}

func TestTable(t *testing.T) {
	var out strings.Builder
	if err := Table(&out, [][]string{{"app", "LINES", "B"}, {"größe", "7", "1234"}, {"", "123456", ""}}); err != nil {
		t.Fatal(err)
	}
	if want := "app     LINES     B\ngröße       7  1234\n       123456      \n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
