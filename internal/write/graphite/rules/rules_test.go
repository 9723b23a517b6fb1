package rules

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/shaledb/shale/internal/model"
)

func TestRefuses(t *testing.T) {
	list := func(text string) error { _, err := ParseList("f", []byte(text)); return err }
	rewriting := func(text string) error { _, err := ParseRewriting("f", []byte(text)); return err }
	aggregations := func(text string) error { _, err := ParseAggregations("f", []byte(text)); return err }
	for _, c := range []struct {
		parse      func(string) error
		text, want string
	}{
		{list, "ok\n(\n", "f:2: pattern \"(\" is not a regular expression"},
		{list, "a\xff\n", "f:1: the line is not UTF-8"},
		{rewriting, "a = b\n", "f:1: expected the section [pre] or [post] before the first rule"},
		{rewriting, "[pre]\na\n", `f:2: expected a section or a rule such as _sum$ = _total, found "a"`},
		{rewriting, "\n[before]\n", "f:2: expected the section [pre] or [post], found [before]"},
		{rewriting, "[pre]\n( = b\n", "f:2: "},
		{rewriting, "[pre]\na = \\1\n", "f:2: "},
		{aggregations, "a (60) = sum\n", `f:1: expected output (seconds) = method input, found "a (60) = sum"`},
		{aggregations, "a (60) = median b\n", `f:1: expected a method such as sum or p95, found "median"; the methods are sum avg`},
		{aggregations, "a (0) = sum b\n", `f:1: expected from 1 to 31622400 seconds such as (60), found "(0)"`},
		{aggregations, "a (1m) = sum b\n", `f:1: expected from 1 to`},
		{aggregations, "<x> (60) = sum <y>\n", "f:1: the output has the field <x>, which the input lacks"},
		{aggregations, "a<x (60) = sum <x>\n", "f:1: the field <x of the output has no end"},
		{aggregations, "a (60) = sum (b\n", "f:1: pattern"},
		{aggregations, "a (60) = sum <a b>\n", "f:1: expected output"},
	} {
		if err := c.parse(c.text); err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%q: got error %v, want %s", c.text, err, c.want)
		}
	}
}

func TestFilesKeepWhatWasInForce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "blacklist.conf")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	changes := 0
	if _, err := Open(Settings{Blacklist: path}, nil); err == nil {
		t.Error("a missing file is no error")
	}
	write("^a\n")
	f, err := Open(Settings{Blacklist: path}, func(*Rules) error { changes++; return nil })
	if err != nil {
		t.Fatal(err)
	}
	before := f.Rules()
	write("(\n")
	if err := f.Load(); err == nil || f.Rules() != before {
		t.Errorf("a broken file: error %v, in force: %v", err, f.Rules())
	}
	write("^b\n")
	if err := f.Load(); err != nil {
		t.Error(err)
	}
	if ok, _ := f.Rules().Blacklist.Match("b"); !ok || changes != 2 {
		t.Errorf("the changed file is not in force, after %d changes", changes)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("^a\n", "[pre]\n(a) = \\1\n[post]\n_sum$ =\n", "<a>.all (60) = sum <a>.*.<<b>>\n", "x.y.z")
	f.Add("(?!a)", "[post]\n=\n", "a (1) = p999 a*b|c\n", "")
	f.Add("(a+)+$", "[pre]\n\\b = \\g<0>\n", "<a><b> (60) = avg <a><b>\n", "aaaaaaaaaaaaaaaaaaaaaaaaaaaa!")
	f.Add("[", "]", "<<>> (9) = max <<", "\n")
	f.Fuzz(func(t *testing.T, list, rewrite, aggregation, path string) {
		if len(list)+len(rewrite)+len(aggregation)+len(path) > 1<<12 || !utf8.ValidString(path) {
			return // receivers refuse paths that are not UTF-8
		}
		if l, err := ParseList("f", []byte(list)); err == nil {
			_, _ = l.Match(path)
		}
		if r, err := ParseRewriting("f", []byte(rewrite)); err == nil {
			_, _ = r.Pre.Apply(path)
			_, _ = r.Post.Apply(path)
		}
		if all, err := ParseAggregations("f", []byte(aggregation)); err == nil {
			for _, a := range all {
				_, _, _ = a.Output(path)
			}
		}
	})
}
