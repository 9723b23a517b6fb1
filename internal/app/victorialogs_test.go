package app

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/api/loki"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/read/victorialogs"
)

// victoriaRow is a line of the server that the test makes.
type victoriaRow struct {
	account, stream, text, tag string
	time                       int64
}

// victoriaServer answers the requests that Shale sends to VictoriaLogs, with all lines of an account and a
// time: the filters of requests may let too much pass. Some of its responses are wrong in some way.
type victoriaServer struct {
	mu     sync.Mutex
	random *rand.Rand
	rows   []victoriaRow
	faults int // percent of responses
	faulty int
	asked  int // requests of queries
	counts int
	proofs int // searches for copies
	partly int // counts that looked for copies in a part of their range
	copied int // lines that were sent twice
}

var (
	victoriaTimes = regexp.MustCompile(`_time:\[(\S+),(\S+)\]`)
	victoriaPart  = regexp.MustCompile(` if \(_time:\[(\S+),(\S+)\]\)`)
	victoriaCells = regexp.MustCompile(`_time:(\d+)(ns|m)(?: offset (-?\d+)ns)?\)`)
)

func (s *victoriaServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body := s.answer(r)
	if q := r.FormValue("query"); strings.Contains(q, "(_time:5m)") {
		s.counts++
	} else if !strings.Contains(q, "(_stream_id") {
		s.asked++
	}
	if s.random.IntN(100) >= s.faults {
		io.WriteString(w, body)
		return
	}
	s.faulty++
	switch s.random.IntN(5) {
	case 0:
		http.Error(w, "too busy", http.StatusServiceUnavailable)
	case 1:
		http.Error(w, "broken", http.StatusInternalServerError)
	case 2: // a row is cut: an end between two rows, with the right length, is an end as any other
		io.WriteString(w, strings.TrimSuffix(body[:len(body)/2], "\n"))
	case 3: // the connection ends
		w.Header().Set("Content-Length", strconv.Itoa(len(body)+10))
		io.WriteString(w, body)
		panic(http.ErrAbortHandler)
	default: // an error takes the place of the last row
		at := strings.LastIndexByte(strings.TrimSuffix(body, "\n"), '\n') + 1
		io.WriteString(w, body[:at]+"cannot execute query: no memory\n")
	}
}

func (s *victoriaServer) answer(r *http.Request) string {
	query, account, filter := r.FormValue("query"), r.Header.Get("AccountID")+":"+r.Header.Get("ProjectID"), r.FormValue("extra_filters")
	ends := victoriaTimes.FindStringSubmatch(query)
	from, _ := time.Parse(time.RFC3339Nano, ends[1])
	to, _ := time.Parse(time.RFC3339Nano, ends[2])
	var rows []victoriaRow
	for _, x := range s.rows {
		if x.account == account && x.time >= from.UnixNano() && x.time <= to.UnixNano() && (filter == "" || filter == "tag:="+x.tag) {
			rows = append(rows, x)
		}
	}
	var b strings.Builder
	_, stats, _ := strings.Cut(query, "| stats by ")
	switch {
	case strings.Contains(query, "| uniq by (_stream)"):
		known := map[string]bool{}
		for _, x := range rows {
			if !known[x.stream] {
				known[x.stream] = true
				fmt.Fprintf(&b, "{\"_stream\":%q}\n", x.stream)
			}
		}
	case stats != "":
		if strings.HasPrefix(stats, "(_stream_id") {
			s.proofs++
		}
		s.stats(&b, rows, stats)
	default:
		for _, x := range rows {
			fmt.Fprintf(&b, "{\"_time\":%q,\"_stream\":%q,\"_msg\":%q,\"tag\":%q}\n", stampOf(x.time), x.stream, x.text, x.tag)
		}
	}
	return b.String()
}

func stampOf(t int64) string { return time.Unix(0, t).UTC().Format(time.RFC3339Nano) }

// stats writes the statistics of streams, or of all lines, in cells of time.
func (s *victoriaServer) stats(b *strings.Builder, rows []victoriaRow, stats string) {
	step, offset := int64(0), int64(0)
	if m := victoriaCells.FindStringSubmatch(stats); m != nil {
		step, _ = strconv.ParseInt(m[1], 10, 64)
		if m[2] == "m" {
			step *= 60e9
		}
		offset, _ = strconv.ParseInt(cmp.Or(m[3], "0"), 10, 64)
	}
	type key struct {
		stream string
		cell   int64
	}
	part := func(int64) bool { return true }
	if m := victoriaPart.FindStringSubmatch(stats); m != nil {
		from, _ := time.Parse(time.RFC3339Nano, m[1])
		to, _ := time.Parse(time.RFC3339Nano, m[2])
		part = func(t int64) bool { return t >= from.UnixNano() && t <= to.UnixNano() }
		s.partly++
	}
	cells := map[key][]victoriaRow{}
	var order []key
	for _, x := range rows {
		k := key{stream: x.stream}
		if !strings.HasPrefix(stats, "(_stream") {
			k.stream = ""
		}
		if step > 0 {
			// As in VictoriaLogs 1.26: an offset is subtracted.
			k.cell = x.time + offset - ((x.time+offset)%step+step)%step - offset
		}
		if cells[k] == nil {
			order = append(order, k)
		}
		cells[k] = append(cells[k], x)
	}
	for _, k := range order {
		of := cells[k]
		lo, hi, bytes, sum, recent, times := of[0].time, of[0].time, 0, 0, 0, map[int64]bool{}
		for _, x := range of {
			lo, hi, bytes = min(lo, x.time), max(hi, x.time), bytes+len(x.text)
			if part(x.time) {
				recent, times[x.time] = recent+1, true
			}
			for _, c := range x.text + x.stream {
				sum = (sum*31 + int(c)) % 1_000_003
			}
		}
		fmt.Fprintf(b, "{\"_stream\":%q,\"_time\":%q,\"n\":\"%d\",\"lo\":%q,\"hi\":%q,\"bytes\":\"%d\",\"times\":\"%d\",\"recent\":\"%d\",\"x\":\"%d\"}\n",
			k.stream, stampOf(k.cell), len(of), stampOf(lo), stampOf(hi), bytes, len(times), recent, sum)
	}
}

// victoriaWorld is an engine over such a server, whose clock the test moves, with Loki's API.
type victoriaWorld struct {
	http.Handler
	server   *victoriaServer
	now      atomic.Int64
	random   *rand.Rand
	registry *prometheus.Registry
}

// victoriaTenants are the tenants, and what they may see: the tags of lines.
var victoriaTenants = map[string][]string{"a": {"a"}, "b": {"b", "b1", "b2"}, "b1": {"b1"}, "b2": {"b2"}, "stranger": nil}

func newVictoriaWorld(t *testing.T, seed uint64) *victoriaWorld {
	w := &victoriaWorld{random: rand.New(rand.NewPCG(seed, 9)), registry: prometheus.NewRegistry()}
	w.server = &victoriaServer{random: rand.New(rand.NewPCG(seed, 10))}
	w.now.Store(int64(1_700_000_000 * time.Second))
	backend := httptest.NewServer(w.server)
	t.Cleanup(backend.Close)
	setup := newSetup(t, func(o *EngineOptions) {
		v := victorialogs.Settings{Source: victorialogs.At(backend.URL), Requests: 4, CheckEvery: 10 * time.Second}
		must(t, v.Accounts.UnmarshalText([]byte("a=1,b=2:3,b1=2:3,b2=2:3")))
		must(t, v.Filters.UnmarshalText([]byte("b1=tag:=b1;b2=tag:=b2")))
		o.VictoriaLogs, o.Now, o.Results, o.Registerer = v, w.now.Load, config.Default().Results, w.registry
		o.Results.MaxBytes = 8 << 20
	})
	c := config.Default()
	c.MemoryBytes, c.Query.MaxBytes = 512<<20, 128<<20
	shared := apiOptions(c, w.registry, slog.New(slog.DiscardHandler))
	shared.Now = func() time.Time { return time.Unix(0, w.now.Load()) }
	shared.Answers = keepAnswers(&c, setup.Engine, w.registry)
	lines := loki.New(lokiOptions(c, setup.Engine, nil, shared, w.registry))
	mux := http.NewServeMux()
	lines.Routes(mux)
	w.Handler = mux
	t.Cleanup(func() {
		_ = lines.Close()
		must(t, setup.Close())
	})
	return w
}

// change adds lines, most of them of the past, takes some away, or replaces some by as many others, and lets
// the time go by in which that is seen.
func (w *victoriaWorld) change() {
	s := w.server
	s.mu.Lock()
	defer s.mu.Unlock()
	accounts := [...][2]string{{"1:0", "a"}, {"2:3", "b"}, {"2:3", "b1"}, {"2:3", "b2"}}
	row := func() victoriaRow {
		x := accounts[w.random.IntN(len(accounts))]
		return victoriaRow{
			account: x[0], tag: x[1], stream: fmt.Sprintf(`{app="web",n="%d"}`, w.random.IntN(3)), text: fmt.Sprintf("%s has %d", x[1], w.random.IntN(1000)),
			time: w.now.Load() - w.random.Int64N(int64(3*time.Hour)),
		}
	}
	switch n := len(s.rows); {
	case n == 0 || w.random.IntN(3) > 0:
		for range 1 + w.random.IntN(20) {
			s.rows = append(s.rows, row())
		}
	case w.random.IntN(3) == 0:
		s.rows, s.copied = append(s.rows, s.rows[w.random.IntN(n)]), s.copied+1
	case w.random.IntN(2) == 0:
		s.rows = slices.Delete(s.rows, n/3, n/3+1)
	default:
		x := row()
		at := w.random.IntN(n)
		x.time = s.rows[at].time
		s.rows[at] = x
	}
	// A replacement is seen by the sum, which is asked for once a minute.
	w.now.Add(int64(85 * time.Second))
}

// ask sends a request of a tenant.
func (w *victoriaWorld) ask(tenant, path string, form url.Values, fresh bool) (status int, result string) {
	r := httptest.NewRequest(http.MethodGet, "/loki/api/v1/"+path+"?"+form.Encode(), nil)
	r.Header.Set("X-Scope-OrgID", tenant)
	if fresh {
		r.Header.Set("Cache-Control", "no-cache")
	}
	got := httptest.NewRecorder()
	w.ServeHTTP(got, r)
	var body struct {
		Data struct {
			Result json.RawMessage `json:"result"`
		} `json:"data"`
	}
	if got.Code != http.StatusOK {
		return got.Code, got.Body.String()
	}
	if err := json.Unmarshal(got.Body.Bytes(), &body); err != nil {
		return 0, err.Error() + ": " + got.Body.String()
	}
	return got.Code, string(body.Data.Result)
}

// query returns a random query. Few are different, so that most are asked again.
func (w *victoriaWorld) query() (path string, form url.Values) {
	texts := [...]string{
		`sum by (n) (count_over_time({app="web"}[10m]))`, `sum(count_over_time({app="web"} |= "has" [15m]))`, `sum by (tag) (count_over_time({app="web"}[10m]))`,
		`{app="web"}`, `{app="web"} |= "7"`, `sum(max_over_time({app="web"} | pattern "<_> has <v>" | unwrap v [20m])) by (tag)`,
	}
	const step = int64(time.Minute)
	end := w.now.Load() / step * step
	if w.random.IntN(2) == 0 {
		end = int64(1_700_000_000*time.Second)/step*step - 5*step
	}
	return "query_range", url.Values{
		"query": {texts[w.random.IntN(len(texts))]}, "start": {fmt.Sprint(end - 60*step)}, "end": {fmt.Sprint(end)}, "step": {"60"}, "limit": {"1000"},
	}
}

var victoriaTags = regexp.MustCompile(`([ab][12]?) has|"tag":"([ab][12]?)"`)

// TestVictoriaLogsKept: over a server that others write to, and that fails now and then, each response is
// what would be computed or an error, and no tenant sees a line of another one.
func TestVictoriaLogsKept(t *testing.T) {
	rounds := 30
	if testing.Short() {
		rounds = 8
	}
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newVictoriaWorld(t, seed)
			right, failed := 0, 0
			for range rounds {
				w.change()
				w.setFaults(0)
				for range 6 {
					path, form := w.query()
					for tenant, mine := range victoriaTenants {
						w.setFaults(int(seed) * 5)
						status, got := w.ask(tenant, path, form, false)
						w.setFaults(0)
						for _, m := range victoriaTags.FindAllStringSubmatch(got, -1) {
							if tag := m[1] + m[2]; !slices.Contains(mine, tag) {
								t.Fatalf("tenant %s sees a line of %s", tenant, tag)
							}
						}
						if status != http.StatusOK {
							if failed++; status < 500 || seed == 0 {
								t.Fatalf("%s of %s: %d %s", form.Get("query"), tenant, status, got)
							}
							continue
						}
						if status, want := w.ask(tenant, path, form, true); status == http.StatusOK && got != want {
							t.Fatalf("%s of %s\nhas  %.2000s\nwant %.2000s", form.Get("query"), tenant, got, want)
						}
						right++
					}
				}
			}
			hits := w.counter("shale_answers_hits_total")
			results := resultCounter(w.registry, "shale_cache_hits_total")
			t.Logf("%d searches for copies, %d counts that looked for them in a part, %d copies", w.server.proofs, w.server.partly, w.server.copied)
			if w.server.proofs == 0 || w.server.copied == 0 {
				t.Error("copies were not looked for, or there was none")
			}
			t.Logf("%d right responses, %d errors after %d faults; %v answers and %v results were kept ones", right, failed, w.server.faulty, hits, results)
			if right < 10*rounds || hits == 0 || results < float64(rounds) || seed > 0 && w.server.faulty == 0 {
				t.Error("that is too few")
			}
		})
	}
}

func (w *victoriaWorld) setFaults(percent int) {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	w.server.faults = percent
}

func (w *victoriaWorld) counter(name string) (n float64) {
	all, _ := w.registry.Gather()
	for _, f := range all {
		if f.GetName() == name {
			for _, m := range f.Metric {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

// TestVictoriaLogsMetadataKept: what lists or sums up lines is asked for once in the time that a count holds,
// also where the range ends now, and before anything was counted. Later it has the lines that came meanwhile.
func TestVictoriaLogsMetadataKept(t *testing.T) {
	for _, path := range []string{
		"labels", "label/app/values", "series", "index/stats", "index/volume", "index/volume_range", "detected_labels", "detected_fields", "detected_field/v/values",
	} {
		for _, width := range []time.Duration{time.Hour, 24 * time.Hour, 7 * 24 * time.Hour} {
			t.Run(fmt.Sprint(path, " ", width), func(t *testing.T) {
				w := newVictoriaWorld(t, 1)
				now := w.now.Load()
				add := func(n int) {
					w.server.mu.Lock()
					defer w.server.mu.Unlock()
					for i := range n {
						w.server.rows = append(w.server.rows, victoriaRow{
							account: "1:0", tag: "a", stream: fmt.Sprintf(`{app="web%d"}`, len(w.server.rows)), text: fmt.Sprintf("v=%d", len(w.server.rows)), time: now - int64(i+1)*int64(time.Second),
						})
					}
				}
				ask := func() (body string, asked int) {
					t.Helper()
					w.server.mu.Lock()
					before := w.server.asked
					w.server.mu.Unlock()
					r := httptest.NewRequest(http.MethodGet, "/loki/api/v1/"+path+"?"+url.Values{
						"query": {`{app=~".+"}`}, "match[]": {`{app=~".+"}`}, "start": {fmt.Sprint(now - int64(width))}, "end": {fmt.Sprint(now)},
					}.Encode(), nil)
					r.Header.Set("X-Scope-OrgID", "a")
					got := httptest.NewRecorder()
					if w.ServeHTTP(got, r); got.Code != http.StatusOK {
						t.Fatal(got.Code, got.Body)
					}
					w.server.mu.Lock()
					defer w.server.mu.Unlock()
					body, _, _ = strings.Cut(got.Body.String(), `"stats"`) // which has times
					return body, w.server.asked - before
				}
				add(3)
				first, asked := ask()
				if asked == 0 {
					t.Fatal("nothing was asked for")
				}
				// The first count, which runs in the background, makes all lines new.
				end := time.Now().Add(time.Minute)
				for quiet := 0; quiet < 10; time.Sleep(10 * time.Millisecond) {
					if quiet++; time.Now().After(end) {
						t.Fatal("every request asks")
					}
					if _, asked := ask(); asked != 0 {
						quiet = 0
					}
				}
				w.now.Add(int64(time.Second))
				add(3)
				for range 5 {
					if body, asked := ask(); asked != 0 || body != first {
						t.Fatalf("%d requests; has %s\nwant %s", asked, body, first)
					}
				}
				w.now.Add(int64(10 * time.Second))
				if path == "labels" || path == "detected_labels" { // of one label
					return
				}
				if body, _ := ask(); body == first {
					t.Errorf("lines that came are missing: %s", body)
				}
			})
		}
	}
}
