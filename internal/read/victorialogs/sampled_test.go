package victorialogs

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/cache"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/victorialogs/draw"
	"github.com/shaledb/shale/internal/read/victorialogs/rfc3339"
	"github.com/shaledb/shale/internal/read/victorialogs/watch"
	"github.com/shaledb/shale/internal/write/logs"
)

// sampleServer sends samples of lines as VictoriaLogs does.
type sampleServer struct {
	mu      sync.Mutex
	lines   []sampleLine
	refuses string   // requests with this are invalid
	asked   []string // but for counts of all lines
	sent    int      // bytes of lines
}

type sampleLine struct {
	time       int64
	text, more string // fields
	pod        string // of the stream; "": it has none
}

var (
	sampleRange = regexp.MustCompile(`_time:\[([^,]+),([^\]]+)\]|"shale 1":<(\d+)`)
	sampleStep  = regexp.MustCompile(`stats by \(_time:(\d+)(ns|m)\)`)
)

func (s *sampleServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := r.FormValue("query")
	all, clauses, _ := strings.Cut(q, "| filter ")
	within, chosen := partsOf(all), partsOf(clauses)
	around := within[:1] // of all of them, if there are several
	within = within[1:]
	counted := strings.Contains(q, "(_time:5m)")
	if !counted && !strings.Contains(q, "by (_stream_id") {
		s.asked = append(s.asked, q)
	}
	if s.refuses != "" && strings.Contains(q, s.refuses) {
		http.Error(w, "unknown pipe", http.StatusBadRequest)
		return
	}
	step := int64(0)
	if m := sampleStep.FindStringSubmatch(q); m != nil {
		step, _ = strconv.ParseInt(m[1], 10, 64)
		if m[2] == "m" {
			step *= int64(time.Minute)
		}
	}
	type count struct{ n, sum int64 }
	counts, lowest := map[int64]count{}, map[int64]*sampleLine{}
	for i := range s.lines {
		l := &s.lines[i]
		in := passes(around, l) && passes(within, l) && passes(chosen, l)
		switch {
		case !in:
		case strings.Contains(q, "row_min("):
			at := floorDiv(l.time, step)
			if low, ok := lowest[at]; !ok || hashOf(l) < hashOf(low) {
				lowest[at] = l
			}
		case step > 0:
			c := counts[floorDiv(l.time, step)]
			counts[floorDiv(l.time, step)] = count{c.n + 1, c.sum + hashOf(l)%4194301}
		case strings.Contains(q, "| stats"), strings.Contains(q, "| uniq"):
		default:
			s.sent += l.write(w, q)
		}
	}
	for _, l := range lowest {
		s.sent += l.write(w, q)
	}
	for at, c := range counts {
		fmt.Fprintf(w, `{"_time":%q,"n":"%d","x":"%d"}`+"\n", stamp(at*step), c.n, c.sum)
	}
}

func (l *sampleLine) write(w http.ResponseWriter, query string) int {
	stream := `,"_stream":"{app=\"web\"}","app":"web"`
	if l.pod != "" {
		stream = fmt.Sprintf(`,"_stream":"{app=\"web\",pod=\"%s\"}","app":"web","pod":%[1]q`, l.pod)
	}
	if strings.Contains(query, " _time, _msg, ") {
		stream = ""
	}
	n, _ := fmt.Fprintf(w, `{"_time":%q,"_msg":%q%s%s}`+"\n", stamp(l.time), l.text, stream, l.more)
	return n
}

func stamp(t int64) string { return time.Unix(0, t).UTC().Format(time.RFC3339Nano) }

func hashOf(l *sampleLine) int64 {
	h := fnv.New64a()
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(l.time)))
	io.WriteString(h, l.text+"/"+l.pod)
	x := h.Sum64()
	x ^= x >> 29 // the last bytes count little
	return int64(x * 0xbf58476d1ce4e5b9 >> 8 % draw.Hashes)
}

// samplePart is a part of time of a filter, and the bound of the hashes there.
type samplePart struct{ from, to, bound int64 }

// partsOf returns the parts of a filter. Those after a bound are of a part of the hashes.
func partsOf(text string) (all []samplePart) {
	bound := int64(draw.Hashes)
	for _, m := range sampleRange.FindAllStringSubmatch(text, -1) {
		if m[3] != "" {
			bound, _ = strconv.ParseInt(m[3], 10, 64)
			continue
		}
		from, _ := rfc3339.Parse([]byte(m[1]))
		to, _ := rfc3339.Parse([]byte(m[2]))
		all = append(all, samplePart{from, to, bound})
	}
	return all
}

// passes reports whether a line passes one of some parts. Without any, all do.
func passes(parts []samplePart, l *sampleLine) bool {
	return len(parts) == 0 || slices.ContainsFunc(parts, func(p samplePart) bool {
		return l.time >= p.from && l.time <= p.to && (p.bound == draw.Hashes || hashOf(l) < p.bound)
	})
}

// sampleWorld is a source over a sampleServer, and its clock.
type sampleWorld struct {
	*sampleServer
	*Source
	now atomic.Int64
}

func newSampleWorld(t *testing.T, tier cache.Secondary, store *sampleServer) *sampleWorld {
	w := &sampleWorld{sampleServer: store}
	server := httptest.NewServer(store)
	w.now.Store(1_800_000_000e9)
	w.Source = New(Options{
		Settings: Settings{Source: At(server.URL), Requests: 4, CheckEvery: 10 * time.Second}, ClosedAfter: 2 * time.Minute, countLimit: time.Minute, Now: w.now.Load,
		Seed: 1, Rules: logs.DefaultRules(), Shared: tier, Registerer: prometheus.NewRegistry(),
	})
	if w.shared != nil {
		w.client.url = "http://victorialogs" // the name of values, for all processes
		w.client.http.Transport = toServer(server.URL)
		w.client.counts.Transport, w.client.proofs.Transport = w.client.http.Transport, w.client.http.Transport
	}
	t.Cleanup(func() {
		w.Close()
		server.Close()
	})
	return w
}

// toServer sends all requests to one server.
type toServer string

func (s toServer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Host = strings.TrimPrefix(string(s), "http://")
	return http.DefaultTransport.RoundTrip(r)
}

// request returns one for a sample of the last span.
func (w *sampleWorld) request(span time.Duration, of model.TextSample) *model.Request {
	req := request()
	req.Cost.MayLag = true
	req.Matchers = []model.Matcher{{Name: "app", Value: "web", Match: func(v string) bool { return v == "web" }}}
	req.Range = model.TimeRange{Min: w.now.Load() - int64(span), Max: w.now.Load()}
	req.Sample = &of
	return req
}

// sampleOf returns how many lines the sample of the last span stands for, before an edge and from it on, the
// requests, the bytes of lines, and the sample.
func (w *sampleWorld) sampleOf(t *testing.T, span time.Duration, edge int64, of model.TextSample) (before, after float64, asked []string, sent int, levels map[string]int) {
	t.Helper()
	w.mu.Lock()
	w.asked, w.sent = nil, 0
	w.mu.Unlock()
	req := w.request(span, of)
	cursors, err := w.SelectText(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	levels = map[string]int{}
	for _, c := range cursors {
		for c.Next(context.Background()) {
			chunks, err := c.Chunks(context.Background(), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range chunks {
				var rows model.TextRows
				if err := x.Page.ReadText(context.Background(), x.Index, model.WantLines|model.WantMetadata, &rows); err != nil {
					t.Fatal(err)
				}
				for i, at := range rows.Times {
					levels[string(rows.MetadataAt(i).Get("detected_level"))]++
					if at < edge {
						before += x.StandsFor
					} else {
						after += x.StandsFor
					}
				}
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if used := req.Quota.Charged(); used != (model.Charge{}) {
		t.Errorf("%v is still taken", used)
	}
	w.watch.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return before, after, w.asked, w.sent, levels
}

// fill adds lines of the last 24 hours: a few in the older half, and many in the newer one.
func (s *sampleServer) fill(now int64) (few, many int) {
	rng := rand.New(rand.NewPCG(1, 1))
	few, many = 1000, 50_000
	for i := range few + many {
		at := now - 12*int64(time.Hour) + rng.Int64N(12*int64(time.Hour))
		if i < few {
			at -= 12 * int64(time.Hour)
		}
		s.lines = append(s.lines, sampleLine{time: at, text: fmt.Sprintf("level=info request=%d", i)})
	}
	return few, many
}

// TestSample: a sample has all lines of small windows, and a part of those of large ones. It stands for all
// of them, and takes two requests.
func TestSample(t *testing.T) {
	w := newSampleWorld(t, nil, &sampleServer{})
	few, many := w.fill(w.now.Load())
	for _, plain := range []bool{true, false} {
		edge := w.now.Load() - 12*int64(time.Hour)
		old, recent, asked, sent, levels := w.sampleOf(t, 24*time.Hour, edge, model.TextSample{Lines: 8192, Plain: plain})
		// The window of the edge has lines of both.
		if math.Abs(old-float64(few)) > 200 || math.Abs(old+recent-float64(few+many)) > 1e-6*float64(many) {
			t.Errorf("plain: %v: %.0f and %.0f lines, want %d and %d", plain, old, recent, few, many)
		}
		if n := levels["info"]; len(levels) != 1 || n < 4000 || n > 8192 {
			t.Errorf("plain: %v: a sample of %v", plain, levels)
		}
		if len(asked) != 2 || sent > 8192*map[bool]int{true: 110, false: 160}[plain] {
			t.Errorf("plain: %v: %d bytes by %q", plain, sent, asked)
		}
		w.now.Add(int64(watch.SumEvery))
	}
}

// TestSampleKept: where lines have settled, they are not asked for again, but for windows that have changed.
// Other processes find them, too.
func TestSampleKept(t *testing.T) {
	tier := &looseTier{rng: rand.New(rand.NewPCG(1, 1)), values: map[cache.Key][]byte{}}
	store := &sampleServer{}
	w := newSampleWorld(t, tier, store)
	few, many := w.fill(w.now.Load())
	of := model.TextSample{Lines: 8192, Plain: true}
	_, _, _, cold, _ := w.sampleOf(t, 24*time.Hour, 0, of)
	warm := func(w *sampleWorld, late int) {
		t.Helper()
		w.now.Add(int64(10 * time.Second))
		_, all, asked, sent, _ := w.sampleOf(t, 24*time.Hour, 0, of)
		if math.Abs(all-float64(few+many+late)) > 200 { // the beginning has moved on
			t.Errorf("%.0f lines, want %d", all, few+many+late)
		}
		if len(asked) > 2 || sent > cold/8 {
			t.Errorf("%d bytes after %d by %q", sent, cold, asked)
		}
	}
	w.now.Add(int64(watch.SumEvery))
	w.sampleOf(t, 24*time.Hour, 0, of) // the lines have settled by then
	for range 3 {
		warm(w, 0)
	}
	store.mu.Lock()
	for i := range 500 {
		store.lines = append(store.lines, sampleLine{time: w.now.Load() - 20*int64(time.Hour) + int64(i), text: "late"})
	}
	store.mu.Unlock()
	w.now.Add(int64(10 * time.Second))
	warm(w, 500) // which are seen after an interval of checks
	for range 10 {
		w.now.Add(int64(10 * time.Second))
		w.sampleOf(t, 24*time.Hour, 0, of)
	}
	other := newSampleWorld(t, tier, store)
	other.now.Store(w.now.Load())
	if len(tier.values) < 40 {
		t.Fatalf("only %d windows are shared", len(tier.values))
	}
	warm(other, 500)
}

// TestSampleLevels: where a level may be of the stream or of the line, streams are asked for, too.
func TestSampleLevels(t *testing.T) {
	w := newSampleWorld(t, nil, &sampleServer{})
	for i, more := range []string{`,"level":"error"`, `,"severity.text":"warn"`, ``, `,"level":""`} {
		w.lines = append(w.lines, sampleLine{time: w.now.Load() - int64(i), text: "a", more: more})
	}
	look := func(want string, requests int) {
		t.Helper()
		_, _, asked, _, levels := w.sampleOf(t, time.Hour, 0, model.TextSample{Lines: 10_000, Plain: true})
		if got := fmt.Sprint(levels); got != want || len(asked) != requests {
			t.Errorf("%s by %q, want %s", got, asked, want)
		}
	}
	look("map[error:1 unknown:2 warn:1]", 2)
	w.lines = append(w.lines, sampleLine{time: w.now.Load(), text: "b", more: `,"level":"info","lvl":"error"`})
	look("map[error:1 info:1 unknown:2 warn:1]", 4)
	look("map[error:1 info:1 unknown:2 warn:1]", 2) // it is remembered
}
