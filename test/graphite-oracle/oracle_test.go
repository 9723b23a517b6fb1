package oracle

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/api"
	graphiteapi "github.com/shaledb/shale/internal/api/graphite"
	"github.com/shaledb/shale/internal/read/graphite"
	"github.com/shaledb/shale/internal/read/graphite/graphitetest"
)

var (
	python  = flag.String("python", "", "interpreter of an environment with graphite-web 1.1.10")
	queries = flag.Int("queries", 20000, "random targets")
	each    = flag.Int("each", 10, "random calls of each function")
	seed    = flag.Uint64("seed", 1, "of the random targets")
	record  = flag.Bool("record", false, "rewrite the recorded responses of the written cases")
	only    = flag.String("only", "", "file of the only random targets to ask, as differences are printed")
	show    = flag.Int("show", 40, "differences to print")
)

// web is a running graphite-web.
type web struct {
	t   *testing.T
	in  *json.Encoder
	out *bufio.Reader
}

func startWeb(t *testing.T) *web {
	if *python == "" {
		t.Skip("no -python; internal/api/graphite compares with recorded responses")
	}
	dir, err := filepath.Abs("python")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), *python, "-W", "ignore", filepath.Join(dir, "oracle.py"))
	cmd.Env = append(os.Environ(), "PYTHONPATH="+dir, "PYTHONDONTWRITEBYTECODE=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	return &web{t, json.NewEncoder(in), bufio.NewReaderSize(out, 1<<20)}
}

func (w *web) send(v any) {
	if err := w.in.Encode(v); err != nil {
		w.t.Fatal(err)
	}
}

func (w *web) answer(v any) {
	line, err := w.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, v)
	}
	if err != nil {
		w.t.Fatalf("graphite-web: %v: %.300s", err, line)
	}
}

// ask sends a query to graphite-web, with some of the deviations of python/deviations.py.
func (w *web) ask(query string, deviations ...string) graphitetest.Answer {
	w.send(map[string]any{"query": query, "deviations": deviations})
	var a [2]any
	w.answer(&a)
	return graphitetest.Answer{Status: int(a[0].(float64)), Body: a[1].(string)}
}

// serve returns the API over a world.
func serve(t *testing.T, w *graphitetest.World) http.Handler {
	engine, err := graphitetest.Engine(&w.Data)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	o := api.Options{Registerer: prometheus.NewRegistry(), Limits: api.Limits{MaxBytes: 1 << 30}}
	graphiteapi.New(graphiteapi.Options{Options: o, Functions: graphiteapi.Described(graphite.Table()), Render: engine}).Routes(mux)
	return mux
}

func ask(h http.Handler, query string) graphitetest.Answer {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/render?"+query, nil))
	return graphitetest.Answer{Status: w.Code, Body: w.Body.String()}
}

// tally counts verdicts and gathers what differs.
type tally struct {
	count      map[graphitetest.Verdict]int
	deviations map[string]int
	different  []string
	lenient    map[string]string // by the error of graphite-web
}

func newTally() *tally {
	return &tally{count: map[graphitetest.Verdict]int{}, deviations: map[string]int{}, lenient: map[string]string{}}
}

// deviations are the deliberate ones that are made to graphite-web itself, so that Shale's response can be
// compared with what graphite-web would return. Where several of them meet, the last ones hold.
var deviations = [][]string{{"parse"}, {"pipes"}, {"steps"}, {"pipes", "steps"}, {"parse", "pipes"}, {"parse", "pipes", "steps"}}

// compare asks graphite-web and Shale, and notes how their responses compare. Responses that are different
// count as a deviation only if they are the same once that deviation is made to graphite-web. It returns the
// response that Shale must give.
func (y *tally) compare(g *web, h http.Handler, target, query string) graphitetest.Answer {
	theirs, ours := g.ask(query), ask(h, query)
	v, diff := graphitetest.Compare(theirs, ours)
	if v != graphitetest.Different {
		y.add(target, v, diff)
		return theirs
	}
	if graphitetest.SameNumbers(theirs, ours) {
		y.deviations["digits"]++
		return theirs
	}
	for _, made := range deviations {
		changed := g.ask(query, made...)
		v, next := graphitetest.Compare(changed, ours)
		name := strings.Join(made, "+")
		switch {
		case v == graphitetest.Same || v == graphitetest.BothFail:
			y.deviations[name]++
			return changed
		case v == graphitetest.Lenient && strings.HasPrefix(next, "graphite-web: 599 TypeError"):
			y.deviations[name+"+fails on gaps"]++
			return changed
		case graphitetest.SameNumbers(changed, ours):
			y.deviations[name+"+digits"]++
			return changed
		}
		if next != diff {
			diff += "\n\twith " + name + ": " + next
		}
	}
	y.add(target, graphitetest.Different, diff)
	return theirs
}

func (y *tally) add(target string, v graphitetest.Verdict, diff string) {
	y.count[v]++
	switch v {
	case graphitetest.Different:
		y.different = append(y.different, target+"\n\t"+diff)
	case graphitetest.Lenient:
		y.lenient[diff] = target
	}
}

func (y *tally) report(t *testing.T) {
	t.Log(y)
	for i, diff := range slices.Sorted(maps.Keys(y.lenient)) {
		if i < *show {
			t.Logf("lenient: %s\n\t%s", y.lenient[diff], diff)
		}
	}
	for i, d := range y.different {
		if i < *show {
			t.Error(d)
		}
	}
	if len(y.different) > *show {
		t.Errorf("%d more differences", len(y.different)-*show)
	}
}

func (y *tally) String() string {
	text := fmt.Sprintf("same %d, both refuse %d, graphite-web fails and Shale answers %d, different %d, documented deviations:", y.count[graphitetest.Same],
		y.count[graphitetest.BothFail], y.count[graphitetest.Lenient], y.count[graphitetest.Different])
	for _, name := range slices.Sorted(maps.Keys(y.deviations)) {
		text += fmt.Sprintf(" %s %d", name, y.deviations[name])
	}
	return text
}

// worldEvery is after how many targets the data change.
const worldEvery = 100

func TestEachFunction(t *testing.T) {
	g, y := startWeb(t), newTally()
	r := rand.New(rand.NewPCG(*seed, 1))
	w := graphitetest.NewWorld(*seed, 0, false)
	h := serve(t, w)
	g.send(w.Data)
	gen := newGenerator(r, w)
	for _, f := range gen.functions {
		for range *each {
			target := gen.call(f, 1)
			query := gen.query(target)
			y.compare(g, h, target+" "+window(query), query)
		}
	}
	y.report(t)
}

// lists are those that @ stands for in the cases.
var lists = []string{
	"a.b.c", "servers.*.cpu.idle", "empty.one", "counter.*", "größe.мера.*", `seriesByTag("dc=eu")`, "nothing.*", "scale(a.b.*,2)",
	"sumSeries(servers.*.cpu.*)", "group(weights.web1,empty.two)",
}

// cases returns the calls of the written cases, by function.
func cases(t *testing.T) (names []string, calls map[string][]string) {
	text, err := os.ReadFile("cases.txt")
	if err != nil {
		t.Fatal(err)
	}
	calls = map[string][]string{}
	for line := range strings.SplitSeq(string(text), "\n") {
		name, rest, ok := strings.Cut(line, ": ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		names = append(names, name)
		next := 0
		for args := range strings.SplitSeq(rest, " ;; ") {
			args = strings.TrimSpace(args)
			if args == "@@" {
				for _, l := range lists {
					calls[name] = append(calls[name], name+"("+l+")")
				}
				continue
			}
			for strings.Contains(args, "@") {
				args = strings.Replace(args, "@", lists[next%len(lists)], 1)
				next++
			}
			if args != "" {
				calls[name] = append(calls[name], name+"("+args+")")
			}
		}
	}
	return names, calls
}

// TestWrittenCases asks for each function the cases in cases.txt, of which there are at least ten.
func TestWrittenCases(t *testing.T) {
	g, y := startWeb(t), newTally()
	w := graphitetest.NewWorld(*seed, 1, false)
	h := serve(t, w)
	g.send(w.Data)
	var records []graphitetest.Record
	names, calls := cases(t)
	for _, name := range names {
		for i, target := range calls[name] {
			query := url.Values{
				"target": {target}, "from": {fmt.Sprint(graphitetest.Base + 600)}, "until": {fmt.Sprint(graphitetest.Base + 2400)},
				"now": {fmt.Sprint(graphitetest.Base + 3*3600)}, "format": {"json"},
			}
			if i%5 == 4 {
				query.Set("maxDataPoints", "7")
			}
			theirs := y.compare(g, h, target, query.Encode())
			records = append(records, graphitetest.Record{Query: query.Encode(), Answer: theirs})
		}
	}
	y.report(t)
	if *record {
		if err := graphitetest.Save("../../internal/api/graphite/testdata/render.jsonl.gz", records); err != nil {
			t.Fatal(err)
		}
	}
}

// window returns what a query has besides its target.
func window(query string) string {
	i := strings.Index(query, "target=")
	return strings.TrimSuffix(query[:i], "&")
}

func TestRandomTargets(t *testing.T) {
	g, y := startWeb(t), newTally()
	var chosen map[string]bool
	if *only != "" {
		text, err := os.ReadFile(*only)
		if err != nil {
			t.Fatal(err)
		}
		chosen = map[string]bool{}
		for line := range strings.SplitSeq(string(text), "\n") {
			chosen[line] = true
		}
	}
	for n := 0; n < *queries; {
		r := rand.New(rand.NewPCG(*seed, uint64(n)))
		w := graphitetest.NewWorld(*seed, uint64(n), n/worldEvery%5 == 4)
		h := serve(t, w)
		g.send(w.Data)
		gen := newGenerator(r, w)
		for range min(worldEvery, *queries-n) {
			target := gen.series(1 + r.IntN(3))
			query := gen.query(target)
			known := len(y.different)
			if shown := target + " " + window(query); chosen == nil || chosen[shown] {
				y.compare(g, h, shown, query)
			}
			for _, d := range y.different[known:] {
				t.Log("different: " + d)
			}
			n++
		}
		t.Logf("up to %d: %v", n, y)
	}
	y.report(t)
}

// TestFunctions compares the table of functions, without its help texts and the Python signatures.
func TestFunctions(t *testing.T) {
	g := startWeb(t)
	h := serve(t, graphitetest.NewWorld(*seed, 1, false))
	g.send(map[string]bool{"functions": true})
	var theirs map[string][]map[string]any
	g.answer(&theirs)
	for kind, path := range map[string]string{"series": "/functions", "pie": "/functions?type=pie"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		var ours map[string]map[string]any
		text := strings.NewReplacer("1e9999", "null").Replace(w.Body.String())
		if err := json.Unmarshal([]byte(text), &ours); err != nil {
			t.Fatal(err)
		}
		for _, want := range theirs[kind] {
			got := ours[want["name"].(string)]
			if got == nil {
				t.Errorf("%s is missing", want["name"])
				continue
			}
			for _, member := range []string{"group", "params"} {
				a, _ := json.Marshal(want[member])
				b, _ := json.Marshal(got[member])
				if string(a) != string(b) {
					t.Errorf("%s: %s\n\t%s\n\twant %s", want["name"], member, b, a)
				}
			}
		}
		t.Logf("%s: %d functions, graphite-web has %d", kind, len(ours), len(theirs[kind]))
	}
}
