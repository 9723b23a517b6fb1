package oracle

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/api/graphite/graphitetest"
)

var (
	python  = flag.String("python", "", "interpreter of an environment with graphite-web 1.1.10")
	queries = flag.Int("queries", 20000, "random targets")
	each    = flag.Int("each", 10, "random calls of each function")
	seed    = flag.Uint64("seed", 1, "of the random targets")
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

func (w *web) ask(query string) graphitetest.Answer {
	w.send(map[string]string{"query": query})
	var a [2]any
	w.answer(&a)
	return graphitetest.Answer{Status: int(a[0].(float64)), Body: a[1].(string)}
}

// tally counts verdicts and gathers what differs.
type tally struct {
	count     map[graphitetest.Verdict]int
	different []string
	lenient   map[string]string // by the error of graphite-web
}

func newTally() *tally {
	return &tally{count: map[graphitetest.Verdict]int{}, lenient: map[string]string{}}
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
	t.Logf("same %d, both refuse %d, graphite-web fails and Shale answers %d, different %d", y.count[graphitetest.Same], y.count[graphitetest.BothFail],
		y.count[graphitetest.Lenient], y.count[graphitetest.Different])
	for i, diff := range slices.Sorted(keys(y.lenient)) {
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

func keys(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// worldEvery is after how many targets the data change.
const worldEvery = 400

func TestEachFunction(t *testing.T) {
	g, y := startWeb(t), newTally()
	r := rand.New(rand.NewPCG(*seed, 1))
	w := newWorld(r, false)
	h, err := graphitetest.Serve(&w.data)
	if err != nil {
		t.Fatal(err)
	}
	g.send(w.data)
	gen := newGenerator(r, w)
	for _, f := range gen.functions {
		for range *each {
			target := gen.call(f, 1)
			query := gen.query(target)
			v, diff := graphitetest.Compare(g.ask(query), graphitetest.Ask(h, query), false)
			y.add(target+" "+window(query), v, diff)
		}
	}
	y.report(t)
}

// window returns what a query has besides its target.
func window(query string) string {
	i := strings.Index(query, "target=")
	return strings.TrimSuffix(query[:i], "&")
}

func TestRandomTargets(t *testing.T) {
	g, y := startWeb(t), newTally()
	for n := 0; n < *queries; {
		r := rand.New(rand.NewPCG(*seed, uint64(n)))
		w := newWorld(r, n/worldEvery%5 == 4)
		h, err := graphitetest.Serve(&w.data)
		if err != nil {
			t.Fatal(err)
		}
		g.send(w.data)
		gen := newGenerator(r, w)
		for range min(worldEvery, *queries-n) {
			target := gen.series(1 + r.IntN(3))
			query := gen.query(target)
			v, diff := graphitetest.Compare(g.ask(query), graphitetest.Ask(h, query), w.mixed)
			y.add(fmt.Sprintf("%s %s", target, window(query)), v, diff)
			n++
		}
	}
	y.report(t)
}
