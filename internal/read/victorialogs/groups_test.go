package victorialogs

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/victorialogs/watch"
)

// TestGroups: streams are counted together where their labels tell them apart, and else each alone.
func TestGroups(t *testing.T) {
	const (
		web = `{app="web",pod="1"}` + "\n" + `{app="web",pod="2"}`
		row = `{"g0":"web","_time":"2001-09-09T01:46:40Z","n":"5","times":"5"}`
	)
	for _, test := range []struct {
		name, streams, after, row string
		labels                    []string
		ungrouped                 bool
	}{
		{name: "together", streams: web, row: row, labels: []string{"app"}},
		{name: "two lines of one time in a stream", streams: web, row: strings.Replace(row, `"times":"5"`, `"times":"4"`, 1), labels: []string{"app"}, ungrouped: true},
		{name: "a stream that is new", streams: web, row: strings.Replace(row, "web", "db", 1), labels: []string{"app"}, ungrouped: true},
		{name: "a field that is new", streams: web, after: web + "\n" + `{app.="x"}`, row: row, labels: []string{"app"}, ungrouped: true},
		{name: "a stream without the label", streams: web + "\n" + `{pod="3"}`, row: row, labels: []string{"app"}, ungrouped: true},
		{name: "a value with a quote", streams: web + "\n" + `{app="a\"b"}`, row: row, labels: []string{"app"}, ungrouped: true},
		{name: "such a value of another field", streams: web + "\n" + `{app="web",pod="a\"b,app=\"c"}`, row: row, labels: []string{"app"}},
		{name: "a name with a comma", streams: web + "\n" + `{app="web",x,app="c"}`, row: row, labels: []string{"app"}, ungrouped: true},
		{name: "no label", streams: web, row: `{"_time":"2001-09-09T01:46:40Z","n":"5","times":"5"}`, ungrouped: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			lists, alone := 0, 0
			w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
				switch q := r.FormValue("query"); {
				case strings.Contains(q, "uniq by (_stream)"):
					all := test.streams
					if lists++; lists > 1 && test.after != "" {
						all = test.after
					}
					for _, s := range strings.Split(all, "\n") {
						fmt.Fprintf(rw, `{"_stream":%q}`+"\n", s)
					}
				case strings.Contains(q, "sum(n) n"):
					io.WriteString(rw, test.row+"\n")
				default:
					alone++
					io.WriteString(rw, `{"_stream":"{app=\"web\",pod=\"1\"}","_time":"2001-09-09T01:46:40Z","n":"5","times":"5"}`+"\n")
				}
			})
			GroupAlways(w.Source)
			req := request()
			req.Cells = &model.TextCells{Step: 1e9, Phase: 1e18 - 1, Grouped: true, Labels: test.labels}
			cursors, err := w.SelectText(context.Background(), req)
			if err != nil || len(cursors) != 1 {
				t.Fatalf("%d cursors, %v", len(cursors), err)
			}
			c := cursors[0]
			rows, series := 0, 0
			for c.Next(context.Background()) {
				series++
				chunks, err := c.Chunks(context.Background(), nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, x := range chunks {
					rows += x.Rows
				}
				if pod := c.Labels().Get("pod"); (pod != nil) != test.ungrouped {
					t.Errorf("series %s", c.Labels())
				}
			}
			if series != 1 || rows != 5 || (alone > 0) != test.ungrouped {
				t.Errorf("%d series, %d lines, %d requests for streams alone", series, rows, alone)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if used := req.Quota.Charged(); used != (model.Charge{}) {
				t.Errorf("%v is still taken", used)
			}
		})
	}
}

// TestGroupsOfService: service_name is made of other labels, so that streams are grouped by those.
func TestGroupsOfService(t *testing.T) {
	var asked string
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		switch q := r.FormValue("query"); {
		case strings.Contains(q, "uniq by (_stream)"):
			io.WriteString(rw, `{"_stream":"{app=\"web\",pod=\"1\"}"}`+"\n"+`{"_stream":"{k8s.container=\"c\",pod=\"1\"}"}`+"\n")
		case strings.Contains(q, "sum(n) n"):
			asked = q
			io.WriteString(rw, `{"g0":"web","_time":"2001-09-09T01:46:40Z","n":"5","times":"5"}`+"\n")
			io.WriteString(rw, `{"g1":"c","_time":"2001-09-09T01:46:40Z","n":"6","times":"6"}`+"\n")
		default:
			http.Error(rw, "not asked for", http.StatusBadRequest)
		}
	})
	GroupAlways(w.Source)
	w.streams.rules.ServiceNames, w.derives = []string{"k8s_container", "app"}, true
	req := request()
	req.Cells = &model.TextCells{Step: 1e9, Phase: 1e18 - 1, Grouped: true, Labels: []string{"service_name"}}
	cursors, err := w.SelectText(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for c := cursors[0]; c.Next(context.Background()); {
		got[string(c.Labels().Get("service_name"))] = true
	}
	if !got["web"] || !got["c"] || len(got) != 2 {
		t.Errorf("%v", got)
	}
	const want = ` | replace ("{", ",") at _stream limit 1 | extract ",app=\"<plain:g0>\"" from _stream | extract ",k8s.container=\"<plain:g1>\"" from _stream | stats by (g0, g1, _time) sum(n) n, sum(times) times`
	if !strings.HasSuffix(asked, want) {
		t.Errorf("asked for %s", asked)
	}
	if err := cursors[0].Close(); err != nil {
		t.Error(err)
	}
}

// TestGroupingsKept: how streams are grouped is learnt once, and again when it does not hold any more.
func TestGroupingsKept(t *testing.T) {
	streams, groups, labels := []string{`{app="web",pod="1"}`, `{app="web",pod="2"}`}, []string{"web"}, []string{"app"}
	var asked []string
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		switch q := r.FormValue("query"); {
		case strings.Contains(q, "uniq by (_stream)"):
			asked = append(asked, "list")
			for _, s := range streams {
				fmt.Fprintf(rw, `{"_stream":%q}`+"\n", s)
			}
		case strings.Contains(q, "sum(n) n"):
			asked = append(asked, "groups")
			for _, g := range groups {
				fmt.Fprintf(rw, `{"g0":%q,"_time":"2001-09-09T01:46:40Z","n":"5","times":"5"}`+"\n", g)
			}
		default:
			asked = append(asked, "streams")
			for _, s := range streams {
				fmt.Fprintf(rw, `{"_stream":%q,"_time":"2001-09-09T01:46:40Z","n":"5","times":"5"}`+"\n", s)
			}
		}
	})
	GroupAlways(w.Source)
	look := func(want ...string) {
		t.Helper()
		asked = nil
		req := request()
		req.Cells = &model.TextCells{Step: 1e9, Phase: 1e18 - 1, Grouped: true, Labels: labels}
		cursors, err := w.SelectText(context.Background(), req)
		if err != nil {
			t.Fatal(err)
		}
		if err := cursors[0].Close(); err != nil {
			t.Error(err)
		}
		if !slices.Equal(asked, want) {
			t.Errorf("asked for %v, want %v", asked, want)
		}
	}
	look("list", "groups", "list")
	look("groups", "list")
	streams, groups = append(streams, `{app="db"}`), append(groups, "db")
	look("groups", "streams")
	look("list", "groups", "list")
	streams = append(streams, `{app="db",trace.id="x"}`, `{app="db",trace_id="y"}`)
	look("groups", "list") // the label is not wanted
	labels = []string{"app", "trace_id"}
	streams = []string{`{app="db",trace_id="x"}`, `{app="db",trace_id="y"}`}
	groups = nil
	look("list", "groups", "list")
	streams = append(streams, `{app="db",trace.id="z"}`)
	look("groups", "list", "streams")
}

// TestGroupingsBounded: what is learnt takes a bounded number of groups.
func TestGroupingsBounded(t *testing.T) {
	var k groupings
	for i := range 3 * maxGroupings / 100 {
		g := &grouping{groups: map[string]bool{}, learnt: time.Now()}
		for n := range 99 {
			g.groups[strconv.Itoa(n)] = true
		}
		k.put(strconv.Itoa(i), g)
		if k.kept > maxGroupings || len(k.of)*100 != k.kept {
			t.Fatalf("%d groups of %d selections are kept, counted as %d", 100*len(k.of), len(k.of), k.kept)
		}
	}
	if k.get("0") != nil || k.get(strconv.Itoa(3*maxGroupings/100-1)) == nil {
		t.Error("the last one is not kept, or the first one is")
	}
}

// TestGroupsSparse: where there are few lines, they are counted by groups at once.
func TestGroupsSparse(t *testing.T) {
	const cut = `| replace ("{", ",") at _stream limit 1 | extract ",app=\"<plain:g0>\"" from _stream | stats by (g0, _time`
	for _, test := range []struct {
		lines  int64
		labels []string
		want   string
	}{
		{-1, []string{"app"}, ` | stats by (_stream, _time:1000000000ns) count() n, count_uniq(_time) times ` + cut + `) sum(n) n, sum(times) times`},
		{8, []string{"app"}, ` ` + cut + `:1000000000ns) count() n, count_uniq(_stream_id, _time) times`},
		{8, nil, ` | replace ("{", ",") at _stream limit 1 | stats by (_time:1000000000ns) count() n, count_uniq(_stream_id, _time) times`},
		{9, []string{"app"}, ` | stats by (_stream, _time:1000000000ns) count() n, count_uniq(_time) times ` + cut + `) sum(n) n, sum(times) times`},
	} {
		asked := ""
		w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
			q := r.FormValue("query")
			if strings.Contains(q, "uniq by (_stream)") {
				io.WriteString(rw, `{"_stream":"{app=\"web\",pod=\"1\"}"}`+"\n"+`{"_stream":"{app=\"web\",pod=\"2\"}"}`+"\n")
				return
			}
			asked = q
			io.WriteString(rw, `{"g0":"web","_time":"2001-09-09T01:46:40Z","n":"5","times":"5"}`+"\n")
		})
		w.watch.Close()
		w.watch = watch.New(watch.Options{
			Count: func(_ context.Context, _ Account, _ model.TimeRange, _ bool, each func(w, lines int64, sum float64)) error {
				each(int64(1e18)/watch.Window, test.lines, 0)
				return nil
			},
			Note: func(Account, model.TimeRange) {}, Counted: func(string) {}, Every: 10 * time.Second, Counts: 1,
			Now: func() int64 { return 1e18 + 5*watch.Window },
		})
		req := request()
		if test.lines >= 0 {
			w.watch.Check(context.Background(), []Account{{}}, req.Range)
			w.watch.Wait()
		}
		GroupAlways(w.Source)
		req.Cells = &model.TextCells{Step: 1e9, Phase: 1e18 - 1, Grouped: true, Labels: test.labels}
		cursors, err := w.SelectText(context.Background(), req)
		if err != nil {
			t.Fatal(err)
		}
		if len(test.labels) > 0 && (!cursors[0].Next(context.Background()) || string(cursors[0].Labels().Get("app")) != "web") {
			t.Errorf("%d lines: the group is missing", test.lines)
		}
		if err := cursors[0].Close(); err != nil {
			t.Error(err)
		}
		if _, got, _ := strings.Cut(asked, "]"); len(test.labels) > 0 && got != test.want {
			t.Errorf("%d lines: asked for %s\nwant %s", test.lines, got, test.want)
		}
	}
}
