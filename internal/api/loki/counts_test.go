//go:build invariants

package loki

import (
	"testing"

	"github.com/shaledb/shale/internal/read/logql/counts"
)

// TestPreparesOnce: a request parses and plans its query once, and compiles each of its regular expressions
// once.
func TestPreparesOnce(t *testing.T) {
	const (
		lines  = `query={app=~"x.+"} |~ "a\\d+b" !~ "c[de]*f" | regexp "(?P<n>\\d+)-(?P<m>.*)" | n=~"1.*2" | decolorize |~ "g.*h+i"`
		simple = `query={app=~"x.+"} |~ "a\\d+b"`
		nearby = "start=900"
	)
	for _, c := range []struct {
		path   string
		params []string
		want   counts.Counts
	}{
		{current + "query_range", []string{lines, nearby}, counts.Counts{Parses: 1, Plans: 1, Regexps: 7}},
		{current + "query_range", []string{lines, nearby, "limit=1"}, counts.Counts{Parses: 1, Plans: 1, Regexps: 7}},
		{current + "query_range", []string{lines, nearby, "direction=forward", "interval=5"}, counts.Counts{Parses: 1, Plans: 1, Regexps: 7}},
		{legacy + "query", []string{simple, nearby, `regexp=z[yx]+z`}, counts.Counts{Parses: 1, Plans: 1, Regexps: 3}},
		{current + "query_range", []string{`query=rate({app=~"x.+"}[1m])`}, counts.Counts{Parses: 1, Plans: 1, Regexps: 1}},
		{current + "query", []string{simple}, counts.Counts{Parses: 1, Regexps: 1}},
		{current + "query", []string{`query=vector(1)+vector(1)`}, counts.Counts{Parses: 1}},
		{current + "format_query", []string{simple}, counts.Counts{Parses: 1, Regexps: 1}},
		{current + "labels", []string{`query={app=~"x.+"}`}, counts.Counts{Parses: 1, Regexps: 1}},
		{current + "series", []string{`match[]={app=~"x.+"}`, `match[]={app="y"}`}, counts.Counts{Parses: 2, Regexps: 1}},
		{current + "index/stats", []string{`query={app=~"x.+"}`}, counts.Counts{Parses: 1, Regexps: 1}},
	} {
		w := newWorld(t, nil)
		for _, l := range []string{`{app="xy"} 950 a1b 12-2`, `{app="xz"} 960 a2b`} {
			if err := w.memory.Load("anonymous", l); err != nil {
				t.Fatal(err)
			}
		}
		before := counts.Now()
		r := w.Get(c.path, c.params...)
		if got := counts.Since(before); got != c.want {
			t.Errorf("%s %s: %d %s: %+v, want %+v", c.path, c.params, r.Code, r.Body, got, c.want)
		}
	}
}

// TestTailPreparesOnce: following lines takes one plan, for the lines of the past and those that come.
func TestTailPreparesOnce(t *testing.T) {
	w := newWorld(t, nil)
	before := counts.Now()
	w.Get(current+"tail", `query={app=~"x.+"} |~ "a\\d+b"`, `regexp=z[yx]+z`)
	if got, want := counts.Since(before), (counts.Counts{Parses: 1, Plans: 1, Regexps: 3}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
