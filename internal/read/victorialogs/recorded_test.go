package victorialogs_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/read/logql/logqltest"
	"github.com/shaledb/shale/internal/read/victorialogs"
	"github.com/shaledb/shale/internal/read/victorialogs/victorialogstest"
)

var recordAs = flag.String("record", "", "version of the server at -victorialogs, such as 1.52, whose responses are recorded in testdata")

// exchange is a request and what a real server answered.
type exchange struct{ Account, Query, Body string }

func recordedData() []*logqltest.Dataset {
	all := logqltest.Datasets(4, 24, 11)
	for i := range all {
		all[i] = victorialogstest.AsStored(all[i])
	}
	return all
}

func recordedQueries(d *logqltest.Dataset) []logqltest.Query {
	g := logqltest.Generator{R: rand.New(rand.NewPCG(5, uint64(len(d.Name))))}
	all := append(logqltest.Written(d)[:24], groupQueries()...)
	for range 30 {
		all = append(all, g.Query(d))
	}
	for _, text := range []string{`{app=~".+"}`, `{app=~"web|db", pod!~"p[12]"} |= "e"`, `{env!="prod", app!=""} | trace_id="t1"`} {
		for _, forward := range []bool{true, false} {
			all = append(all, logqltest.Query{Text: text, Start: logqltest.Begin - 1, End: logqltest.Begin + 2*logqltest.Span, Limit: 7, Forward: forward})
		}
	}
	return all
}

// groupQueries are queries whose streams may be counted together.
func groupQueries() (all []logqltest.Query) {
	for _, text := range []string{
		`sum(count_over_time({app=~".+"}[1m]))`, `sum by (app) (rate({app=~".+"}[2m]))`, `sum by (app, env) (count_over_time({env=~".+"}[1m]))`,
		`sum by (pod) (count_over_time({app="web"}[1m]))`, `sum by (env) (bytes_over_time({app!=""}[1m]))`, `sum by (service_name) (rate({app=~".+"}[1m]))`,
		`sum by (app) (count_over_time({app=~"web|db", pod!~"p[12]"}[30s]))`, `sum by (none) (count_over_time({app=~".+"}[1m]))`,
		`sum by (app) (count_over_time({app=~".+"} | json [1m])) / on (app) sum by (app) (bytes_rate({app=~".+"}[1m]))`, `absent_over_time({app="none"}[1m])`,
	} {
		all = append(all, logqltest.Query{Text: text, Start: logqltest.Begin, End: logqltest.Begin + logqltest.Span, Step: 30_000_000_000})
	}
	return all
}

// TestRecorded runs queries over recorded responses of real servers, and over Shale's own sources with the
// same lines.
func TestRecorded(t *testing.T) {
	if *recordAs != "" {
		record(t)
	}
	files, err := filepath.Glob("testdata/recorded-*.json.gz")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			known := map[exchange]string{}
			for _, x := range load(t, file) {
				known[exchange{Account: x.Account, Query: x.Query}] = x.Body
			}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				at := exchange{Account: r.Header.Get("AccountID") + ":" + r.Header.Get("ProjectID"), Query: r.FormValue("query")}
				body, ok := known[at]
				if !ok {
					body, ok = packed(known, at)
				}
				if !ok {
					http.Error(w, "not recorded: "+at.Account+" "+at.Query, http.StatusNotFound)
					return
				}
				io.WriteString(w, body)
			}))
			defer server.Close()
			some, grouped := 0, 0
			for i, d := range recordedData() {
				from := source(t, server.URL, fmt.Sprint("7:", i), i, 0)
				if strings.Contains(file, "1.26") { // it was recorded so, and cannot be had any more
					victorialogs.CountingAll(from)
				}
				theirs, ours := logqltest.Over(from), logqltest.InMemory(d)
				for _, q := range recordedQueries(d) {
					want := logqltest.Run(context.Background(), ours, logqltest.Tenant, &q)
					got := logqltest.Run(context.Background(), theirs, logqltest.Tenant, &q)
					if diff := logqltest.Diff(want, got, strings.Contains(q.Text, "sort")); diff != "" {
						t.Errorf("%s: %s\n%s", d.Name, q.String(), diff)
					}
					if !want.Empty() && want.Error == "" {
						some++
					}
				}
				grouped += victorialogs.Grouped(from)
			}
			if grouped < 10 {
				t.Errorf("only %d queries count groups of streams", grouped)
			}
			if some < 100 {
				t.Errorf("only %d queries have a result", some)
			}
		})
	}
}

// packed packs the rows of a response that was recorded before rows were packed.
func packed(known map[exchange]string, at exchange) (string, bool) {
	text, fields, _ := strings.Cut(at.Query, " | format \"<")
	fields, by, ok := strings.Cut(fields, ">\"")
	at.Query = text
	body, has := known[at]
	if !ok || !has {
		return "", false
	}
	rows, all := map[string]map[string]string{}, map[string][]string{}
	for line := range strings.Lines(body) {
		row := map[string]string{}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			return "", false
		}
		var cell []string
		for _, name := range strings.Split(fields, "> <") {
			cell = append(cell, row[name])
			delete(row, name)
		}
		for name := range row { // others are sums that grouping has made of
			if !strings.Contains(by, name) {
				delete(row, name)
			}
		}
		key := fmt.Sprint(row)
		rows[key], all[key] = row, append(all[key], strings.Join(cell, " "))
	}
	var b strings.Builder
	for key, row := range rows {
		cells, _ := json.Marshal(all[key])
		row["cells"] = string(cells)
		line, _ := json.Marshal(row)
		b.Write(append(line, '\n'))
	}
	return b.String(), true
}

func load(t *testing.T, file string) (all []exchange) {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err == nil {
		err = json.NewDecoder(z).Decode(&all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// record runs the queries against the real server and writes down what it answered.
func record(t *testing.T) {
	var mu sync.Mutex
	var all []exchange
	seen := map[exchange]bool{}
	account := uint32(time.Now().Unix())
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		query := r.FormValue("query")
		project := r.Header.Get("ProjectID")
		code, body := victorialogstest.Post(t, *realServer+r.URL.Path, fmt.Sprint(account, ":", project), "application/x-www-form-urlencoded", []byte(url.Values{"query": {query}}.Encode()))
		if at := (exchange{Account: "7:" + project, Query: query}); code == http.StatusOK && !seen[at] {
			seen[at] = true
			at.Body = string(body)
			all = append(all, at)
		}
		w.WriteHeader(code)
		w.Write(body)
	}))
	defer proxy.Close()
	for i, d := range recordedData() {
		victorialogstest.Push(t, *realServer, fmt.Sprint(account, ":", i), d)
		e := logqltest.Over(source(t, proxy.URL, fmt.Sprint("7:", i), i, 0))
		for _, q := range recordedQueries(d) {
			logqltest.Run(context.Background(), e, logqltest.Tenant, &q)
		}
	}
	f, err := os.Create(filepath.Join("testdata", "recorded-"+*recordAs+".json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	z, _ := gzip.NewWriterLevel(f, gzip.BestCompression)
	err = json.NewEncoder(z).Encode(all)
	for _, end := range []func() error{z.Close, f.Close} {
		if e := end(); err == nil {
			err = e
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}
