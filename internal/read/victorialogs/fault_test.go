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
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/victorialogs/breaker"
	"github.com/shaledb/shale/internal/write/logs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a source over a server that a test makes.
type world struct {
	*Source
	asked atomic.Int32
}

func newWorld(t *testing.T, serve http.HandlerFunc) *world {
	w := new(world)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.asked.Add(1)
		serve(rw, r)
	}))
	w.Source = New(Options{Settings: Settings{Source: At(server.URL), Requests: 4}, Seed: 1, Rules: logs.Rules{}, Registerer: prometheus.NewRegistry()})
	w.client.pause = time.Millisecond
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		server.Close()
	})
	return w
}

func request() *model.Request {
	return &model.Request{
		Tenant: model.DefaultTenant, Signal: model.Logs, Family: model.Text, Range: model.TimeRange{Min: 1e18, Max: 1e18 + 1e9},
		Quota: &model.Quota{Pool: &model.QueryPool{MaxBytes: math.MaxInt64}}, Cost: new(model.Cost),
	}
}

const (
	statRow = `{"_stream":"{app=\"web\"}","_time":"2001-09-09T01:46:40Z","n":"2","lo":"2001-09-09T01:46:40.1Z","hi":"2001-09-09T01:46:40.2Z","bytes":"2"}` + "\n"
	rowOne  = `{"_stream":"{app=\"web\"}","_time":"2001-09-09T01:46:40.1Z","_msg":"a","app":"web"}` + "\n"
	rowTwo  = `{"_stream":"{app=\"web\"}","_time":"2001-09-09T01:46:40.2Z","_msg":"b","app":"web","x":"y"}` + "\n"
)

// lines reads all lines of a request.
func (w *world) lines(ctx context.Context, req *model.Request) (text string, err error) {
	cursors, err := w.SelectText(ctx, req)
	if err != nil {
		return "", err
	}
	for _, c := range cursors {
		for c.Next(ctx) {
			chunks, err := c.Chunks(ctx, nil)
			if err != nil {
				return "", err
			}
			for _, x := range chunks {
				var rows model.TextRows
				if err := x.Page.ReadText(ctx, x.Index, model.WantLines|model.WantMetadata, &rows); err != nil {
					return "", errors.Join(err, c.Close())
				}
				for i := range rows.Len() {
					text += fmt.Sprintf("%s%s%s ", c.Labels(), rows.Line(i), rows.MetadataAt(i))
				}
				x.Page.Release()
			}
		}
		if err := c.Close(); err != nil {
			return "", err
		}
	}
	return text, nil
}

// answering serves the directory and the lines.
func answering(directory, lines string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.FormValue("query"), "| stats ") {
			io.WriteString(w, directory)
			return
		}
		io.WriteString(w, lines)
	}
}

// TestResponses: what is not a whole response is an error, and gives the memory back.
func TestResponses(t *testing.T) {
	for _, test := range []struct {
		name, directory, lines string
		want, fails            string
	}{
		{"whole", statRow, rowTwo + rowOne, `{app="web"}a{} {app="web"}b{x="y"} `, ""},
		{"a line that is there twice counts once", strings.Replace(statRow, `"n":"2"`, `"n":"3"`, 1), rowOne + rowTwo + rowTwo, `{app="web"}a{} {app="web"}b{x="y"} `, ""},
		{"lines that came since", statRow, rowTwo + rowOne + strings.Replace(rowOne, "40.1Z", "40.15Z", 1), `{app="web"}a{} {app="web"}a{} {app="web"}b{x="y"} `, ""},
		{"a stream that came since", statRow, rowTwo + rowOne + strings.ReplaceAll(rowOne, "web", "new"), `{app="web"}a{} {app="web"}b{x="y"} `, ""},
		{"nothing", "", "", "", ""},
		{"a line is missing", statRow, rowOne, "", "sent 1 of the 2 lines"},
		{"cut", statRow, rowOne + rowTwo[:20], "", "ended its response after 1 rows"},
		{"an error at the end", statRow, rowOne + rowTwo + "cannot execute query: timeout\n", "", "timeout"},
		{"a line without time", statRow, rowOne + `{"_stream":"{app=\"web\"}","_msg":"b"}` + "\n", "", "without a time"},
		{"a line of a stream that cannot be read", statRow, rowOne + rowTwo + strings.Replace(rowOne, `{app=`, `{app:`, 1), "", "malformed stream"},
		{"a directory of nonsense", strings.Replace(statRow, `"n":"2"`, `"n":"-2"`, 1), "", "", "a row of statistics that is not one"},
		{"a directory with times in the wrong order", strings.Replace(statRow, `40.2Z`, `39Z`, 1), "", "", "a row of statistics that is not one"},
		{"a directory that is cut", statRow[:40], "", "", "ended its response after 0 rows"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, answering(test.directory, test.lines))
			req := request()
			got, err := w.lines(context.Background(), req)
			if test.fails == "" && err != nil || test.fails != "" && (err == nil || !strings.Contains(err.Error(), test.fails)) {
				t.Fatalf("%v, want %q", err, test.fails)
			}
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if n := req.Quota.Charged().Bytes(); n != 0 {
				t.Errorf("%d bytes are still charged", n)
			}
		})
	}
}

// TestCounts: where chunks are counted, a line that is there twice counts once.
func TestCounts(t *testing.T) {
	row := strings.Replace(statRow, `"n":"2"`, `"n":"3"`, 1)
	w := newWorld(t, answering(strings.Replace(row, `"bytes"`, `"times":"2","bytes"`, 1), rowOne+rowTwo+rowTwo))
	req := request()
	req.Cells = &model.TextCells{Step: int64(time.Second), Phase: -1, Bytes: true}
	cursors, err := w.SelectText(context.Background(), req)
	if err != nil || !cursors[0].Next(context.Background()) {
		t.Fatal(err)
	}
	chunks, err := cursors[0].Chunks(context.Background(), nil)
	if err != nil || len(chunks) != 1 || chunks[0].Rows != 2 || chunks[0].Bytes != 2 {
		t.Errorf("%+v, %v", chunks, err)
	}
	if err := cursors[0].Close(); err != nil {
		t.Error(err)
	}
}

// TestMemory: a page that exceeds the memory of the query is an error.
func TestMemory(t *testing.T) {
	w := newWorld(t, answering(statRow, rowOne+strings.Replace(rowTwo, `"b"`, `"`+strings.Repeat("b", 100_000)+`"`, 1)))
	req := request()
	req.Quota.MaxBytes = 50_000
	if _, err := w.lines(context.Background(), req); !errors.Is(err, model.ErrLimit) {
		t.Errorf("%v, want a limit", err)
	}
}

// TestTenants: a tenant reads its account and no other one, and without an account nothing is asked.
func TestTenants(t *testing.T) {
	account := ""
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		account = r.Header.Get("AccountID") + ":" + r.Header.Get("ProjectID")
		answering(statRow, rowOne+rowTwo)(rw, r)
	})
	if err := w.settings.Accounts.UnmarshalText([]byte("a=1,b=2:3")); err != nil {
		t.Fatal(err)
	}
	for tenant, want := range map[string]string{"a": "1:0", "b": "2:3", "c": "", model.DefaultTenant: "", "1": ""} {
		account = ""
		req := request()
		req.Tenant = tenant
		got, err := w.lines(context.Background(), req)
		if err != nil || account != want || (got == "") != (want == "") {
			t.Errorf("tenant %s: account %q and %q, %v, want %q", tenant, account, got, err, want)
		}
		if warned := len(req.Cost.Warnings.All()) > 0; warned != (want == "") {
			t.Errorf("tenant %s: warned: %v", tenant, warned)
		}
	}
}

// TestRetries: what may pass is tried again, and what is refused as it stands is not.
func TestRetries(t *testing.T) {
	for _, test := range []struct {
		status, times, asked int
		class                error
	}{
		{http.StatusServiceUnavailable, 1, 3, nil}, // and a request for the lines
		{http.StatusTooManyRequests, 2, 4, nil},
		{http.StatusBadGateway, 9, 3, model.ErrTransient},
		{http.StatusBadRequest, 1, 1, model.ErrInvalid},
		{http.StatusFound, 1, 1, model.ErrTransient},
	} {
		left := atomic.Int32{}
		left.Store(int32(test.times))
		w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
			if left.Add(-1) >= 0 {
				rw.Header().Set("Location", "/elsewhere")
				http.Error(rw, "the text of the server", test.status)
				return
			}
			answering(statRow, rowOne+rowTwo)(rw, r)
		})
		_, err := w.lines(context.Background(), request())
		if !errors.Is(err, test.class) || int(w.asked.Load()) != test.asked {
			t.Errorf("status %d: %v after %d requests, want %v after %d", test.status, err, w.asked.Load(), test.class, test.asked)
		}
		if err != nil && !strings.Contains(err.Error(), "the text of the server") {
			t.Errorf("%v does not have the text of the server", err)
		}
	}
}

// TestBreaker: after failures in a row nothing is asked, and the breaker says so.
func TestBreaker(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) { http.Error(rw, "down", http.StatusInternalServerError) })
	for range 3 {
		if _, err := w.lines(context.Background(), request()); !errors.Is(err, model.ErrTransient) {
			t.Fatal(err)
		}
	}
	if n := w.asked.Load(); n != breaker.Failures {
		t.Errorf("%d requests, want %d", n, breaker.Failures)
	}
	if !w.client.breaker.Open() || testutil.ToFloat64(w.metrics.requests.WithLabelValues(kindDirectory, "refused")) == 0 {
		t.Error("the breaker is not open")
	}
}

// TestBreakerCrowded: what says that there is too much to do may not be the server. It neither opens the
// breaker nor keeps it from opening.
func TestBreakerCrowded(t *testing.T) {
	w := newWorld(t, answering(statRow, rowOne+rowTwo))
	fail := func(outOfOrder bool) {
		pass, _ := w.client.breaker.Allow(time.Now())
		w.client.failed(&pass, kindDirectory, time.Now(), outOfOrder)
	}
	for range 2 * breaker.Failures {
		fail(false)
	}
	if w.client.breaker.Open() {
		t.Error("a server that has too much to do opens the breaker")
	}
	for range breaker.Failures {
		fail(true)
		fail(false)
	}
	if !w.client.breaker.Open() {
		t.Error("a server that is down has not opened the breaker")
	}
}

// TestCancelled: a query that ends does not wait for the server.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	release := make(chan struct{})
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		r.ParseForm()
		cancel()
		<-release
	})
	defer close(release)
	if _, err := w.lines(ctx, request()); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want it to be cancelled", err)
	}
	if w.client.breaker.Open() || w.asked.Load() != 1 {
		t.Error("the end of a query counts as a failure of the server")
	}
}

func TestSettings(t *testing.T) {
	for text, want := range map[string]string{
		"victorialogs=http://127.0.0.1:9428": "http://127.0.0.1:9428", "victorialogs=https://x/prefix/": "https://x/prefix", "": "",
		"http://x": "!", "victorialogs=x": "!", "victorialogs=http://a:b@x": "!", "victorialogs=http://x?y": "!", "victorialogs=ftp://x": "!",
	} {
		var l Location
		err := l.UnmarshalText([]byte(text))
		if (want == "!") != (err != nil) || err == nil && l.URL() != want {
			t.Errorf("%q: %q, %v", text, l.URL(), err)
		}
		if err != nil && !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"a", "a=", "a=x", "a=1:", "a=1:2:3", "a=-1", "a=4294967296", "a=1,a=2", "/=1", "a=1,"} {
		if err := new(Accounts).UnmarshalText([]byte(text)); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
	var a Accounts
	if err := a.UnmarshalText([]byte("b=2:3,a=1")); err != nil || a.String() != "a=1:0,b=2:3" {
		t.Errorf("%s, %v", a, err)
	}
}
