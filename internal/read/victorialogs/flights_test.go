package victorialogs

import (
	"context"
	"errors"
	"fmt"
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
	fails func(query string) bool
	// before is how much longer ranges are.
	before int64
}

var askedApp = regexp.MustCompile(`"?app"?="(\w+)"`)

func newCountWorld(t *testing.T) *countWorld {
	w := &countWorld{may: make(chan struct{}, 100), fails: func(string) bool { return false }}
	w.world = newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		q := r.FormValue("query")
		w.mu.Lock()
		w.asked = append(w.asked, q)
		w.mu.Unlock()
		<-w.may
		if w.fails(q) {
			http.Error(rw, "too complex", http.StatusBadRequest)
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
			}
		}
	})
	w.flights.wait = time.Hour
	return w
}

// start counts the lines of an application, "" for all, and returns what gives the result.
func (w *countWorld) start(ctx context.Context, t *testing.T, app string, sized bool) (result func() string) {
	req := request()
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

// until waits for a state of the flights.
func (w *countWorld) until(t *testing.T, what string, is func() bool) {
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

// waiting says that so many requests wait for the one that is on its way.
func (w *countWorld) waiting(t *testing.T, n int) {
	t.Helper()
	w.until(t, fmt.Sprintf("%d requests do not wait", n), func() bool {
		for _, f := range w.flights.of {
			return !f.begun && f.parts == n || n == 0 && f.begun
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
	same, other, sized := w.start(ctx, t, "a", false), w.start(ctx, t, "b", false), w.start(ctx, t, "c", true)
	gone, cancel := context.WithCancel(ctx)
	gives := w.start(gone, t, "b", true)
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
	expect(t, sized(), "c 3 300")
	w.until(t, "a flight is left", func() bool { return len(w.flights.of) == 0 && w.flights.bytes == 0 })
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
	w.until(t, "the next one does not go", func() bool {
		for _, f := range w.flights.of {
			return f.begun
		}
		return false
	})
	all, some := w.start(ctx, t, "", true), w.start(ctx, t, "c", false)
	w.waiting(t, 2)
	w.go_(2)
	expect(t, alone(), "b 2")
	expect(t, all(), "a 1 100 b 2 200 c 3 300")
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
	w.until(t, "the second one waits", func() bool {
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
		"refused":   func(w *countWorld) { w.fails = func(q string) bool { return strings.Contains(q, " or ") } },
		"too large": func(w *countWorld) { w.flights.most = 10 },
	} {
		t.Run(what, func(t *testing.T) {
			w, ctx := newCountWorld(t), context.Background()
			fail(w)
			first := w.start(ctx, t, "a", false)
			w.waiting(t, 0)
			second, third := w.start(ctx, t, "b", false), w.start(ctx, t, "c", true)
			w.waiting(t, 2)
			w.go_(4)
			expect(t, first(), "a 1")
			expect(t, second(), "b 2")
			expect(t, third(), "c 3 300")
			w.until(t, "a flight is left", func() bool { return len(w.flights.of) == 0 && w.flights.bytes == 0 })
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
	w.until(t, "the others are not asked for", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.asked) == 2
	})
	cancel(errors.New("given up"))
	expect(t, second(), "given up")
	expect(t, third(), "given up")
	w.until(t, "a flight is left", func() bool { return len(w.flights.of) == 0 && w.flights.bytes == 0 })
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
	w.until(t, "a flight is left", func() bool { return len(w.flights.of) == 0 })
	if len(w.asked) != 2 {
		t.Errorf("%q", w.asked)
	}

	w.flights.company = nil
	first = w.start(context.Background(), t, "a", false)
	w.waiting(t, 0)
	w.before = 1e9
	ctx, cancel = context.WithCancelCause(context.Background())
	next = w.start(ctx, t, "b", false)
	w.until(t, "one over other cells does not wait", func() bool {
		for _, f := range w.flights.of {
			if !f.begun && f.parts == 1 {
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
