package verify

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

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/pace"
	"github.com/shaledb/shale/internal/load/statefile"
	"github.com/shaledb/shale/internal/load/tally"
	"github.com/shaledb/shale/internal/load/target"
	"github.com/shaledb/shale/internal/load/values"
	"github.com/shaledb/shale/internal/model"
)

const (
	acceptText  = "text/plain;version=0.0.4;q=1"
	acceptOpen  = "application/openmetrics-text;version=1.0.0"
	acceptProto = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
)

func testTarget(m values.ValueModel) *target.Target {
	t := &target.Target{
		Fleet: testFleet(), Epoch: time.Unix(1_700_000_000, 0), Begin: time.Unix(1_700_000_000, 0), Gzip: true,
		Now: func() time.Time { return time.Unix(1_700_010_007, 500e6) }, Tally: &tally.Tally{},
	}
	t.Fleet.Metrics = 5
	t.Fleet.Value, t.Fleet.Exemplars = m, 0.5
	t.Fleet.Churn = fleet.Churn{ValueInterval: 30 * time.Second, SeriesInterval: time.Hour, Relabel: fleet.Spread{How: fleet.SpreadUniform, By: 10 * time.Minute}}
	if m == values.Counter {
		t.Fleet.Suffix = target.CounterSuffix
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
	samples   map[string]client.Sample
	starts    map[string]int64
	exemplars map[string]exemplar.Exemplar
	types     map[string]string
	help      map[string]string
}

// parse takes a scrape apart with Prometheus' own parsers. Classic histograms become native ones with their
// bounds.
func parse(t *testing.T, r *http.Response) scraped {
	t.Helper()
	out := scraped{map[string]client.Sample{}, map[string]int64{}, map[string]exemplar.Exemplar{}, map[string]string{}, map[string]string{}}
	each(t, r, out.types, out.help, func(p textparse.Parser, l map[string]string, s client.Sample) {
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
	each(t, r, map[string]string{}, map[string]string{}, func(_ textparse.Parser, l map[string]string, s client.Sample) {
		out = append(out, message{labels: l, samples: []client.Sample{s}})
	})
	return out
}

func labelsKey(l map[string]string) string { return fmt.Sprint(l) }

// each calls fn for every sample of a scrape.
func each(t *testing.T, r *http.Response, types, helps map[string]string, fn func(p textparse.Parser, l map[string]string, s client.Sample)) {
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
		var s client.Sample
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
			s.Histogram, s.Bits = &proto, math.Float64bits(proto.Sum)
		case textparse.EntrySeries:
			_, _, v := p.Series()
			s.Bits = math.Float64bits(v)
		default:
			continue
		}
		var l labels.Labels
		p.Labels(&l)
		fn(p, l.Map(), s)
	}
}

// withoutTarget returns the labels that a target exposes itself.
func withoutTarget(f *fleet.Fleet, all map[string]string) map[string]string {
	out := maps.Clone(all)
	for _, l := range f.LabelTemplates() {
		if l.OfTarget {
			delete(out, l.Name)
		}
	}
	return out
}

// TestScrape compares every sample of a scrape, in every format, with the value that shale load remote-write
// sends.
func TestScrape(t *testing.T) {
	for _, m := range []values.ValueModel{values.Int100, values.Counter, values.Gauge, values.Random, values.Walk, values.Const, values.HistogramInt, values.HistogramFloat, values.HistogramCustom} {
		for _, accept := range []string{acceptText, acceptOpen, acceptProto} {
			t.Run(m.String()+" "+accept[:20], func(t *testing.T) {
				served := testTarget(m)
				served.Fleet.StartTimes = accept != acceptText
				f, const7 := &served.Fleet, 7
				r := get(t, served, "/targets/7/metrics", accept)
				if r.StatusCode != http.StatusOK {
					t.Fatalf("%d: %s", r.StatusCode, bodyOf(t, r))
				}
				got := parse(t, r)
				if m.Histogram() && m != values.HistogramCustom && accept != acceptProto {
					checkSums(t, served, got)
					return
				}
				o := newFleetOrigin(statefile.New(statefile.Header{RemoteWrite: f, Timeline: pace.Timeline{Start: served.Epoch.UnixNano(), Step: 30e9}, Batch: 1}))
				moment := served.Moment(const7, served.Now())
				if moment.Cycle == 0 || moment.Born >= moment.Ns {
					t.Errorf("moment %+v", moment)
				}
				series, withExemplar := 0, 0
				for g := int64(const7) * f.PerTarget(); g < int64(const7+1)*f.PerTarget(); g++ {
					p := f.Place(g)
					id := fmt.Sprint(withoutTarget(f, f.LabelsOf(g, moment.Cycle)))
					s, ok := got.samples[id]
					if !ok {
						t.Fatalf("no %s in %d samples", id, len(got.samples))
					}
					series++
					var want value
					if m.Histogram() {
						want.histogram = &values.Histogram{}
						want.histogram.Fill(m, f.GaugeHistogram(p.Metric), &moment.Instant, o.Identity(p))
					} else {
						want.bits = m.Bits(&moment.Instant, o.Identity(p))
					}
					if why := want.differs(s); why != "" {
						t.Fatalf("%s: %s", id, why)
					}
					if start := got.starts[id]; (start == moment.StartMs()) != (f.StartTimes && m.Cumulative()) && !f.GaugeHistogram(p.Metric) && m != values.HistogramCustom {
						t.Fatalf("%s: start %d, want %d", id, start, moment.StartMs())
					}
					if _, ok := got.exemplars[id]; ok {
						withExemplar++
					}
					name := f.MetricName(p.Metric)
					if accept == acceptOpen {
						name = strings.TrimSuffix(name, target.CounterSuffix)
					}
					if got.help[name] != string(f.AppendHelp(nil, p.Metric)) || got.types[name] == "" {
						t.Fatalf("%s: type %q, help %q", name, got.types[name], got.help[name])
					}
				}
				if len(got.samples) != series || series != int(f.PerTarget()) {
					t.Errorf("%d samples, want %d", len(got.samples), series)
				}
				can := accept != acceptText && m.Cumulative() && (m != values.HistogramCustom || accept == acceptOpen)
				if can != (withExemplar > 0) {
					t.Errorf("%d exemplars", withExemplar)
				}
			})
		}
	}
}

// checkSums checks what text shows of native histograms.
func checkSums(t *testing.T, served *target.Target, got scraped) {
	t.Helper()
	f, moment := &served.Fleet, served.Moment(7, served.Now())
	for g := 7 * f.PerTarget(); g < 8*f.PerTarget(); g++ {
		var n values.Histogram
		p := f.Place(g)
		n.Fill(f.Value, f.GaugeHistogram(p.Metric), &moment.Instant, f.Identity(p))
		l := withoutTarget(f, f.LabelsOf(g, moment.Cycle))
		s, ok := got.samples[fmt.Sprint(l)]
		if !ok { // not turned into one
			l[model.NameLabel] = f.MetricName(p.Metric) + "_sum"
			if s, ok = got.samples[fmt.Sprint(l)]; !ok {
				l[model.NameLabel] = f.MetricName(p.Metric) + "_gsum"
				s, ok = got.samples[fmt.Sprint(l)]
			}
		}
		if !ok || s.Bits != math.Float64bits(n.Sum) {
			t.Fatalf("%v: %v, %v, want %v", l, s, ok, n.Sum)
		}
	}
}

// TestScrapesAgree: whoever scrapes within the interval of a value sees the same, and then something else.
func TestScrapesAgree(t *testing.T) {
	served := testTarget(values.Int100)
	var mu sync.Mutex
	now := time.Unix(1_700_010_000, 0)
	served.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	srv := httptest.NewServer(served)
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
	served := testTarget(values.Int100)
	served.Fleet.Churn.Rollout = time.Hour
	for path, want := range map[string]int{
		"/targets/0/metrics": 200, "/targets/2/metrics": 200, "/targets/3/metrics": 503, "/targets/12/metrics": 404, "/targets/-1/metrics": 404,
		"/targets/00/metrics": 404, "/targets/x/metrics": 404, "/targets/0": 404, "/metrics": 404, "/": 404, "/targets//metrics": 404,
	} {
		if r := get(t, served, path, acceptText); r.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, r.StatusCode, want)
		}
	}
	w := httptest.NewRecorder()
	served.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/targets/0/metrics", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
	for header, want := range map[string]bool{"gzip": true, "deflate, gzip;q=0.5": true, "gzip;q=0": false, "": false, "br": false} {
		r := httptest.NewRequest(http.MethodGet, "/targets/0/metrics", nil)
		r.Header.Set("Accept-Encoding", header)
		w := httptest.NewRecorder()
		served.ServeHTTP(w, r)
		if got := w.Header().Get("Content-Encoding") == "gzip"; got != want {
			t.Errorf("Accept-Encoding %q: compressed %v", header, got)
		}
	}
	for _, change := range []func(*target.Target){
		func(t *target.Target) { t.Fleet.Churn.ValueInterval = 0 }, func(t *target.Target) { t.Fleet.Scrapers = 2 }, func(t *target.Target) { t.Fleet.Targets = 0 },
	} {
		bad := testTarget(values.Int100)
		change(bad)
		if err := bad.Fleet.CheckScraped(); !errors.Is(err, model.ErrInvalid) {
			t.Errorf("%+v: %v", bad.Fleet, err)
		}
	}
}

// TestDiscovery: the labels of a target and those that it exposes are together the labels of remote write.
func TestDiscovery(t *testing.T) {
	served := testTarget(values.Int100)
	r := get(t, served, "http://here:1234/sd", "application/json")
	var groups []target.Group
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
		series := int64(n) * served.Fleet.PerTarget()
		all := withoutTarget(&served.Fleet, served.Fleet.LabelsOf(series, 0))
		maps.Copy(all, g.Labels)
		if !maps.Equal(all, served.Fleet.LabelsOf(series, 0)) {
			t.Errorf("%v", all)
		}
	}
}

// TestScrapeMemory: what a scrape takes does not depend on how many series there are.
func TestScrapeMemory(t *testing.T) {
	for _, accept := range []string{acceptText, acceptOpen, acceptProto} {
		served := testTarget(values.HistogramInt)
		served.Fleet.Metrics, served.Fleet.Series = 2, 20_000
		r := httptest.NewRequest(http.MethodGet, "/targets/0/metrics", nil)
		r.Header.Set("Accept", accept)
		var before, after runtime.MemStats
		w := &discarding{header: http.Header{}}
		runtime.ReadMemStats(&before)
		served.ServeHTTP(w, r)
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
	served := testTarget(values.Int100)
	ctx, cancel := context.WithCancel(t.Context())
	type outcome struct {
		report *target.Report
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		report, err := served.Serve(ctx, l)
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
	if out.err != nil || out.report.Sent != served.Fleet.PerTarget() || out.report.Requests != 1 || out.report.RawBytes != size || out.report.Bytes >= size/2 {
		t.Errorf("%+v, %v; %d bytes", out.report, out.err, size)
	}
}

// BenchmarkScrape is the CPU budget of a target.
func BenchmarkScrape(b *testing.B) {
	for _, accept := range []string{acceptText, acceptOpen, acceptProto} {
		for _, m := range []values.ValueModel{values.Int100, values.HistogramInt} {
			b.Run(m.String()+"-"+accept[:20], func(b *testing.B) {
				served := testTarget(m)
				served.Fleet.Metrics, served.Fleet.Series = 100, 100
				r := httptest.NewRequest(http.MethodGet, "/targets/0/metrics", nil)
				r.Header.Set("Accept", accept)
				for b.Loop() {
					served.ServeHTTP(&discarding{header: http.Header{}}, r)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(served.Tally.Sent.Load()), "ns/sample")
			})
		}
	}
}
