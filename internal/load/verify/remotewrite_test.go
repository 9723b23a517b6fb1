package verify

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/send"
	"github.com/shaledb/shale/internal/load/statefile"
	"github.com/shaledb/shale/internal/load/values"
	"github.com/shaledb/shale/internal/racetest"
)

// small returns a load of 360 series in batches of 50.
func small(t *testing.T, url string, timing pace.Timing) *send.RemoteWrite {
	t.Helper()
	f := testFleet()
	s, err := timing.Schedule(time.Now(), f.Total(), time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	return &send.RemoteWrite{
		Fleet: f, Schedule: s, URL: url + "/api/v1/write", Tenant: "t1", UserAgent: "shale-load/test", Batch: 50, Concurrency: 3, Tally: &send.RemoteWriteTally{},
	}
}

// testClient leaves no connection open.
func testClient() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
}

func verify(t *testing.T, url string, s *statefile.State, change func(*SampleVerifier)) *Samples {
	t.Helper()
	v := &SampleVerifier{
		Server: &client.Server{URL: url, HTTP: testClient(), Retry: &client.Retry{Patience: 5 * time.Second}},
		State:  s, Series: 1 << 40, Counts: true, Chunk: 1000, Concurrency: 4,
	}
	if change != nil {
		change(v)
	}
	out, err := v.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRemoteWriteVerifies(t *testing.T) {
	t.Parallel()
	for name, m := range racetest.Only(map[string]values.ValueModel{
		"int100": values.Int100, "counter": values.Counter, "gauge": values.Gauge, "random": values.Random,
	}, "random") {
		t.Run(name, func(t *testing.T) {
			store := newMemStore()
			srv := store.serve(t)
			l := small(t, srv.URL, pace.Timing{Rounds: 7})
			l.Fleet.Value = m
			states, report := runAndReload(t, l, &l.State)
			if report.Acked != 7*360 || report.Sent != 7*360 || report.Requests != 7*8 || report.Codes["204"] != 7*8 {
				t.Errorf("report %+v", report)
			}
			for which, s := range states {
				// Chunks of all sizes: several rounds, one round, part of the targets of one.
				for _, chunk := range []int64{1 << 40, 300, 25, 1} {
					v := verify(t, srv.URL, s, func(v *SampleVerifier) { v.Chunk = chunk })
					if !v.OK() || v.Compared != 7*360 || v.Series != 360 || v.Counted != 7*360 || v.CountedOf != 7*360 {
						t.Errorf("%s, chunk %d: %+v", which, chunk, v)
					}
				}
				v := verify(t, srv.URL, s, func(v *SampleVerifier) { v.Groups = true })
				if !v.OK() || v.Compared != 7*360 || v.Series != 360 || v.Queries >= 360 {
					t.Errorf("%s, by groups: %+v", which, v)
				}
			}
		})
	}
}

func TestRemoteWriteHeaders(t *testing.T) {
	store := newMemStore()
	tries := 0
	store.before = func(w http.ResponseWriter, _ *http.Request) int {
		if tries++; tries%3 != 0 {
			return http.StatusInternalServerError
		}
		return 0
	}
	srv := store.serve(t)
	l := small(t, srv.URL, pace.Timing{Rounds: 1})
	l.Batch, l.Concurrency = 360, 1
	_, report, err := l.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if report.Retries != 2 || report.Codes["500"] != 2 || report.Codes["204"] != 1 || report.Acked != 360 {
		t.Errorf("report %+v", report)
	}
	for i, want := range []string{"", "1", "2"} {
		h := store.headers[i]
		if h.Get("Retry-Attempt") != want || h.Get("X-Prometheus-Remote-Write-Version") != "0.1.0" || h.Get("User-Agent") != "shale-load/test" ||
			h.Get("Content-Encoding") != "snappy" || h.Get("Content-Type") != "application/x-protobuf" || h.Get("X-Scope-OrgID") != "t1" {
			t.Errorf("attempt %d: %v", i, h)
		}
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	store := newMemStore()
	var asked []time.Time
	store.before = func(w http.ResponseWriter, _ *http.Request) int {
		if asked = append(asked, time.Now()); len(asked) == 1 {
			w.Header().Set("Retry-After", "1")
			return http.StatusServiceUnavailable
		}
		return 0
	}
	srv := store.serve(t)
	l := small(t, srv.URL, pace.Timing{Rounds: 1})
	l.Batch = 360
	if _, _, err := l.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(asked) != 2 || asked[1].Sub(asked[0]) < time.Second {
		t.Errorf("asked %v", asked)
	}
}

// TestRefusalsAreDropped checks that a 4xx is not sent again, is counted, and does not count as stored; and
// that 429 is retried if that is asked for.
func TestRefusalsAreDropped(t *testing.T) {
	store := newMemStore()
	var tries atomic.Int32
	store.before = func(http.ResponseWriter, *http.Request) int {
		if tries.Add(1) == 2 {
			return http.StatusTooManyRequests
		}
		return 0
	}
	srv := store.serve(t)
	l := small(t, srv.URL, pace.Timing{Rounds: 2})
	state, report, err := l.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if report.Dropped != 50 || report.Acked != 2*360-50 || report.Retries != 0 {
		t.Errorf("report %+v", report)
	}
	if v := verify(t, srv.URL, state, nil); !v.OK() || v.Compared != 2*360-50 || v.CountedOf != 2*360-50 {
		t.Errorf("%+v", v)
	}
	tries.Store(0)
	l = small(t, srv.URL, pace.Timing{Rounds: 2})
	l.RetryOn429 = true
	if _, report, err = l.Run(t.Context()); err != nil || report.Retries != 1 || report.Acked != 2*360 {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestStoredWithoutAck: a batch may be stored although its response was lost and the sender gave up.
func TestStoredWithoutAck(t *testing.T) {
	store := newMemStore()
	writes := 0
	store.after = func() int {
		if writes++; writes > 5 {
			return http.StatusInternalServerError
		}
		return http.StatusNoContent
	}
	srv := store.serve(t)
	l := small(t, srv.URL, pace.Timing{Rounds: 2, Duration: 300 * time.Millisecond})
	state, report, err := l.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if report.Acked == 0 || report.Lost == 0 {
		t.Errorf("report %+v", report)
	}
	if v := verify(t, srv.URL, state, nil); !v.OK() || v.Compared != report.Acked || v.Unacked == 0 || v.CountedOf != report.Acked || v.Counted <= report.Acked {
		t.Errorf("%+v", v)
	}
}

// TestDamageIsNoticed changes single samples of the store.
func TestDamageIsNoticed(t *testing.T) {
	t.Parallel()
	for name, c := range racetest.Only(map[string]struct {
		damage func(s *memStore, id string)
		found  func(v *Samples) bool
	}{
		"lost": {func(s *memStore, id string) { delete(s.samples[id], first(s, id)) },
			func(v *Samples) bool { return v.Missing == 1 && v.Short == 1 && v.Wrong+v.Extra+v.Over == 0 }},
		"series lost": {func(s *memStore, id string) { delete(s.samples, id); delete(s.series, id) },
			func(v *Samples) bool { return v.Missing == 4 && v.Short == 4 }},
		"altered": {func(s *memStore, id string) { s.samples[id][first(s, id)] += 1e-9 },
			func(v *Samples) bool { return v.Wrong == 1 && v.Missing+v.Extra+v.Short+v.Over == 0 }},
		"invented": {func(s *memStore, id string) { s.samples[id][first(s, id)+1] = 1 },
			func(v *Samples) bool { return v.Extra == 1 && v.Over == 1 && v.Missing+v.Wrong+v.Short == 0 }},
		"moved": {func(s *memStore, id string) {
			at := first(s, id)
			s.samples[id][at+1] = s.samples[id][at]
			delete(s.samples[id], at)
		}, func(v *Samples) bool { return v.Extra == 1 && v.Missing == 1 && v.Short+v.Over == 0 }},
		"label lost": {func(s *memStore, id string) {
			l := labels.NewBuilder(s.series[id]).Del("region").Labels()
			s.series[l.String()], s.samples[l.String()] = l, s.samples[id]
			delete(s.series, id)
			delete(s.samples, id)
		}, func(v *Samples) bool { return v.Wrong == 1 && v.Missing+v.Extra+v.Short+v.Over == 0 }},
		"series twice": {func(s *memStore, id string) {
			l := labels.NewBuilder(s.series[id]).Del("region").Labels()
			s.series[l.String()], s.samples[l.String()] = l, s.samples[id]
		}, func(v *Samples) bool { return v.Extra == 1 && v.Over == 4 }},
	}, "lost", "series twice") {
		t.Run(name, func(t *testing.T) {
			store := newMemStore()
			srv := store.serve(t)
			state, _, err := small(t, srv.URL, pace.Timing{Rounds: 4}).Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			c.damage(store, store.some()[123])
			v := verify(t, srv.URL, state, func(v *SampleVerifier) { v.Groups = true })
			if v.OK() || !c.found(v) || len(v.Examples) == 0 {
				t.Errorf("by groups: %+v", v)
			}
			v = verify(t, srv.URL, state, nil)
			if v.OK() || !c.found(v) || len(v.Examples) == 0 {
				t.Errorf("%+v", v)
			}
			var text bytes.Buffer
			if v.WriteText(&text); !strings.Contains(text.String(), "verification FAILED") {
				t.Errorf("%s", text.String())
			}
		})
	}
}

func first(s *memStore, id string) int64 {
	best := int64(1 << 62)
	for t := range s.samples[id] {
		best = min(best, t)
	}
	return best
}

// TestServerAway starts the load before the server, takes the server away in between, and loses nothing.
func TestServerAway(t *testing.T) {
	t.Parallel()
	store := newMemStore()
	srv := httptest.NewServer(store)
	addr, url := srv.Listener.Addr().String(), srv.URL
	srv.Close()
	start := func() *httptest.Server {
		l := store.listenHTTP(t, addr)
		s := &httptest.Server{Listener: l, Config: &http.Server{Handler: store}}
		s.Start()
		return s
	}
	l := small(t, url, pace.Timing{Rate: 2000, Duration: 1500 * time.Millisecond})
	done := make(chan struct{})
	var state *statefile.State
	var report *send.RemoteWriteReport
	go func() {
		defer close(done)
		state, report, _ = l.Run(context.Background())
	}()
	time.Sleep(200 * time.Millisecond)
	srv = start()
	time.Sleep(300 * time.Millisecond)
	srv.CloseClientConnections()
	srv.Close()
	time.Sleep(200 * time.Millisecond)
	srv = start()
	defer srv.Close()
	<-done
	if report.Faults == 0 || report.Retries == 0 || report.Acked == 0 || report.Dropped != 0 {
		t.Errorf("report %+v", report)
	}
	if v := verify(t, url, state, nil); !v.OK() || v.Compared+v.Unacked < report.Acked {
		t.Errorf("%+v", v)
	}
}

// TestReaderLosesPatienceOnce: a server that stays away is waited for once, and not again for every query.
func TestReaderLosesPatienceOnce(t *testing.T) {
	var asked atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer srv.Close()
	f := testFleet()
	state := statefile.New(statefile.Header{RemoteWrite: &f, Timeline: pace.Timeline{Start: 1_700_000_000e9, Step: 1e9}, Batch: 1 << 20})
	state.Ended = true
	state.Acks.Ack(0, 0)
	v := verify(t, srv.URL, state, func(v *SampleVerifier) {
		v.Server.Retry.Patience, v.Concurrency, v.Counts = 200*time.Millisecond, 1, false
	})
	if v.Failed != 360 || v.OK() || asked.Load() < 361 || asked.Load() > 370 {
		t.Errorf("asked %d times: %+v", asked.Load(), v)
	}
}

// TestOpenLoop checks that a slow server shows as lag.
func TestOpenLoop(t *testing.T) {
	store := newMemStore()
	store.before = func(http.ResponseWriter, *http.Request) int { time.Sleep(50 * time.Millisecond); return 0 }
	srv := store.serve(t)
	_, report, err := small(t, srv.URL, pace.Timing{Rate: 10_000, Duration: 500 * time.Millisecond}).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if report.MaxLag < 0.2 || report.Rate > 5000 || report.Latency.P50 < 0.05 {
		t.Errorf("report %+v", report)
	}
}
