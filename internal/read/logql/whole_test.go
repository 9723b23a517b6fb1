package logql

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/line"
	"github.com/shaledb/shale/internal/read/readtest"
)

// TestWholeQueries compares queries by their text with what the stages make of all lines, one by one: what is
// left out on the way, by pages, by filters over them, by stages that only probe, must make no difference.
func TestWholeQueries(t *testing.T) {
	texts := []string{
		`{app="x"}`,
		`{app="x"} |= "err"`,
		`{app="x"} |~ "(?i)ERR|warn" != "7"`,
		`{app="x", s=~"0|1"} |= "err" or "ok" | json`,
		`{app="x"} | json | level="err"`,
		`{app="x"} | json | n >= 5`,
		`{app="x"} | logfmt | n >= 5 | line_format "{{.level}}-{{.n}}"`,
		`{app="x"} | logfmt | n < 5 or level="warn"`,
		`{app="x"} | json | logfmt | __error__ != ""`,
		`{app="x"} | json | drop __error__, __error_details__ | line_format "{{.n}}" |= "3"`,
		`{app="x"} | regexp "(?P<w>\\w+) (?P<rest>.*)" | w="plain" | label_format s="{{.rest}}"`,
		`{app="x"} | pattern "<w> <_>" | w != ""`,
		`{app="x"} | m="u"`,
		`{app="x"} | m="u" or m="v"`,
		`{app="x"} | m=~"u|v", s="0"`,
		`{app="x"} | s="0"`,
		`{app="x"} | s_extracted="u"`,
		`{app="x"} | keep m, s`,
		`{app="x"} | json | keep n | n > 3`,
		`{app="x"} | unpack | n="4"`,
		`{app="x"} | decolorize |= "err"`,
		`{app="x"} |> "<_>level<_>"`,
		`{app="x"} !> "plain <_>"`,
	}
	rapid.Check(t, func(t *rapid.T) {
		w := drawTextWorld(t)
		e := w.engine()
		for range 4 {
			text := rapid.SampledFrom(texts).Draw(t, "query")
			q := &Query{
				Tenants: []string{oneTenant}, Prepared: prepared(text), Start: math.MinInt64, End: math.MaxInt64,
				Limit:     rapid.SampledFrom([]int{0, 1, 3, 10}).Draw(t, "limit"),
				Direction: Direction(rapid.IntRange(0, 1).Draw(t, "direction")), Categorize: true,
				Cost: &model.Cost{},
			}
			got, err := e.Lines(context.Background(), q)
			if err != nil {
				t.Fatal(err)
			}
			var rows []string
			for _, s := range got.Streams {
				for _, x := range s.Entries {
					rows = append(rows, shown(x.Time, x.Line, s.Labels, x.Metadata, x.Parsed))
				}
			}
			want := w.expected(t, q)
			slices.Sort(rows)
			slices.Sort(want)
			if !slices.Equal(rows, want) {
				t.Fatalf("%s, limit %d, %s:\n got %q\nwant %q", text, q.Limit, q.Direction, rows, want)
			}
			if s := got.Stats; s.Entries != int64(len(rows)) || s.Passed < s.Entries || s.Read+s.Skipped > s.Pages {
				t.Fatalf("%+v", s)
			}
		}
	})
}

func drawTextWorld(t *rapid.T) *world {
	var streams []model.Labels
	for i := range rapid.IntRange(1, 4).Draw(t, "streams") {
		pairs := []string{"s", fmt.Sprint(i), "app", "x"}
		if i == 3 {
			pairs = append(pairs, "m", "u") // as a label of the stream, and not of lines
		}
		streams = append(streams, model.LabelsOf(pairs...))
	}
	w := &world{readtest.NewWorld(streams...)}
	at := int64(0)
	w.Fill(t, oneTenant, 3, 20, func(t *rapid.T) readtest.Line {
		level := rapid.SampledFrom([]string{"err", "warn", "ok"}).Draw(t, "level")
		n := rapid.IntRange(0, 9).Draw(t, "n")
		form := rapid.SampledFrom([]string{`{"level":"%s","n":%d}`, `level=%s n=%d`, `plain %s %d`, `{"level":"%s","n":"%d"`}).Draw(t, "form")
		at++ // all times differ, since of lines of one time a limit may leave out any
		x := readtest.Line{Time: at*7919%10_007 + 1, Text: fmt.Sprintf(form, level, n)}
		switch rapid.IntRange(0, 5).Draw(t, "metadata") {
		case 0:
			x.Metadata = model.LabelsOf("m", "u")
		case 1:
			x.Metadata = model.LabelsOf("m", "v", "s", "u")
		}
		return x
	})
	return w
}

// expected runs the query on each line alone.
func (w *world) expected(t *rapid.T, q *Query) []string {
	expr := q.Prepared.log
	p, err := line.Compile(expr.Stages)
	if err != nil {
		t.Fatal(err)
	}
	_, matchers := selectors(expr.Matchers, q.Tenants)
	type row struct {
		time int64
		text string
	}
	var rows []row
	for _, l := range w.Streams {
		if !matches(matchers, l) {
			continue
		}
		r := p.Runner()
		r.SetStream(l)
		for _, x := range w.Lines[string(l)] {
			one := model.TextRows{Times: []int64{x.Time}, Bytes: []byte(x.Text), Ends: []uint32{uint32(len(x.Text))}}
			if f := p.Filter(); f != nil && len(f.Select(nil, &one, 0, 1)) == 0 {
				continue
			}
			var out line.Result
			ok, err := r.Process(x.Time, []byte(x.Text), x.Metadata, &out)
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				rows = append(rows, row{x.Time, shown(x.Time, out.Line, out.Stream, out.Metadata, out.Parsed)})
			}
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.time, b.time) })
	if q.Direction == Backward {
		slices.Reverse(rows)
	}
	var out []string
	for i := 0; i < len(rows) && (q.Limit == 0 || i < q.Limit); i++ {
		out = append(out, rows[i].text)
	}
	return out
}
