package oracle

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/api"
	graphiteapi "github.com/shaledb/shale/internal/api/graphite"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/graphite"
	"github.com/shaledb/shale/internal/read/graphite/graphitetest"
	"github.com/shaledb/shale/internal/read/graphite/names"
)

var (
	carbonapi = flag.String("carbonapi", "", "address of a running carbonapi, whose backend (protocol msgpack) is the address of -carbonapi-backend")
	backend   = flag.String("carbonapi-backend", "127.0.0.1:18480", "address at which the test serves series to that carbonapi")
)

// carbonapiCalls are calls of the functions that graphite-web does not have. The baselines are not among
// them: carbonapi does not fetch the windows that they need. # is a path of several series, and 1 and 2 in
// angle brackets are single ones.
var carbonapiCalls = []string{
	"ewma(#,0.1)", "ewma(#,0.5)", "exponentialWeightedMovingAverage(#,0.7)", "highestMin(#,9)", "lowestMin(#,9)", "lowestMax(#,9)",
	"removeZeroSeries(#)", "removeZeroSeries(#,0.8)", "integralWithReset(#,<1>)", "powSeriesLists(<1>,<2>)",
	"slo(#,'10min','above',20)", "slo(#,'5min','belowOrEqual',0)", "slo(#,'2h','aboveOrEqual',1.5)", "sloErrorBudget(#,'10min','below',40,0.9)",
	"sloErrorBudget(#,'3h','above',2,0.99)",
	"tukeyAbove(#,1,9)", "tukeyBelow(#,0.5,9)", "tukeyAbove(#,0.2,9,10)",
	"tukeyBelow(#,0.2,9,'10min')", "tukeyAbove(#,0.2,9,-5)", "heatMap(#)", "polyfit(#)", "polyfit(#,3)", "polyfit(#,2,'10min')",
	"lowPass(#,40)", "lpf(#,5)", "fft(transformNull(#,0),'abs')", "fft(#,'phase')", "ifft(fft(transformNull(<1>,0),'abs'),fft(transformNull(<1>,0),'phase'))",
	"ifft(#)", "pearson(<1>,<2>,5)", "pearson(<1>,<2>,30)", "pearsonClosest(<1>,#,3)", "pearsonClosest(<1>,#,2,'pos')", "pearsonClosest(<1>,#,2,'neg')",
	"countValues(scale(#,0.02),300)", "countValues(scale(#,0.005),300)",
}

// finder finds the names of a world, for the patterns of this test.
type finder struct{ *graphitetest.World }

func (f finder) Find(_ context.Context, _ *names.Query, pattern string) (all []names.Match, err error) {
	for name := range f.Data.Series {
		if ok, err := path.Match(strings.ReplaceAll(pattern, ".", "/"), strings.ReplaceAll(name, ".", "/")); err != nil {
			return nil, err
		} else if ok {
			all = append(all, names.Match{Path: name, Leaf: true, Range: model.TimeRange{Max: math.MaxInt64}})
		}
	}
	slices.SortFunc(all, func(a, b names.Match) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

func (f finder) List(context.Context, *names.Query, func([]byte) error) error { return nil }

func (f finder) Search(context.Context, *names.Query, string, int) ([]names.Hit, error) {
	return nil, nil
}

// TestCarbonapi compares the functions that only carbonapi has with a running carbonapi, over random series
// that the test serves to it.
func TestCarbonapi(t *testing.T) {
	if *carbonapi == "" {
		t.Skip("no -carbonapi; internal/api/graphite compares with recorded responses")
	}
	var called []string
	for _, c := range carbonapiCalls {
		name, _, _ := strings.Cut(c, "(")
		called = append(called, name)
	}
	for _, f := range graphite.Table() {
		if f.Extra && !slices.Contains(called, f.Name) && !strings.HasPrefix(f.Name, "baseline") {
			t.Errorf("%s has no case", f.Name)
		}
	}
	var h http.Handler
	l, err := net.Listen("tcp", *backend)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, r) })}
	go server.Serve(l)
	defer server.Close()
	y := newTally()
	var records []graphitetest.Record
	paths := []string{"servers.*.cpu.idle", "servers.*.cpu.*", "a.b.*", "counter.*", "weights.*", "a.b.c", "nothing.*"}
	singles := []string{"servers.web1.cpu.idle", "a.b.c", "counter.x", "servers.db1.cpu.user", "counter.y", "weights.web2"}
	r := rand.New(rand.NewPCG(*seed, 7))
	w := graphitetest.NewWorld(*seed, 7, false)
	renders := serve(t, w)
	mux := http.NewServeMux()
	o := api.Options{Registerer: prometheus.NewRegistry(), Limits: api.Limits{MaxBytes: 1 << 30}}
	graphiteapi.New(graphiteapi.Options{Options: o, Names: finder{w}}).Routes(mux)
	h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/render") {
			renders.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
	for _, call := range carbonapiCalls {
		for range *each {
			target := strings.ReplaceAll(call, "#", paths[r.IntN(len(paths))])
			one := singles[r.IntN(len(singles))]
			target = strings.NewReplacer("<1>", one, "<2>", singles[r.IntN(len(singles))]).Replace(target)
			from := graphitetest.Base + int64(r.IntN(60))*60
			query := url.Values{
				"target": {target}, "from": {fmt.Sprint(from)}, "until": {fmt.Sprint(from + int64(20+r.IntN(60))*60)},
				"format": {"json"}, "noCache": {"1"},
			}.Encode()
			resp, err := http.Get("http://" + *carbonapi + "/render?" + query)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			theirs := graphitetest.ForCarbonapi(target, graphitetest.Answer{Status: resp.StatusCode, Body: string(body)})
			ours := graphitetest.ForCarbonapi(target, ask(h, query))
			v, diff := graphitetest.Compare(theirs, ours)
			y.add(target+" "+window(query), v, diff)
			records = append(records, graphitetest.Record{Query: query, Answer: theirs})
		}
	}
	y.report(t)
	if *record {
		if err := graphitetest.Save("../../internal/api/graphite/testdata/carbonapi.jsonl.gz", records); err != nil {
			t.Fatal(err)
		}
	}
}
