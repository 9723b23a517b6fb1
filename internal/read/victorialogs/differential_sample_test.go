package victorialogs_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql/logqltest"
	"github.com/shaledb/shale/internal/read/victorialogs"
	"github.com/shaledb/shale/internal/read/victorialogs/draw"
	"github.com/shaledb/shale/internal/read/victorialogs/victorialogstest"
)

// TestDifferentialSamples asks a real VictoriaLogs for samples. In a day there are 40,000 lines that differ,
// 100 streams with the same line at one time in each half hour, and 500 equal lines of one stream in each.
func TestDifferentialSamples(t *testing.T) {
	if *realServer == "" {
		t.Skip("needs a running VictoriaLogs: -victorialogs URL")
	}
	account := fmt.Sprint(uint32(time.Now().Unix()), ":", 999)
	const begin, half, halves = 1_700_000_000, 1800, 48
	first := int64(begin/half*half) * 1e9
	rng := rand.New(rand.NewPCG(*seed, 1))
	var b strings.Builder
	line := func(at int64, app string, pod int, text string) {
		fmt.Fprintf(&b, `{"_time":"%d","app":%q,"pod":"p%d","_msg":%q,"level":"info"}`+"\n", at, app, pod, text)
	}
	for i := range 40_000 {
		line(first+rng.Int64N(halves*half*1e9), "differ", i%20, fmt.Sprint("request ", i))
	}
	for h := range int64(halves) {
		for i := range 500 {
			line(first+h*half*1e9, "pods", i%100, "GET /healthz 200")
			line(first+h*half*1e9, "equal", 0, "all of it again")
		}
	}
	code, body := victorialogstest.Post(t, *realServer+"/insert/jsonline?_stream_fields=app,pod", account, "application/stream+json", []byte(b.String()))
	if code != 200 {
		t.Fatalf("%d: %s", code, body)
	}
	code, body = victorialogstest.Post(t, *realServer+"/select/logsql/query", account, "application/x-www-form-urlencoded", []byte(url.Values{"query": {draw.Probe}}.Encode()))
	if code != 200 || len(body) > 0 {
		t.Errorf("the probe gets %d: %s", code, body)
	}
	time.Sleep(3 * time.Second)
	from := source(t, *realServer, account, 0, 0)
	for app, want := range map[string]int{"differ": 40_000, "pods": halves * 500, "equal": halves * 500} {
		for _, plain := range []bool{true, false} {
			all, rows, windows := sampleOf(t, from, app, plain, model.TimeRange{Min: first, Max: first + halves*half*1e9 - 1})
			if n := len(windows); n != halves || rows > 6000 {
				t.Errorf("%s, plain: %v: a sample of %d lines in %d windows", app, plain, rows, n)
			}
			copies := app != "differ" && !plain // which do not count then
			if math.Abs(all-float64(want)) > 1e-6*float64(want) && !copies {
				t.Errorf("%s, plain: %v: %.1f lines, want %d", app, plain, all, want)
			}
			t.Logf("%s, plain: %v: %d lines of %d windows stand for %.1f", app, plain, rows, len(windows), all)
		}
	}
}

// sampleOf returns how many lines a sample stands for, its lines, and the windows that have some.
func sampleOf(t *testing.T, from *victorialogs.Source, app string, plain bool, r model.TimeRange) (all float64, rows int, windows map[int64]bool) {
	t.Helper()
	req := &model.Request{
		Tenant: logqltest.Tenant, Signal: model.Logs, Family: model.Text, Range: r, Sample: &model.TextSample{Lines: 4096, Plain: plain},
		Matchers: []model.Matcher{{Name: "app", Value: app, Match: func(v string) bool { return v == app }}},
		Quota:    &model.Quota{Pool: &model.QueryPool{MaxBytes: math.MaxInt64}}, Cost: new(model.Cost),
	}
	cursors, err := from.SelectText(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	windows = map[int64]bool{}
	for _, c := range cursors {
		for c.Next(context.Background()) {
			chunks, err := c.Chunks(context.Background(), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range chunks {
				all, rows = all+x.StandsFor*float64(x.Rows), rows+x.Rows
				windows[x.Min/(1800*1e9)] = true
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	return all, rows, windows
}
