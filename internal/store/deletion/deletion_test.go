package deletion

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
)

func deletion(tenant string, minTime, maxTime int64, ms ...Matcher) Deletion {
	if len(ms) == 0 {
		ms = []Matcher{{}} // everything
	}
	return Deletion{Signal: model.Metrics, Tenant: tenant, Range: model.TimeRange{Min: minTime, Max: maxTime}, Matchers: ms}
}

func TestMatches(t *testing.T) {
	l := model.LabelsOf("__name__", "up", "job", "a\nb")
	for _, test := range []struct {
		m    Matcher
		want bool
	}{
		{Matcher{}, true},
		{Matcher{"__name__", model.MatchEqual, "up"}, true},
		{Matcher{"__name__", model.MatchEqual, "u"}, false},
		{Matcher{"__name__", model.MatchNotEqual, "up"}, false},
		{Matcher{"instance", model.MatchEqual, ""}, true},
		{Matcher{"instance", model.MatchNotEqual, ""}, false},
		{Matcher{"instance", model.MatchRegexp, ".*"}, true},
		{Matcher{"job", model.MatchRegexp, "a.b"}, true},
		{Matcher{"job", model.MatchRegexp, "a"}, false},
		{Matcher{"job", model.MatchNotRegexp, "a|b"}, true},
	} {
		for _, both := range []bool{false, true} {
			d := deletion("t", 0, 1, test.m)
			if both {
				d.Matchers = append(d.Matchers, Matcher{"__name__", model.MatchNotEqual, "up"})
			}
			if err := d.Compile(nil); err != nil {
				t.Fatal(err)
			}
			if got := d.Matches(l); got != (test.want && !both) {
				t.Errorf("%+v: %t", d.Matchers, got)
			}
		}
	}
	long := deletion("t", 0, 1)
	long.Request = string(make([]byte, maxRequestBytes+1))
	filtered := deletion("t", 0, 1)
	filtered.Filter = `{a="b"} |= "c"`
	for what, d := range map[string]Deletion{
		"request":     long,
		"filter":      filtered,
		"tenant":      deletion("", 0, 1),
		"times":       deletion("t", 1, 0),
		"expression":  deletion("t", 0, 1, Matcher{"a", model.MatchRegexp, "("}),
		"operator":    deletion("t", 0, 1, Matcher{"a", 9, ""}),
		"UTF-8":       deletion("t", 0, 1, Matcher{"a", model.MatchEqual, "\xff"}),
		"no matchers": {Signal: model.Metrics, Tenant: "t"},
		"matchers":    deletion("t", 0, 1, make([]Matcher, maxMatchers+1)...),
		"large":       deletion("t", 0, 1, Matcher{"a", model.MatchEqual, string(make([]byte, maxMatcherBytes))}),
		"signal":      {Tenant: "t", Matchers: []Matcher{{}}, Signal: 9},
	} {
		if err := d.Compile(nil); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestCutRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r, want model.Rows
		from := rapid.IntRange(0, 3).Draw(t, "from")
		var cuts Cuts
		for range rapid.IntRange(0, 3).Draw(t, "ranges") {
			a := rapid.Int64Range(0, 30).Draw(t, "min")
			cuts = append(cuts, Cut{TimeRange: model.TimeRange{Min: a, Max: a + rapid.Int64Range(0, 10).Draw(t, "span")}})
		}
		starts, blobs := rapid.Bool().Draw(t, "starts"), rapid.Bool().Draw(t, "blobs")
		for i := range from + rapid.IntRange(0, 20).Draw(t, "rows") {
			at, start := rapid.Int64Range(0, 40).Draw(t, "time"), int64(0)
			if starts {
				start = at + 1
			}
			keep := i < from || !slices.ContainsFunc(cuts, func(c Cut) bool { return c.Contains(at) })
			for _, to := range []*model.Rows{&r, &want} {
				switch {
				case to == &want && !keep:
				case blobs && i%2 == 0:
					to.AppendBlob(at, model.KindExemplar, fmt.Appendf(nil, "row %d", i), start)
				default:
					to.Append(at, uint64(i), start)
				}
			}
		}
		cuts.Rows(&r, from)
		if r.Len() != want.Len() {
			t.Fatalf("%d rows, not %d", r.Len(), want.Len())
		}
		for i := range r.Len() {
			if r.Times[i] != want.Times[i] || !r.Same(i, &want, i) || r.Start(i) != want.Start(i) {
				t.Fatalf("row %d", i)
			}
		}
	})
}

// TestCutText removes lines by time and by a filter, and leaves the rows that remain as they were.
func TestCutText(t *testing.T) {
	contains := func(model.Labels) LineTest {
		return func(_ int64, line []byte, _ model.Labels) bool { return bytes.Contains(line, []byte("x")) }
	}
	rapid.Check(t, func(t *rapid.T) {
		var r model.TextRows
		r.Metadata = []model.Labels{model.LabelsOf("a", "1"), model.LabelsOf("a", "2")}
		r.Bytes, r.Begin = []byte("before"), 6
		var cuts Cuts
		for range rapid.IntRange(0, 2).Draw(t, "cuts") {
			a := rapid.Int64Range(0, 20).Draw(t, "min")
			c := Cut{TimeRange: model.TimeRange{Min: a, Max: a + rapid.Int64Range(0, 10).Draw(t, "span")}}
			if rapid.Bool().Draw(t, "filtered") {
				c.lines = contains
			}
			cuts = append(cuts, c)
		}
		var want []string
		at := int64(0)
		for range rapid.IntRange(0, 20).Draw(t, "rows") {
			at += rapid.Int64Range(0, 3).Draw(t, "step")
			line := rapid.SampledFrom([]string{"", "x", "y", "axb"}).Draw(t, "line")
			of := rapid.Uint32Range(0, 2).Draw(t, "metadata")
			r.Times, r.Bytes = append(r.Times, at), append(r.Bytes, line...)
			r.Ends, r.MetadataOf = append(r.Ends, uint32(len(r.Bytes))), append(r.MetadataOf, of)
			gone := slices.ContainsFunc(cuts, func(c Cut) bool {
				return c.Contains(at) && (c.lines == nil || bytes.Contains([]byte(line), []byte("x")))
			})
			if !gone {
				want = append(want, fmt.Sprintf("%d %q %d", at, line, of))
			}
		}
		n := len(r.Times)
		if cut := cuts.Text(&r); cut != (len(want) < n) {
			t.Fatalf("%t with %d of %d rows left", cut, len(want), n)
		}
		var got []string
		for i := range r.Times {
			got = append(got, fmt.Sprintf("%d %q %d", r.Times[i], r.Line(i), r.MetadataOf[i]))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

// TestControl reads back what control records say.
func TestControl(t *testing.T) {
	d := deletion("t", -5, 9, Matcher{"a", model.MatchRegexp, "b|c"})
	d.Request, d.Signal, d.Filter, d.NotBefore = "id", model.Logs, `{a=~"b|c"} |= "x"`, 7
	c, err := d.Control()
	if err != nil {
		t.Fatal(err)
	}
	asked := ""
	back, _, err := ParseControl(c, func(text string) (LineFilter, error) {
		asked = text
		return func(model.Labels) LineTest { return nil }, nil
	})
	if err != nil || asked != d.Filter {
		t.Fatal(asked, err)
	}
	again, err := back.Control()
	if err != nil || !bytes.Equal(again.Body, c.Body) || back.Query() != d.Filter {
		t.Fatalf("%s, %v", again.Body, err)
	}
	if c, err = Cancel("id"); err != nil {
		t.Fatal(err)
	}
	if _, request, err := ParseControl(c, nil); err != nil || request != "id" {
		t.Fatal(request, err)
	}
	for _, c := range []model.Control{{Kind: 9}, {Kind: model.ControlDelete, Body: []byte("{}")}, {Kind: model.ControlCancel, Body: []byte(`{"other":1}`)}} {
		if _, _, err := ParseControl(c, nil); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
