package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/shaledb/shale/bench/proc"
	"github.com/shaledb/shale/bench/result"
	"github.com/shaledb/shale/bench/system"
	"github.com/shaledb/shale/internal/load/lines"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func call(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, &streams{&o, &e})
	return code, o.String(), e.String()
}

func TestCommandLine(t *testing.T) {
	code, out, _ := call(t, "list")
	for _, name := range loadNames() {
		if code != 0 || !strings.Contains(out, name) {
			t.Errorf("code %d, no %s: %s", code, name, out)
		}
	}
	if code, out, _ := call(t); code != 0 || !strings.Contains(out, "named loads") {
		t.Errorf("code %d: %s", code, out)
	}
	for want, args := range map[string][]string{
		"no load \"soup\"": {"run", "--loads", "soup"},
		"above 0":          {"run", "--runs", "0"},
		"give the path":    {"run", "--shale", "/nowhere/shale", "--work", t.TempDir()},
		"unknown flag":     {"run", "--soup"},
	} {
		if code, _, errs := call(t, args...); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("%v: code %d: %s", args, code, errs)
		}
	}
}

// Every load has figures that exist, and a section in the page.
func TestLoads(t *testing.T) {
	page, err := os.ReadFile("../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range loads() {
		for _, c := range append(append(append([]string{}, l.columns...), l.ratios...), l.curves...) {
			if result.Title(c) == "" {
				t.Errorf("%s: no figure is called %s", l.name, c)
			}
		}
		if _, err := result.Fill(string(page), l.name, ""); err != nil {
			t.Error(err)
		}
	}
	if _, err := result.Fill(string(page), "overview", ""); err != nil {
		t.Error(err)
	}
	if usual, err := choose(nil); err != nil || len(usual) < 8 {
		t.Error(usual, err)
	}
}

// records are two systems with everything that a report shows.
func records() []result.Record {
	m := proc.Machine{CPU: "Big Iron", Cores: 2, Memory: 1 << 34, Disk: "ext4", Kernel: "6.0", Go: "go1"}
	one := func(load, sys string, values map[string]float64) result.Record {
		return result.Record{Load: load, System: sys, Version: "1.0", Machine: m, Seconds: 60, Values: values}
	}
	all := []result.Record{
		one("rw1-known", "victoriametrics", map[string]float64{"samples/s": 1e6, "cpu-s/M-settled": 1.6}),
		one("rw1-known", thisTree, map[string]float64{"samples/s": 2e6, "cpu-s/M-settled": 0.8}),
		one("soak", thisTree, map[string]float64{"samples/s": 1e5, "growth-rss-%": 1}),
		one(queryLoad(queryList()[0].name, fromBucket), thisTree, map[string]float64{"p50-s": 0.02, "bucket-requests": 12}),
	}
	all[2].Curves = map[string][]proc.Point{"rss-B": {{0, 1e6}, {10, 2e6}}}
	return all
}

func TestReport(t *testing.T) {
	dir := t.TempDir()
	page, results := dir+"/page.md", dir+"/r.jsonl"
	var text strings.Builder
	for _, name := range append(loadNames(), "overview") {
		text.WriteString("# " + name + "\n<!-- bench: " + name + " -->\n<!-- bench: end -->\n")
	}
	if err := os.WriteFile(page, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := result.Append(results, records()...); err != nil {
		t.Fatal(err)
	}
	args := []string{"report", "--page", page, "--images", dir + "/img", results}
	if code, _, errs := call(t, args...); code != 0 {
		t.Fatal(errs)
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| shale | 1 | 2.00 M | 0.800 |\n| victoriametrics | 1 | 1.00 M | 1.60 |", "2 cores of Big Iron", "shale over victoriametrics: samples/s 2.00",
		"(img/bench-soak-rss-b.svg)", "(img/bench-cpu-known.svg)", "| shale | bucket | – | – | 20.0 ms | – | – | – | 12.0 | – |",
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	for _, file := range []string{"bench-soak-rss-b.svg", "bench-cpu-known.svg", "bench-rate-known.svg"} {
		if _, err := os.Stat(dir + "/img/" + file); err != nil {
			t.Error(err)
		}
	}
	// Once more gives the same page.
	if code, _, errs := call(t, args...); code != 0 {
		t.Fatal(errs)
	}
	if again, err := os.ReadFile(page); err != nil || !bytes.Equal(again, got) {
		t.Errorf("%v: the second report differs", err)
	}
	if code, _, errs := call(t, "compare", results); code == 0 || !strings.Contains(errs, "no run of shale-base") {
		t.Error(errs)
	}
}

func TestTenths(t *testing.T) {
	var curve []proc.Point
	for i := range 100 {
		curve = append(curve, proc.Point{float64(i), float64(i)})
	}
	if a, b, ok := tenths(curve); !ok || a != 14.5 || b != 94.5 {
		t.Error(a, b, ok)
	}
	if a, b, ok := tenths(curve[:3]); !ok || a != 0 || b != 2 {
		t.Error(a, b, ok)
	}
	if _, _, ok := tenths(curve[:2]); ok {
		t.Error("two points have tenths")
	}
}

func TestElements(t *testing.T) {
	for text, want := range map[string]int{
		`{"data":{"result":[{},{}]}}`: 2, `{"data":["a","b","c"]}`: 3, `soup`: 0, `{"data":5}`: 0,
	} {
		if got := elements([]byte(text)); got != want {
			t.Errorf("%s: %d", text, got)
		}
	}
}

func TestLogQueries(t *testing.T) {
	if _, err := logQueries(nil); err == nil {
		t.Error("no needles are enough")
	}
	list, err := logQueries([]lines.Needle{{Text: "rare", Lines: 9, Apps: []string{"a"}}, {Text: "q[0-9]", Regex: true}, {Text: "gone"}})
	if err != nil || len(list) != 9 {
		t.Fatal(list, err)
	}
	from := time.Unix(1, 0)
	loki, victoria := list[3].path(system.Loki, from, from, 0), list[3].path(system.VictoriaLogs, from, from, 0)
	if !strings.Contains(loki, "direction=backward") || !strings.HasPrefix(victoria, "/select/logsql/query?") || strings.Contains(victoria, "%7C") {
		t.Error(loki, victoria)
	}
	if path := list[5].path(system.Loki, from, from, 0); !strings.Contains(path, "%229e3779b97f4a7c15%22") || path == list[5].path(system.Loki, from, from, 1) {
		t.Error(path)
	}
	var rec result.Record
	noteAnswer(&rec, system.Shale, []byte(`{"data":{"result":[{"values":[["1","a"],["2","b"]]},{"values":[["3","c"]]}],"stats":{"summary":{"totalBytesProcessed":7},
		"querier":{"store":{"totalChunksDownloaded":2}},"index":{"totalChunks":9,"postFilterChunks":4}}}}`))
	if v := rec.Values; v["result-lines"] != 3 || v["scanned-B"] != 7 || v["pages-read"] != 2 || v["pages-skipped"] != 5 {
		t.Error(v)
	}
	noteAnswer(&rec, system.VictoriaLogs, []byte("{}\n{}\n"))
	if rec.Values["result-lines"] != 2 {
		t.Error(rec.Values)
	}
	rec.Load, rec.System = logQueryLoad("x"), thisTree
	if text := logQueryReport([]result.Record{rec}); !strings.Contains(text, "| x | shale | 2 |") {
		t.Error(text)
	}
	q := labelQueries()[3]
	if path := q.path(system.Loki, from, from); !strings.HasPrefix(path, "/loki/api/v1/series?") || !strings.Contains(path, "match") {
		t.Error(path)
	}
	rec.Load = labelLoad("logs-streams-1m", "names of labels, 7 d")
	if text := logLabelReport("logs-streams-1m")([]result.Record{rec}); !strings.Contains(text, "| names of labels, 7 d | shale |") {
		t.Error(text)
	}
}

func TestCountQueries(t *testing.T) {
	if _, err := countQueries(nil); err == nil {
		t.Error("no needles are enough")
	}
	list, err := countQueries([]lines.Needle{{Text: "rare", Lines: 9}})
	if err != nil || len(list) != 6 {
		t.Fatal(list, err)
	}
	from := time.Unix(1_700_000_000, 0)
	loki, victoria := list[0].path(system.Loki, from, from.Add(time.Hour)), list[0].path(system.VictoriaLogs, from, from.Add(time.Hour))
	if !strings.Contains(loki, "start=1700000060000000000") || !strings.Contains(loki, "end=1700003600000000000") || !strings.Contains(loki, "step=60s") {
		t.Error(loki)
	}
	if !strings.HasPrefix(victoria, "/select/logsql/stats_query_range?") || !strings.Contains(victoria, "start=1700000000000000000") || !strings.Contains(victoria, "end=1700003599999999999") {
		t.Error(victoria)
	}
	var rec result.Record
	noteCounts(&rec, system.Shale, []byte(`{"data":{"stats":{"summary":{"totalLinesProcessed":7,"totalBytesProcessed":70},"querier":{"store":{"totalChunksDownloaded":2}}}}}`))
	if v := rec.Values; v["scanned-lines"] != 7 || v["scanned-B"] != 70 || v["pages-read"] != 2 {
		t.Error(v)
	}
	rec.Load, rec.System = countLoad("logs-metrics", "bytes by app"), thisTree
	if text := logCountReport("logs-metrics")([]result.Record{rec}); !strings.Contains(text, "| bytes by app | shale |") {
		t.Error(text)
	}
	rec.Load = drilldownLoad("stats, 7 d")
	if text := drilldownReport([]result.Record{rec}); !strings.Contains(text, "| stats, 7 d | shale |") {
		t.Error(text)
	}
	if path := drilldownRequests()[3].target(from, from.Add(time.Hour)); !strings.HasPrefix(path, "/loki/api/v1/index/volume_range?") || !strings.Contains(path, "step=36s") {
		t.Error(path)
	}
}

// TestAgreement: the first result counts, whichever system gave it, and all others must be equal to it.
func TestAgreement(t *testing.T) {
	read := func(series string) matrix {
		t.Helper()
		m, err := readMatrix([]byte(`{"data":{"resultType":"matrix","result":[` + series + `]}}`))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	const a, b = `{"metric":{"level":"a","__name__":"n"},"values":[[60,"1"],[120,"2"]]}`, `{"metric":{"level":"b"},"values":[[60,"3"]]}`
	for _, c := range []struct {
		first, second string
		tolerance     float64
		want          string
	}{
		{a + "," + b, b + "," + a, 0, ""},
		{a, a + "," + b, 0, `1 of 3 values differ; {level="b"} at 1970-01-01T00:01:00Z: 3 instead of nothing`},
		{a + "," + b, a, 0, "nothing instead of 3"},
		{`{"values":[[60,"100"]]}`, `{"values":[[60,"101"]]}`, 0.02, ""},
		{`{"values":[[60,"100"]]}`, `{"values":[[60,"103"]]}`, 0.02, "103 instead of 100"},
		{`{"values":[[60,"1"]]}`, `{"values":[[60,"NaN"]]}`, 0.02, "NaN instead of 1"},
		{`{"values":[[60,"1"]]}`, `{"values":[[60.5,"1"]]}`, 0, "2 of 1 values differ"},
		{"", "", 0, "the result is empty"},
	} {
		g := agreement{}
		err := g.with("q", "one", read(c.first), 0)
		if err == nil {
			err = g.with("q", "two", read(c.second), c.tolerance)
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %s: %v, want %q", c.first, c.second, err, c.want)
		}
	}
	if begin := (&agreement{}).start(); time.Since(begin) < logsSpan+logsAgo || begin.Unix()%600 != 0 {
		t.Error(begin)
	}
	m := read(`{"metric":{"path":"x"},"values":[[60,"1"],[120,"5"]]},{"metric":{"path":"y"},"values":[[60,"2"]]}`)
	m.shift(time.Minute)
	if got := m.ranks(); len(got) != 2 || got["rank 1"][120_000] != 2 || got["rank 2"][120_000] != 1 || got["rank 1"][180_000] != 5 {
		t.Error(got)
	}
	for _, bad := range []string{"soup", `{"data":{"resultType":"vector","result":[]}}`, `{"data":{"resultType":"matrix","result":[{"values":[[1,2]]}]}}`,
		`{"data":{"resultType":"matrix","result":[{"values":[]},{"values":[]}]}}`} {
		if m, err := readMatrix([]byte(bad)); err == nil {
			t.Errorf("%s: %v", bad, m)
		}
	}
}

func TestMemoryFigures(t *testing.T) {
	tr := &trial{sys: system.System{Kind: system.Shale}, rec: &result.Record{
		Marks:  map[string]float64{"all known": 10, "relabelling": 30},
		Curves: map[string][]proc.Point{"rss-B": {{0, 9}, {20, 5}, {25, 6}, {35, 12}, {60, 7}, {65, 8}, {69, 8}}},
	}}
	storm10M.note(tr)
	if v := tr.rec.Values; v["before-rss-B"] != 6 || v["peak-B"] != 12 || v["rss-B"] != 8 {
		t.Error(v)
	}
}
