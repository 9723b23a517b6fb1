package victorialogs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/victorialogs/breaker"
	"github.com/shaledb/shale/internal/read/victorialogs/watch"
)

// TestCountsApart: counts that fail are sent once, open no breaker and take no repetition from queries. While
// queries are refused, nothing is counted.
func TestCountsApart(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) { http.Error(rw, "down", http.StatusInternalServerError) })
	count := func() error {
		return w.client.countLines(context.Background(), Account{}, model.TimeRange{Max: watch.Window - 1}, false, func(_, _ int64, _ float64) {})
	}
	for range 2 * breaker.Failures {
		if err := count(); !errors.Is(err, model.ErrTransient) {
			t.Fatal(err)
		}
	}
	if n := w.asked.Load(); n != 2*breaker.Failures || w.client.breaker.Open() {
		t.Errorf("%d requests, open: %v", n, w.client.breaker.Open())
	}
	for range breaker.AtOnce {
		if !w.client.budget.Spend() {
			t.Fatal("counts have taken a repetition")
		}
	}
	for range breaker.AtOnce * 10 {
		w.client.budget.Earn()
	}
	for range breaker.Failures {
		_, _ = w.lines(context.Background(), request()) // it fails
	}
	n := w.asked.Load()
	if err := count(); !errors.Is(err, model.ErrTransient) || w.asked.Load() != n {
		t.Errorf("%v, after %d requests", err, w.asked.Load()-n)
	}
	if testutil.ToFloat64(w.metrics.requests.WithLabelValues(kindCounts, "refused")) != 1 {
		t.Error("the refusal is not counted")
	}
}

// TestCountsBesideQueries: a count does not wait for the connections of queries.
func TestCountsBesideQueries(t *testing.T) {
	release, busy := make(chan struct{}), make(chan struct{}, 4)
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.FormValue("query") == "*" {
			busy <- struct{}{}
			<-release
		}
	})
	done := make(chan error)
	for range 4 { // as many as there may be
		go func() {
			done <- w.client.query(context.Background(), access{}, kindLines, "*", func([]field) error { return nil })
		}()
	}
	for range 4 {
		<-busy
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := w.client.countLines(ctx, Account{}, model.TimeRange{Max: watch.Window - 1}, false, func(_, _ int64, _ float64) {})
	close(release)
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if err != nil {
		t.Error(err)
	}
}

// TestCountLines: what is asked for, and what is taken for a count.
func TestCountLines(t *testing.T) {
	asked, account, serve := "", "", ""
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		asked, account = r.FormValue("query"), r.Header.Get("AccountID")+":"+r.Header.Get("ProjectID")
		io.WriteString(rw, serve)
	})
	const first = int64(1e18) / watch.Window
	for _, test := range []struct {
		rows string
		sums bool
		want string // "": an error
	}{
		{`{"_time":"2001-09-09T01:45:00Z","n":"2"}`, false, "0:2,0 "},
		{`{"_time":"2001-09-09T01:45:00Z","n":"2"}` + "\n" + `{"_time":"2001-09-09T01:55:00Z","n":"1"}`, false, "0:2,0 2:1,0 "},
		{`{"_time":"2001-09-09T01:45:00Z","n":"2","x":"123456789012"}`, true, "0:2,123456789012 "},
		{`{"_time":"2001-09-09T01:45:00Z","n":"2","x":"1.23456789012e+11"}`, true, "0:2,123456789012 "},
		{"", true, "none"},
		{`{"_time":"2001-09-09T01:45:00Z","n":"2"}`, true, ""},
		{`{"_time":"2001-09-09T01:45:01Z","n":"2"}`, false, ""},
		{`{"_time":"yesterday","n":"2"}`, false, ""},
		{`{"_time":"2001-09-09T01:45:00Z","n":"2.5"}`, false, ""},
		{`{"n":"2"}`, false, ""},
	} {
		serve = test.rows + "\n"
		if test.rows == "" {
			serve = ""
		}
		got := ""
		err := w.client.countLines(context.Background(), Account{ID: 2, Project: 3}, model.TimeRange{Min: first * watch.Window, Max: (first+3)*watch.Window - 1}, test.sums, func(at, lines int64, sum float64) {
			got += fmt.Sprintf("%d:%d,%.0f ", at-first, lines, sum)
		})
		if test.want == "none" && got == "" {
			got = "none"
		}
		if test.want == "" && !errors.Is(err, model.ErrCorrupt) || test.want != "" && (err != nil || got != test.want) {
			t.Errorf("%s: %s, %v, want %s", test.rows, got, err, test.want)
		}
		want := `_time:[2001-09-09T01:45:00.000000000Z,2001-09-09T01:59:59.999999999Z] | `
		if test.sums {
			want += "hash(_msg) h | hash(_stream_id) s | hash(_time) t | math (((h % 1000003) * 31 + (s % 1000003) * 17) * (t % 1000003 + 1)) % 4194301 as x | stats by (_time:5m) count() n, sum(x) x"
		} else {
			want += "stats by (_time:5m) count() n"
		}
		if asked != want || account != "2:3" {
			t.Errorf("account %s is asked for %s\nwant %s", account, asked, want)
		}
	}
}

// TestCheck: a source counts the lines of the accounts of tenants, each once, says until when that holds, and
// tells all tenants of an account what has changed.
func TestCheck(t *testing.T) {
	var now atomic.Int64
	var mu sync.Mutex
	asked, changed := map[string]int{}, map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked[r.Header.Get("AccountID")]++
	}))
	defer server.Close()
	o := Options{Settings: Settings{Source: At(server.URL), Requests: 1, CheckEvery: 10 * time.Second}, ClosedAfter: 2 * time.Minute, Now: now.Load, Registerer: prometheus.NewRegistry()}
	o.Changed = func(tenant string, _ model.TimeRange) {
		mu.Lock()
		defer mu.Unlock()
		changed[tenant] = true
	}
	if err := o.Settings.Accounts.UnmarshalText([]byte("a=1,b=1,c=2,d=3")); err != nil {
		t.Fatal(err)
	}
	s := New(o)
	defer s.Close()
	first := int64(1e18) / watch.Window
	now.Store((first + 20) * watch.Window)
	r := model.TimeRange{Min: first * watch.Window, Max: (first+10)*watch.Window - 1}
	tenants := []string{"a", "b", "stranger", "c"}
	check := func(want bool) {
		t.Helper()
		until, ok := s.Check(context.Background(), tenants, r)
		if ok != want || ok && until != (first+19)*watch.Window-1 {
			t.Errorf("until %d, %v, want %v", until-first*watch.Window, ok, want)
		}
		s.watch.Wait()
		now.Add(int64(10 * time.Second))
	}
	kept := func(tenant string, want bool) {
		t.Helper()
		req := request()
		req.Tenant, req.Range = tenant, r
		s.Kept(req)
		of, ok := req.Cost.Reach.Further()
		if ok != want || ok && of != r || !ok && tenant != "stranger" && req.Cost.Reach.Until() != noTime {
			t.Errorf("tenant %s: %v, %v, want %v", tenant, of, ok, want)
		}
		s.watch.Wait()
	}
	if until, ok := s.Check(context.Background(), []string{"stranger"}, r); !ok || until != math.MaxInt64 {
		t.Errorf("without an account: %d, %v", until, ok)
	}
	check(false)
	check(true)
	kept("a", true)
	kept("c", true)
	kept("d", false)
	kept("stranger", false)
	mu.Lock()
	defer mu.Unlock()
	if got, want := fmt.Sprint(asked, changed), "map[1:2 2:2 3:1] map[a:true b:true c:true d:true]"; got != want {
		t.Errorf("asked and told: %s, want %s", got, want)
	}
}

// TestLineSizes: VictoriaLogs is not asked for the sizes of lines that are read later. They are estimated
// from those that were read.
func TestLineSizes(t *testing.T) {
	const long = 1300
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		switch q := r.FormValue("query"); {
		case strings.Contains(q, "sum_len"):
			t.Errorf("asked for %s", q)
		case strings.Contains(q, "stats by (_stream"):
			io.WriteString(rw, statRow)
		default:
			for i := range 2 {
				fmt.Fprintf(rw, `{"_stream":"{app=\"web\"}","_time":"2001-09-09T01:46:40.%dZ","_msg":%q,"app":"web"}`+"\n", i+1, strings.Repeat("x", long))
			}
		}
	})
	for i, want := range []int64{firstLineBytes, firstLineBytes + (long-firstLineBytes)/4} {
		req := request()
		cursors, err := w.SelectText(context.Background(), req)
		if err != nil {
			t.Fatal(err)
		}
		c := cursors[0]
		var chunks []model.TextChunk
		for c.Next(context.Background()) {
			if chunks, err = c.Chunks(context.Background(), chunks); err != nil {
				t.Fatal(err)
			}
		}
		if len(chunks) != 1 || chunks[0].Bytes != 2*want {
			t.Fatalf("round %d: %+v, want 2 lines of %d bytes", i, chunks, want)
		}
		var rows model.TextRows
		if err := chunks[0].Page.ReadText(context.Background(), chunks[0].Index, model.WantLines, &rows); err != nil {
			t.Fatal(err)
		}
		chunks[0].Page.Release()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
