package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/prompb"

	"github.com/shaledb/shale/internal/model"
)

const (
	acceptText  = "text/plain;version=0.0.4;q=1"
	acceptOpen  = "application/openmetrics-text;version=1.0.0"
	acceptProto = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
)

func testTarget(m ValueModel) *Target {
	t := &Target{
		Fleet: testFleet(), Epoch: time.Unix(1_700_000_000, 0), Begin: time.Unix(1_700_000_000, 0), Gzip: true,
		Now: func() time.Time { return time.Unix(1_700_010_007, 500e6) }, Tally: &Tally{},
	}
	t.Fleet.Metrics = 5
	t.Fleet.Value, t.Fleet.Exemplars = m, 0.5
	t.Fleet.Churn = Churn{ValueInterval: 30 * time.Second, SeriesInterval: time.Hour, Relabel: Spread{SpreadUniform, 10 * time.Minute}}
	if m == Counter {
		t.Fleet.Suffix = counterSuffix
	}
	return t
}

func get(t *testing.T, h http.Handler, path, accept string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func bodyOf(t *testing.T, r *http.Response) []byte {
	t.Helper()
	data, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// scraped is what a Prometheus makes of a scrape.
type scraped struct {
	samples   map[string]sample
	starts    map[string]int64
	exemplars map[string]exemplar.Exemplar
	types     map[string]string
	help      map[string]string
}

// parse takes a scrape apart with Prometheus' own parsers. Classic histograms become native ones with their bounds.
func parse(t *testing.T, r *http.Response) scraped {
	t.Helper()
	out := scraped{map[string]sample{}, map[string]int64{}, map[string]exemplar.Exemplar{}, map[string]string{}, map[string]string{}}
	each(t, r, out.types, out.help, func(p textparse.Parser, l map[string]string, s sample) {
		id := labelsKey(l)
		if _, ok := out.samples[id]; ok {
			t.Fatalf("%s comes twice", id)
		}
		out.samples[id], out.starts[id] = s, p.StartTimestamp()
		var e exemplar.Exemplar
		if p.Exemplar(&e) {
			out.exemplars[id] = e
		}
	})
	return out
}

// parseMessages gives a scrape as one would send it.
func parseMessages(t *testing.T, r *http.Response) (out []message) {
	t.Helper()
	each(t, r, map[string]string{}, map[string]string{}, func(_ textparse.Parser, l map[string]string, s sample) {
		out = append(out, message{labels: l, samples: []sample{s}})
	})
	return out
}

func labelsKey(l map[string]string) string { return fmt.Sprint(l) }

// each calls fn for every sample of a scrape.
func each(t *testing.T, r *http.Response, types, helps map[string]string, fn func(p textparse.Parser, l map[string]string, s sample)) {
	t.Helper()
	opts := textparse.ParserOptions{ConvertClassicHistogramsToNHCB: true, OpenMetricsSkipSTSeries: true}
	p, err := textparse.New(bodyOf(t, r), r.Header.Get("Content-Type"), nil, opts)
	if err != nil {
		t.Fatal(err)
	}
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		var s sample
		switch entry {
		case textparse.EntryType:
			name, kind := p.Type()
			types[string(name)] = string(kind)
			continue
		case textparse.EntryHelp:
			name, help := p.Help()
			helps[string(name)] = string(help)
			continue
		case textparse.EntryHistogram:
			_, _, h, fh := p.Histogram()
			var proto prompb.Histogram
			if h != nil {
				proto = prompb.FromIntHistogram(0, h)
			} else {
				proto = prompb.FromFloatHistogram(0, fh)
			}
			s.histogram, s.bits = &proto, math.Float64bits(proto.Sum)
		case textparse.EntrySeries:
			_, _, v := p.Series()
			s.bits = math.Float64bits(v)
		default:
			continue
		}
		var l labels.Labels
		p.Labels(&l)
		fn(p, l.Map(), s)
	}
}

// withoutTarget returns the labels that a target exposes itself.
func withoutTarget(f *Fleet, all map[string]string) map[string]string {
	out := maps.Clone(all)
	for _, l := range f.labels() {
		if l.ofTarget {
			delete(out, l.name)
		}
	}
	return out
}

// TestScrape compares every sample of a scrape, in every format, with the value that shale load remote-write sends.
func TestScrape(t *testing.T) {
	for _, m := range []ValueModel{Int100, Counter, Gauge, Random, Walk, Const, HistogramInt, HistogramFloat, HistogramCustom} {
		for _, accept := range []string{acceptText, acceptOpen, acceptProto} {
			t.Run(m.String()+" "+accept[:20], func(t *testing.T) {
				target := testTarget(m)
				target.Fleet.StartTimes = accept != acceptText
				f, const7 := &target.Fleet, 7
				r := get(t, target, "/targets/7/metrics", accept)
				if r.StatusCode != http.StatusOK {
					t.Fatalf("%d: %s", r.StatusCode, bodyOf(t, r))
				}
				got := parse(t, r)
				if m.Histogram() && m != HistogramCustom && accept != acceptProto {
					checkSums(t, target, got)
					return
				}
				o := newFleetOrigin(newState(Header{RemoteWrite: f, Timeline: Timeline{Start: target.Epoch.UnixNano(), Step: 30e9}, Batch: 1}))
				moment := target.moment(const7, target.Now())
				if moment.cycle == 0 || moment.born >= moment.ns {
					t.Errorf("moment %+v", moment)
				}
				series, withExemplar := 0, 0
				for g := int64(const7) * f.perTarget(); g < int64(const7+1)*f.perTarget(); g++ {
					p := f.place(g)
					id := fmt.Sprint(withoutTarget(f, f.LabelsOf(g, moment.cycle)))
					s, ok := got.samples[id]
					if !ok {
						t.Fatalf("no %s in %d samples", id, len(got.samples))
					}
					series++
					var want value
					if m.Histogram() {
						want.histogram = &native{}
						want.histogram.fill(m, f.gaugeHistogram(p.metric), &moment.instant, o.identity(p))
					} else {
						want.bits = m.Bits(&moment.instant, o.identity(p))
					}
					if why := want.differs(s); why != "" {
						t.Fatalf("%s: %s", id, why)
					}
					if start := got.starts[id]; (start == moment.startMs()) != (f.StartTimes && m.cumulative()) && !f.gaugeHistogram(p.metric) && m != HistogramCustom {
						t.Fatalf("%s: start %d, want %d", id, start, moment.startMs())
					}
					if _, ok := got.exemplars[id]; ok {
						withExemplar++
					}
					name := f.metricName(p.metric)
					if accept == acceptOpen {
						name = strings.TrimSuffix(name, counterSuffix)
					}
					if got.help[name] != string(f.appendHelp(nil, p.metric)) || got.types[name] == "" {
						t.Fatalf("%s: type %q, help %q", name, got.types[name], got.help[name])
					}
				}
				if len(got.samples) != series || series != int(f.perTarget()) {
					t.Errorf("%d samples, want %d", len(got.samples), series)
				}
				can := accept != acceptText && m.cumulative() && (m != HistogramCustom || accept == acceptOpen)
				if can != (withExemplar > 0) {
					t.Errorf("%d exemplars", withExemplar)
				}
			})
		}
	}
}

// checkSums checks what text shows of native histograms.
func checkSums(t *testing.T, target *Target, got scraped) {
	t.Helper()
	f, moment := &target.Fleet, target.moment(7, target.Now())
	for g := 7 * f.perTarget(); g < 8*f.perTarget(); g++ {
		var n native
		p := f.place(g)
		n.fill(f.Value, f.gaugeHistogram(p.metric), &moment.instant, f.identity(p))
		l := withoutTarget(f, f.LabelsOf(g, moment.cycle))
		s, ok := got.samples[fmt.Sprint(l)]
		if !ok { // not turned into one
			l[model.NameLabel] = f.metricName(p.metric) + "_sum"
			if s, ok = got.samples[fmt.Sprint(l)]; !ok {
				l[model.NameLabel] = f.metricName(p.metric) + "_gsum"
				s, ok = got.samples[fmt.Sprint(l)]
			}
		}
		if !ok || s.bits != math.Float64bits(n.sum) {
			t.Fatalf("%v: %v, %v, want %v", l, s, ok, n.sum)
		}
	}
}

// TestScrapesAgree: whoever scrapes within the interval of a value sees the same, and then something else.
func TestScrapesAgree(t *testing.T) {
	target := testTarget(Int100)
	var mu sync.Mutex
	now := time.Unix(1_700_010_000, 0)
	target.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	srv := httptest.NewServer(target)
	defer srv.Close()
	fetch := func() string {
		r, err := http.Get(srv.URL + "/targets/3/metrics")
		if err != nil {
			return err.Error()
		}
		defer r.Body.Close()
		data, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != http.StatusOK {
			return fmt.Sprint(r.StatusCode, err)
		}
		return string(data)
	}
	want := fetch()
	var wg sync.WaitGroup
	answers := make([]string, 10)
	for i := range answers {
		wg.Go(func() { answers[i] = fetch() })
	}
	wg.Wait()
	for i, got := range answers {
		if got != want {
			t.Errorf("scraper %d sees %.200s", i, got)
		}
	}
	step := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
	// 10,000 s are 333 intervals and 10 s.
	if step(9 * time.Second); fetch() != want {
		t.Error("values change within their interval")
	}
	if step(20 * time.Second); fetch() == want {
		t.Error("values stay beyond their interval")
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestTargetAnswers(t *testing.T) {
	target := testTarget(Int100)
	target.Fleet.Churn.Rollout = time.Hour
	for path, want := range map[string]int{
		"/targets/0/metrics": 200, "/targets/2/metrics": 200, "/targets/3/metrics": 503, "/targets/12/metrics": 404, "/targets/-1/metrics": 404,
		"/targets/00/metrics": 404, "/targets/x/metrics": 404, "/targets/0": 404, "/metrics": 404, "/": 404, "/targets//metrics": 404,
	} {
		if r := get(t, target, path, acceptText); r.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, r.StatusCode, want)
		}
	}
	w := httptest.NewRecorder()
	target.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/targets/0/metrics", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
	for header, want := range map[string]bool{"gzip": true, "deflate, gzip;q=0.5": true, "gzip;q=0": false, "": false, "br": false} {
		r := httptest.NewRequest(http.MethodGet, "/targets/0/metrics", nil)
		r.Header.Set("Accept-Encoding", header)
		w := httptest.NewRecorder()
		target.ServeHTTP(w, r)
		if got := w.Header().Get("Content-Encoding") == "gzip"; got != want {
			t.Errorf("Accept-Encoding %q: compressed %v", header, got)
		}
	}
	for _, change := range []func(*Target){
		func(t *Target) { t.Fleet.Churn.ValueInterval = 0 }, func(t *Target) { t.Fleet.Scrapers = 2 }, func(t *Target) { t.Fleet.Targets = 0 },
	} {
		bad := testTarget(Int100)
		change(bad)
		if err := bad.Check(); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%+v: %v", bad.Fleet, err)
		}
	}
}

// TestDiscovery: the labels of a target and those that it exposes are together the labels of remote write.
func TestDiscovery(t *testing.T) {
	target := testTarget(Int100)
	r := get(t, target, "http://here:1234/sd", "application/json")
	var groups []group
	if err := json.Unmarshal(bodyOf(t, r), &groups); err != nil || r.Header.Get("Content-Type") != "application/json" {
		t.Fatal(err)
	}
	if len(groups) != 12 {
		t.Fatalf("%d targets", len(groups))
	}
	for n, g := range groups {
		path := g.Labels["__metrics_path__"]
		if len(g.Targets) != 1 || g.Targets[0] != "here:1234" || path != fmt.Sprintf("/targets/%d/metrics", n) {
			t.Errorf("%+v", g)
		}
		delete(g.Labels, "__metrics_path__")
		series := int64(n) * target.Fleet.perTarget()
		all := withoutTarget(&target.Fleet, target.Fleet.LabelsOf(series, 0))
		maps.Copy(all, g.Labels)
		if !maps.Equal(all, target.Fleet.LabelsOf(series, 0)) {
			t.Errorf("%v", all)
		}
	}
}

// TestScrapeMemory: what a scrape takes does not depend on how many series there are.
func TestScrapeMemory(t *testing.T) {
	for _, accept := range []string{acceptText, acceptOpen, acceptProto} {
		target := testTarget(HistogramInt)
		target.Fleet.Metrics, target.Fleet.Series = 2, 20_000
		r := httptest.NewRequest(http.MethodGet, "/targets/0/metrics", nil)
		r.Header.Set("Accept", accept)
		var before, after runtime.MemStats
		w := &discarding{header: http.Header{}}
		runtime.ReadMemStats(&before)
		target.ServeHTTP(w, r)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 2<<20 || w.size < 8<<20 {
			t.Errorf("%.20s: %d bytes taken for %d bytes written", accept, took, w.size)
		}
	}
}

type discarding struct {
	header http.Header
	size   int
}

func (d *discarding) Header() http.Header         { return d.header }
func (d *discarding) WriteHeader(int)             {}
func (d *discarding) Write(b []byte) (int, error) { d.size += len(b); return len(b), nil }

func TestTargetServes(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	target := testTarget(Int100)
	ctx, cancel := context.WithCancel(t.Context())
	type outcome struct {
		report *Report
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		report, err := target.Serve(ctx, l)
		done <- outcome{report, err}
	}()
	client := &http.Client{Transport: &http.Transport{}} // which accepts gzip
	r, err := client.Get("http://" + l.Addr().String() + "/targets/0/metrics")
	if err != nil {
		t.Fatal(err)
	}
	size := int64(len(bodyOf(t, r)))
	r.Body.Close()
	client.CloseIdleConnections()
	cancel()
	out := <-done
	if out.err != nil || out.report.Sent != target.Fleet.perTarget() || out.report.Requests != 1 || out.report.RawBytes != size || out.report.Bytes >= size/2 {
		t.Errorf("%+v, %v; %d bytes", out.report, out.err, size)
	}
}

// BenchmarkScrape is the CPU budget of a target.
func BenchmarkScrape(b *testing.B) {
	for _, accept := range []string{acceptText, acceptOpen, acceptProto} {
		for _, m := range []ValueModel{Int100, HistogramInt} {
			b.Run(m.String()+"-"+accept[:20], func(b *testing.B) {
				target := testTarget(m)
				target.Fleet.Metrics, target.Fleet.Series = 100, 100
				r := httptest.NewRequest(http.MethodGet, "/targets/0/metrics", nil)
				r.Header.Set("Accept", accept)
				for b.Loop() {
					target.ServeHTTP(&discarding{header: http.Header{}}, r)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(target.Tally.Sent()), "ns/sample")
			})
		}
	}
}
