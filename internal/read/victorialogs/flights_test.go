package victorialogs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/shaledb/shale/internal/model"
)

// countWorld is a server with three applications, whose responses wait until they may go.
type countWorld struct {
	*world
	may   chan struct{} // one for each response
	mu    sync.Mutex
	asked []string
	by    []string // the account and the filter of each
	limit string   // the timeout of the last one
	fails func(rw http.ResponseWriter, query string) bool
	more  func(rw http.ResponseWriter, app string) // further streams of an application
	hangs bool                                     // requests in common do, and take no turn of may
	// before is how much longer ranges are.
	before int64
}

var askedApp = regexp.MustCompile(`"?app"?="(\w+)"`)

func newCountWorld(t *testing.T) *countWorld {
	w := &countWorld{may: make(chan struct{}, 100), fails: func(http.ResponseWriter, string) bool { return false }, more: func(http.ResponseWriter, string) {}}
	w.world = newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		q := r.FormValue("query")
		w.mu.Lock()
		w.asked, w.limit = append(w.asked, q), r.FormValue("timeout")
		w.by = append(w.by, r.Header.Get("AccountID")+" "+r.FormValue("extra_filters"))
		w.mu.Unlock()
		if w.hangs && strings.Contains(q, " or ") {
			<-r.Context().Done()
			return
		}
		select {
		case <-w.may:
		case <-r.Context().Done():
			return
		}
		if w.fails(rw, q) {
			return
		}
		filter, _, _ := strings.Cut(q, "|")
		var apps []string
		for _, m := range askedApp.FindAllStringSubmatch(filter, -1) {
			apps = append(apps, m[1])
		}
		for i, app := range []string{"a", "b", "c"} {
			if len(apps) == 0 || slices.Contains(apps, app) {
				fmt.Fprintf(rw, `{"_stream":"{app=\"%s\"}","_time":"2001-09-09T01:46:40Z","n":"%d","times":"%d","bytes":"%d"}`+"\n", app, i+1, i+1, 100*(i+1))
				w.more(rw, app)
			}
		}
	})
	w.flights.wait, w.flights.limit = time.Hour, time.Hour
	return w
}

// start counts the lines of an application, "" for all, and returns what gives the result.
func (w *countWorld) start(ctx context.Context, t *testing.T, app string, sized bool) (result func() string) {
	return w.startFor(ctx, t, request(), app, sized)
}

func (w *countWorld) startFor(ctx context.Context, t *testing.T, req *model.Request, app string, sized bool) (result func() string) {
	req.Range = model.TimeRange{Min: 1e18 - w.before, Max: 1e18 + 1e9 - 1}
	req.Cells = &model.TextCells{Step: 1e9, Phase: 1e18 - 1, Bytes: sized}
	if app != "" {
		req.Matchers = []model.Matcher{{Name: "app", Op: model.MatchEqual, Value: app, Match: func(v string) bool { return v == app }}}
	}
	out := make(chan string, 1)
	go func() {
		cursors, err := w.SelectText(ctx, req)
		if err != nil {
			out <- err.Error()
			return
		}
		var all []string
		for c := cursors[0]; c.Next(ctx); {
			chunks, _ := c.Chunks(ctx, nil)
			for _, x := range chunks {
				line := fmt.Sprintf("%s %d", c.Labels().Get("app"), x.Rows)
				if sized {
					line += fmt.Sprint(" ", x.Bytes)
				}
				all = append(all, line)
			}
		}
		slices.Sort(all)
		text := strings.Join(all, " ")
		if err := cursors[0].Close(); err != nil {
			text = err.Error()
		}
		if used := req.Quota.Charged(); used != (model.Charge{}) {
			text = fmt.Sprint(used, " is still taken")
		}
		out <- text
	}()
	return func() string {
		select {
		case text := <-out:
			return text
		case <-time.After(20 * time.Second):
			t.Fatal("a request does not end")
			return ""
		}
	}
}

// wait waits for a state of the flights.
func (w *countWorld) wait(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		w.flights.mu.Lock()
		ok := is()
		w.flights.mu.Unlock()
		if ok {
			return
		}
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// askedFor waits until so many requests were sent.
func (w *countWorld) askedFor(t *testing.T, n int) {
	t.Helper()
	w.wait(t, fmt.Sprintf("%d requests are not sent", n), func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.asked) == n
	})
}

// waiting says that so many requests wait for the one that is on its way.
func (w *countWorld) waiting(t *testing.T, n int) {
	t.Helper()
	w.wait(t, fmt.Sprintf("%d requests do not wait", n), func() bool {
		for _, f := range w.flights.of {
			return !f.begun && len(f.parts) == n || n == 0 && f.begun
		}
		return false
	})
}

func (w *countWorld) go_(n int) {
	for range n {
		w.may <- struct{}{}
	}
}

func expect(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestFlights: counts that come while another one over the same cells is on its way go as one request. Each
// gets the lines that it selects.
func TestFlights(t *testing.T) {
	w, ctx := newCountWorld(t), context.Background()
	first := w.start(ctx, t, "a", false)
	w.waiting(t, 0)
	same, other, third := w.start(ctx, t, "a", false), w.start(ctx, t, "b", false), w.start(ctx, t, "c", false)
	gone, cancel := context.WithCancel(ctx)
	gives := w.start(gone, t, "b", false)
	w.waiting(t, 4)
	cancel()
	if got := gives(); !strings.Contains(got, context.Canceled.Error()) {
		t.Errorf("one that has given up gets %s", got)
	}
	w.waiting(t, 3)
	w.go_(2)
	expect(t, first(), "a 1")
	expect(t, same(), "a 1")
	expect(t, other(), "b 2")
	expect(t, third(), "c 3")
	w.wait(t, "a flight is left", func() bool { return len(w.flights.of) == 0 && w.flights.bytes == 0 })
	if len(w.asked) != 2 || testutil.ToFloat64(w.metrics.joined) != 3 {
		t.Fatalf("%d requests: %q", len(w.asked), w.asked)
	}
	for _, app := range []string{"a", "b", "c"} {
		if !strings.Contains(w.asked[1], `"app"="`+app+`"`) {
			t.Errorf("%s is missing in %s", app, w.asked[1])
		}
	}

	// One alone goes as it is, and one that selects all lines lets all pass.
	first = w.start(ctx, t, "a", false)
	w.waiting(t, 0)
	alone := w.start(ctx, t, "b", false)
	w.waiting(t, 1)
	w.go_(1)
	expect(t, first(), "a 1")
	w.wait(t, "the next one does not go", func() bool {
		for _, f := range w.flights.of {
			return f.begun
		}
		return false
	})
	all, some := w.start(ctx, t, "", false), w.start(ctx, t, "c", false)
	w.waiting(t, 2)
	w.go_(2)
	expect(t, alone(), "b 2")
	expect(t, all(), "a 1 b 2 c 3")
	expect(t, some(), "c 3")
	if len(w.asked) != 5 || strings.Contains(w.asked[4], "app") {
		t.Errorf("%q", w.asked)
	}
}

// TestFlightsWait: a request waits for a slow one for some time only.
func TestFlightsWait(t *testing.T) {
	w, ctx := newCountWorld(t), context.Background()
	w.flights.wait = time.Millisecond
	first := w.start(ctx, t, "a", false)
	w.waiting(t, 0)
	second := w.start(ctx, t, "b", false)
	w.wait(t, "the second one waits", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.asked) == 2
	})
	w.go_(2)
	expect(t, first(), "a 1")
	expect(t, second(), "b 2")
}

// TestFlightsFail: where several cannot be asked for together, each goes alone.
func TestFlightsFail(t *testing.T) {
	for what, fail := range map[string]func(w *countWorld){
		"refused": func(w *countWorld) {
			w.fails = func(rw http.ResponseWriter, q string) bool {
				if strings.Contains(q, " or ") {
					http.Error(rw, "too complex", http.StatusBadRequest)
				}
				return strings.Contains(q, " or ")
			}
		},
		"out of order": func(w *countWorld) {
			w.fails = func(rw http.ResponseWriter, q string) bool {
				if strings.Contains(q, " or ") {
					http.Error(rw, "it takes more than 30 s", http.StatusServiceUnavailable)
				}
				return strings.Contains(q, " or ")
			}
		},
		"cut": func(w *countWorld) {
			w.fails = func(rw http.ResponseWriter, q string) bool {
				if strings.Contains(q, " or ") {
					fmt.Fprintln(rw, `{"_stream":"{app=\"b\"}","_time":"2001-09-09T01:46:40Z","n":"7","times":"7"}`)
					_ = http.NewResponseController(rw).Flush()
					panic(http.ErrAbortHandler)
				}
				return false
			}
		},
		"too large":             func(w *countWorld) { w.flights.most = 10 },
		"too large with others": func(w *countWorld) { w.flights.all = 10 },
	} {
		t.Run(what, func(t *testing.T) {
			w, ctx := newCountWorld(t), context.Background()
			fail(w)
			first := w.start(ctx, t, "a", false)
			w.waiting(t, 0)
			second, third := w.start(ctx, t, "b", false), w.start(ctx, t, "a", false)
			w.waiting(t, 2)
			w.go_(10)
			expect(t, first(), "a 1")
			expect(t, second(), "b 2")
			expect(t, third(), "a 1")
			w.wait(t, "a flight is left", func() bool { return len(w.flights.of) == 0 && w.flights.bytes == 0 })
		})
	}
}

// TestFlightsEnd: a request that all have given up ends.
func TestFlightsEnd(t *testing.T) {
	w := newCountWorld(t)
	first := w.start(context.Background(), t, "a", false)
	w.waiting(t, 0)
	ctx, cancel := context.WithCancelCause(context.Background())
	second, third := w.start(ctx, t, "b", false), w.start(ctx, t, "c", false)
	w.waiting(t, 2)
	w.go_(1)
	expect(t, first(), "a 1")
	w.wait(t, "the others are not asked for", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.asked) == 2
	})
	cancel(errors.New("given up"))
	expect(t, second(), "given up")
	expect(t, third(), "given up")
	w.wait(t, "a flight is left", func() bool { return len(w.flights.of) == 0 && w.flights.bytes == 0 })
	w.go_(1)
}

// TestFlightsCompany: where requests went together lately, or another one of the tenant is running, the first
// one waits for others. It does not if there were none.
func TestFlightsCompany(t *testing.T) {
	w := newCountWorld(t)
	w.flights.linger = time.Hour
	first := w.start(context.Background(), t, "a", false)
	w.waiting(t, 0)
	second, third := w.start(context.Background(), t, "b", false), w.start(context.Background(), t, "c", false)
	w.waiting(t, 2)
	w.go_(2)
	expect(t, first(), "a 1")
	expect(t, second(), "b 2")
	expect(t, third(), "c 3")
	ctx, cancel := context.WithCancelCause(context.Background())
	next, another := w.start(ctx, t, "a", false), w.start(ctx, t, "b", false)
	w.waiting(t, 2)
	cancel(errors.New("given up"))
	expect(t, next(), "given up")
	expect(t, another(), "given up")
	w.wait(t, "a flight is left", func() bool { return len(w.flights.of) == 0 })
	if len(w.asked) != 2 {
		t.Errorf("%q", w.asked)
	}

	w.flights.company = nil
	first = w.start(context.Background(), t, "a", false)
	w.waiting(t, 0)
	w.before = 1e9
	ctx, cancel = context.WithCancelCause(context.Background())
	next = w.start(ctx, t, "b", false)
	w.wait(t, "one over other cells does not wait", func() bool {
		for _, f := range w.flights.of {
			if !f.begun && len(f.parts) == 1 {
				return true
			}
		}
		return false
	})
	cancel(errors.New("given up"))
	expect(t, next(), "given up")
	w.go_(1)
	expect(t, first(), "a 1")
	if len(w.flights.running) != 0 {
		t.Errorf("%v are still running", w.flights.running)
	}
}

// TestFlightsFailAlike: requests of the same streams fail together: each alone would fail, too.
func TestFlightsFailAlike(t *testing.T) {
	w, ctx := newCountWorld(t), context.Background()
	first := w.start(ctx, t, "a", false)
	w.waiting(t, 0)
	second, third := w.start(ctx, t, "b", false), w.start(ctx, t, "b", false)
	w.waiting(t, 2)
	w.fails = func(rw http.ResponseWriter, q string) bool {
		if strings.Contains(q, `"b"`) {
			http.Error(rw, "no", http.StatusServiceUnavailable)
		}
		return strings.Contains(q, `"b"`)
	}
	w.go_(10)
	expect(t, first(), "a 1")
	for _, result := range []func() string{second, third} {
		if got := result(); !strings.Contains(got, "503") {
			t.Errorf("got %s", got)
		}
	}
	if n := len(w.asked); n > 1+maxAttempts {
		t.Errorf("%d requests", n)
	}
}

// TestFlightsLate: one that selects much does not keep others waiting. They go alone after some time, and so
// do those after them, but not those of other tenants.
func TestFlightsLate(t *testing.T) {
	w, ctx := newCountWorld(t), callerOf("x")
	w.flights.limit, w.hangs = 20*time.Millisecond, true
	first := w.start(ctx, t, "a", false)
	w.waiting(t, 0)
	second, third := w.start(ctx, t, "b", false), w.start(ctx, t, "c", false)
	w.waiting(t, 2)
	w.go_(1)
	expect(t, first(), "a 1")
	w.wait(t, "the others do not go alone", func() bool { return len(w.flights.apart) == 1 && len(w.flights.of) == 0 })
	w.go_(2)
	expect(t, second(), "b 2")
	expect(t, third(), "c 3")
	if n := testutil.ToFloat64(w.metrics.paused.WithLabelValues(pausedLate)); n != 1 { // whoever says it first
		t.Errorf("%v pauses are counted, expected 1", n)
	}
	for tenant, flies := range map[string]int{"x": 0, "y": 1} {
		before := len(w.asked)
		next := w.start(callerOf(tenant), t, "a", false)
		w.askedFor(t, before+1)
		w.flights.mu.Lock()
		if n := len(w.flights.of); n != flies {
			t.Errorf("%d flights of %s", n, tenant)
		}
		w.flights.mu.Unlock()
		w.go_(1)
		expect(t, next(), "a 1")
	}
}

// TestFlightsSized: a count that wants the sizes of lines does not wait for one that does not, nor the other
// way round.
func TestFlightsSized(t *testing.T) {
	w, ctx := newCountWorld(t), context.Background()
	var all []func() string
	for i, sized := range []bool{false, true} {
		all = append(all, w.start(ctx, t, "a", sized))
		w.askedFor(t, i+1)
	}
	w.go_(2)
	expect(t, all[0](), "a 1")
	expect(t, all[1](), "a 1 100")
}

// TestFlightsLeft: one that gives up before the request is sent leaves nothing in it: neither its streams nor
// the time that it would have waited.
func TestFlightsLeft(t *testing.T) {
	w, ctx := newCountWorld(t), context.Background()
	first := w.start(ctx, t, "a", false)
	w.waiting(t, 0)
	given, give := context.WithCancelCause(ctx)
	gone := w.start(given, t, "", false)
	w.waiting(t, 1)
	short, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	long, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	second, third := w.start(short, t, "b", false), w.start(long, t, "c", false)
	w.waiting(t, 3)
	give(errors.New("given up"))
	expect(t, gone(), "given up")
	w.waiting(t, 2)
	w.go_(2)
	expect(t, first(), "a 1")
	expect(t, second(), "b 2")
	expect(t, third(), "c 3")
	timeout, err := time.ParseDuration(w.limit)
	if err != nil || timeout > time.Hour || timeout < 50*time.Minute {
		t.Errorf("the request may take %q", w.limit)
	}
	if len(w.asked) != 2 || !strings.Contains(w.asked[1], `"b"`) || strings.Contains(w.asked[1], `"a"`) {
		t.Errorf("%q", w.asked)
	}
}

// TestFlightsForeignStreams: the streams of others are neither charged to a request nor judged by it.
func TestFlightsForeignStreams(t *testing.T) {
	for what, more := range map[string]string{"many": "", "broken": `{app="b",x}`} {
		t.Run(what, func(t *testing.T) {
			w, ctx := newCountWorld(t), context.Background()
			w.more = func(rw http.ResponseWriter, app string) {
				for i := range 1000 {
					spelling := more
					if more == "" {
						spelling = fmt.Sprintf(`{app="b",pod="%d"}`, i)
					}
					if app == "b" {
						fmt.Fprintf(rw, `{"_stream":%q,"_time":"2001-09-09T01:46:40Z","n":"1","times":"1"}`+"\n", spelling)
					}
				}
			}
			first := w.start(ctx, t, "c", false)
			w.waiting(t, 0)
			req := request()
			req.Quota.MaxBytes = 64 << 10
			second, third := w.start(ctx, t, "b", false), w.startFor(ctx, t, req, "a", false)
			w.waiting(t, 2)
			w.go_(10)
			expect(t, first(), "c 3")
			expect(t, third(), "a 1")
			switch got := second(); {
			case more == "" && strings.Count(got, "b ") != 1001:
				t.Errorf("got %.100s", got)
			case more != "" && !strings.Contains(got, model.ErrCorrupt.Error()):
				t.Errorf("got %.100s", got)
			}
		})
	}
}

// TestFlightsApart: no request takes part in one of another tenant or account, or with another filter.
func TestFlightsApart(t *testing.T) {
	w := newCountWorld(t)
	if err := w.settings.Accounts.UnmarshalText([]byte("x=1,y=2,z=2")); err != nil {
		t.Fatal(err)
	}
	if err := w.settings.Filters.UnmarshalText([]byte(`z={env="prod"}`)); err != nil {
		t.Fatal(err)
	}
	var all []func() string
	for i, of := range []struct{ caller, tenant, by string }{
		{"q", "x", "1 "}, {"q", "y", "2 "}, {"q", "z", `2 {env="prod"}`}, {"y", "y", "2 "},
	} {
		req := request()
		req.Tenant = of.tenant
		all = append(all, w.startFor(callerOf(of.caller), t, req, "a", false))
		w.askedFor(t, i+1)
		if got := w.by[i]; got != of.by {
			t.Errorf("%s asks as %q, want %q", of, got, of.by)
		}
	}
	w.go_(4)
	for _, result := range all {
		expect(t, result(), "a 1")
	}
}

// TestFlightsClose: closing ends a request that some have in common, however long they would wait.
func TestFlightsClose(t *testing.T) {
	w, ctx := newCountWorld(t), context.Background()
	w.hangs = true
	first := w.start(ctx, t, "a", false)
	w.waiting(t, 0)
	second, third := w.start(ctx, t, "b", false), w.start(ctx, t, "c", false)
	w.waiting(t, 2)
	w.go_(1)
	expect(t, first(), "a 1")
	w.askedFor(t, 2)
	closed := make(chan error)
	go func() { closed <- w.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it is not closed")
	}
	for _, result := range []func() string{second, third} {
		if got := result(); !strings.Contains(got, "cannot be asked") {
			t.Errorf("got %s", got)
		}
	}
	// Later ones have no others to wait for.
	next := w.start(ctx, t, "a", false)
	w.askedFor(t, 3)
	if len(w.flights.of) != 0 {
		t.Error("a flight has begun")
	}
	w.go_(1)
	expect(t, next(), "a 1")
}

// panicking is a transport that panics for requests in common.
type panicking struct{ http.RoundTripper }

func (p panicking) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	if text, err := io.ReadAll(body); err != nil || strings.Contains(string(text), "+or+") {
		panic("a hostile response")
	}
	return p.RoundTripper.RoundTrip(r)
}

// TestFlightsPanic: a panic in a request in common ends neither the process nor the wait of those that take
// part.
func TestFlightsPanic(t *testing.T) {
	w, ctx := newCountWorld(t), context.Background()
	w.client.http.Transport = panicking{w.client.http.Transport}
	first := w.start(ctx, t, "a", false)
	w.waiting(t, 0)
	second, third := w.start(ctx, t, "b", false), w.start(ctx, t, "c", false)
	w.waiting(t, 2)
	w.go_(3)
	expect(t, first(), "a 1")
	expect(t, second(), "b 2")
	expect(t, third(), "c 3")
}
