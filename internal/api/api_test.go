package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/pressure"
	"github.com/shaledb/shale/internal/turns"
)

func gateMetrics() GateMetrics {
	return GateMetrics{
		Running: prometheus.NewGauge(prometheus.GaugeOpts{}), Waiting: prometheus.NewGauge(prometheus.GaugeOpts{}), Unread: prometheus.NewGauge(prometheus.GaugeOpts{}),
		Refused: prometheus.NewCounter(prometheus.CounterOpts{}),
	}
}

// serving serves endpoints of a dialect through a pipeline.
func serving(o *Options, d Dialect, endpoints ...Endpoint) http.Handler {
	d.Tenants = OneTenant
	if d.WriteError == nil {
		d.WriteError = func(b *Body, e *Error) { b.SendText(e.Status, e.Error()) }
	}
	o.SetDefaults()
	p := NewPipeline(o, &Metrics{
		Requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "requests"}, []string{"handler", "code"}),
		Seconds:  prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "seconds"}, []string{"handler"}), Gate: gateMetrics(),
	})
	mux := http.NewServeMux()
	p.Mount(mux, &d, endpoints)
	return mux
}

// Two gates to the same slots let in no more than there are, and what leaves by one is free for the other.
func TestGatesShareSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := NewSlots(2)
		a, b := NewGate(slots, time.Second, gateMetrics()), NewGate(slots, time.Second, gateMetrics())
		ctx := context.Background()
		if err := errors.Join(a.Enter(ctx), b.Enter(ctx)); err != nil {
			t.Fatal(err)
		}
		if err := a.Enter(ctx); !errors.Is(err, model.ErrTransient) || !strings.Contains(err.Error(), "query.max-concurrent") {
			t.Errorf("a third: %v", err)
		}
		done := make(chan error)
		go func() { done <- a.Enter(ctx) }()
		synctest.Wait()
		b.Leave(ctx)
		if err := <-done; err != nil {
			t.Error(err)
		}
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		if err := b.Enter(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a client that leaves: %v", err)
		}
		a.Leave(ctx)
		a.Leave(ctx)
		if err := b.Enter(ctx); err != nil {
			t.Error(err)
		}
		b.Leave(ctx)
	})
}

// As many may wait as there are turns for in time, and no more.
func TestWaitersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(NewSlots(0), time.Hour, gateMetrics()) // one, at least
		if err := g.Enter(context.Background()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		for range turns.WaitersPerTurn {
			go func() { done <- g.Enter(ctx) }()
		}
		synctest.Wait()
		if err := g.Enter(ctx); !errors.Is(err, model.ErrTransient) {
			t.Errorf("one too many: %v", err)
		}
		cancel()
		for range turns.WaitersPerTurn {
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	})
}

// TestFreeTurns: a tenant whose only query waits for a bucket gets more turns after a moment, although no
// request comes or ends.
func TestFreeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := newSlots(8, pressure.New(1, 6))
		g := NewGate(slots, 10*time.Second, gateMetrics())
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		of := func(tenant string) context.Context {
			return model.WithCaller(ctx, model.Caller{Tenant: tenant})
		}
		for _, tenant := range []string{"other", "a"} {
			if err := g.Enter(of(tenant)); err != nil {
				t.Fatal(err)
			}
		}
		done := make(chan error, 5)
		for range 5 {
			go func() { done <- g.Enter(of("a")) }()
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if len(done) != 5 {
			t.Errorf("%d of 5 queries have a turn while six of eight turns are free", len(done))
		}
		for len(done) > 0 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// A tenant with many requests leaves a quarter of the turns and of the queue to others, and a free turn goes
// to the tenant that has the fewest. Alone, it has all turns.
func TestTurnsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 8
		slots := newSlots(most, pressure.New(most-most/4, most-most/4))
		g := NewGate(slots, time.Hour, gateMetrics())
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		of := func(tenant string) context.Context {
			return model.WithCaller(ctx, model.Caller{Tenant: tenant})
		}
		greedy, other := of("greedy"), of("other")
		for range most {
			if err := g.Enter(greedy); err != nil {
				t.Fatal(err)
			}
		}
		done := make(chan string, 1000)
		ask := func(ctx context.Context, name string) {
			go func() {
				if g.Enter(ctx) == nil {
					done <- name
				}
			}()
			synctest.Wait()
		}
		for range 40 {
			ask(greedy, "greedy")
		}
		ask(other, "other") // after all others
		g.Leave(greedy)
		if got := <-done; got != "other" {
			t.Errorf("the first free turn goes to %s", got)
		}
		g.Leave(greedy)
		synctest.Wait()
		if len(done) > 0 {
			t.Errorf("the greedy tenant has more than %d of %d turns", most-most/4, most)
		}
		ask(other, "other")
		if len(done) != 1 || <-done != "other" {
			t.Error("no turn is left for another tenant")
		}
		refused := 0
		for range turns.WaitersPerTurn * most {
			short, cancel := context.WithTimeout(greedy, time.Minute)
			defer cancel()
			go func() {
				if err := g.Enter(short); errors.Is(err, model.ErrTransient) {
					refused++ // at once
				}
			}()
			synctest.Wait()
		}
		if want := turns.WaitersPerTurn*most - (turns.WaitersPerTurn*most*3/4 - 40); refused != want {
			t.Errorf("%d requests are refused, expected %d", refused, want)
		}
		time.Sleep(turns.OtherTenants + time.Second)
		g.Leave(greedy)
		synctest.Wait()
		if slots.Running() != most {
			t.Errorf("%d of %d turns are taken by a tenant that is alone", slots.Running(), most)
		}
	})
}

func TestAccepts(t *testing.T) {
	for header, want := range map[string]bool{
		"": false, "gzip": true, "deflate, GZIP;q=0.5": true, "gzip;q=0": false, "gzip; q=x": false, "br": false, "x-gzip": false, " gzip ;q=1": true,
	} {
		if got := accepts([]string{header}, "gzip"); got != want {
			t.Errorf("%q: %v", header, got)
		}
	}
}

func TestOrigins(t *testing.T) {
	some := NewOrigins(regexp.MustCompile(`a|b`))
	if !(Origins{}).Match("x") || !NewOrigins(nil).Match("x") || !some.Match("a") || some.Match("ab") || some.Match("") {
		t.Error("an origin must match as a whole")
	}
}

func TestCost(t *testing.T) {
	c := new(model.Cost)
	if got := costHeader(c); got != "none" {
		t.Error(got)
	}
	c.Series.Add(2)
	c.TextPagesSkipped.Add(3)
	if got, want := costHeader(c), "series=2, text-pages-skipped=3"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
	for signal, want := range map[model.Signal]int{model.Metrics: 11, model.Logs: 15} {
		var members map[string]int64
		if err := json.Unmarshal(AppendCost(nil, c, signal), &members); err != nil || len(members) != want || members["series"] != 2 {
			t.Errorf("%v: %v", members, err)
		}
	}
}

// Any bytes make a JSON string that a decoder reads as package encoding/json would have written it.
func TestStrings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		var a, b Body
		a.Str(string(s))
		b.StrBytes(s)
		if string(a.Buf) != string(b.Buf) {
			t.Fatalf("%q and %q", a.Buf, b.Buf)
		}
		reference, err := json.Marshal(string(s))
		if err != nil {
			t.Fatal(err)
		}
		var got, want string
		if err := errors.Join(json.Unmarshal(a.Buf, &got), json.Unmarshal(reference, &want)); err != nil || got != want {
			t.Fatalf("%q: %q, %v; want %q", s, got, err, want)
		}
	})
}

// A body is charged as it is read, and what does not fit is refused before it is held.
func TestForm(t *testing.T) {
	form := url.Values{"a": {strings.Repeat("x", 1000)}}.Encode()
	send := func(most, limit int64) error {
		r := httptest.NewRequest(http.MethodPost, "/?b=1", strings.NewReader(form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Body = &chargedBody{ReadCloser: http.MaxBytesReader(httptest.NewRecorder(), r.Body, limit), quota: &model.Quota{MaxBytes: most}}
		if err := readForm(r, limit); err != nil {
			return err
		}
		if len(r.Form.Get("a")) != 1000 || r.Form.Get("b") != "1" {
			t.Errorf("%v", r.Form)
		}
		return nil
	}
	if err := send(1<<20, 1<<20); err != nil {
		t.Error(err)
	}
	if err := send(1000, 1<<20); !errors.Is(err, model.ErrLimit) {
		t.Errorf("a small quota: %v", err)
	}
	var large *Error
	if err := send(1<<20, 500); !errors.As(err, &large) || large.Status != http.StatusRequestEntityTooLarge || errors.Is(err, model.ErrLimit) {
		t.Errorf("a large form: %v", err)
	}
}
