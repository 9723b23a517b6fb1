package verify

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/prompb"

	"github.com/shaledb/shale/internal/client"
	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/target"
	"github.com/shaledb/shale/internal/load/values"
	"github.com/shaledb/shale/internal/model"
)

// scrape does what a Prometheus does every 10 seconds: it asks the target a while after the time that it puts
// down, parses the response, adds labels, and ends what is not there any more.
func (p *promTenant) scrape(t *testing.T, s *promStore, served *target.Target, n int, at time.Time, lag time.Duration, scraper string, last map[string]message) {
	t.Helper()
	served.Now = func() time.Time { return at.Add(lag) }
	accept := acceptText
	if served.Fleet.Value.Histogram() {
		accept = acceptProto
	}
	r := get(t, served, "/targets/"+string(rune('0'+n))+"/metrics", accept)
	seen := map[string]message{}
	for _, one := range parseMessages(t, r) {
		for _, l := range served.Fleet.LabelTemplates() {
			if l.OfTarget {
				one.labels[l.Name] = served.Fleet.LabelValue(l, fleet.Place{Target: n}, 0)
			}
		}
		one.labels["prometheus"] = scraper
		one.samples[0].Ms = at.UnixMilli()
		if one.samples[0].Histogram != nil {
			one.samples[0].Histogram.Timestamp = at.UnixMilli()
		}
		seen[labelsKey(one.labels)] = one
	}
	var all []message
	for key, m := range last {
		if _, ok := seen[key]; ok {
			continue
		}
		end := client.Sample{Ms: at.UnixMilli(), Bits: model.StaleNaN}
		if m.samples[0].Histogram != nil {
			end.Histogram = &prompb.Histogram{Sum: math.Float64frombits(model.StaleNaN), Timestamp: end.Ms, Count: &prompb.Histogram_CountInt{}}
		}
		all = append(all, message{labels: m.labels, samples: []client.Sample{end}})
	}
	clear(last)
	for key, m := range seen {
		last[key] = m
		all = append(all, m)
	}
	p.append(s, all)
}

func TestScrapedVerifies(t *testing.T) {
	t.Parallel()
	for _, m := range []values.ValueModel{values.Int100, values.Walk, values.Random, values.HistogramInt} {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			served := testTarget(m)
			f := &served.Fleet
			f.Targets, f.Series, f.Exemplars = 2, 3, 0
			f.Churn = fleet.Churn{ValueInterval: 7 * time.Second, SeriesInterval: 45 * time.Second, Relabel: fleet.Spread{How: fleet.SpreadStagger, By: 13 * time.Second}}
			served.Epoch = time.Unix(1_000_000_000, 0)
			store := newPromStore(t)
			url := store.serve()
			tenant := store.tenant("t1")
			begin := time.Now().Truncate(time.Second).Add(-10 * time.Minute)
			end := begin.Add(200 * time.Second)
			for _, scraper := range []string{"a", "b"} {
				for n := range f.Targets {
					last := map[string]message{}
					for i := range 21 {
						at := begin.Add(time.Duration(i)*10*time.Second + time.Duration(n)*time.Second)
						tenant.scrape(t, store, served, n, at, time.Duration(i%5)*time.Second, scraper, last)
					}
				}
			}
			verify := func(change func(*ScrapeVerifier)) *Samples {
				t.Helper()
				v := &ScrapeVerifier{
					Server: &client.Server{URL: url, Tenant: "t1", HTTP: testClient()}, Fleet: *f, Epoch: served.Epoch, Series: 1000,
					From: begin, To: end, Every: 10 * time.Second, Late: 5 * time.Second, Concurrency: 2,
				}
				change(v)
				out, err := v.Run(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return out
			}
			series, scrapes := f.Total(), int64(20*2+1) // the second target's last scrape is past the end
			if v := verify(func(*ScrapeVerifier) {}); !v.OK() || v.Series != series || v.Compared < series*(scrapes-1) || v.Markers < series*6 {
				t.Errorf("%+v", v)
			}
			if v := verify(func(v *ScrapeVerifier) { v.Late = 0 }); v.Wrong < series || v.Missing+v.Extra > 0 {
				t.Errorf("no response may be later than its time: %+v", v)
			}
			if v := verify(func(v *ScrapeVerifier) { v.Fleet.Seed++ }); v.Missing != series {
				t.Errorf("another seed: %+v", v)
			}
			if v := verify(func(v *ScrapeVerifier) { v.Epoch = v.Epoch.Add(time.Minute) }); v.Wrong < series {
				t.Errorf("another epoch: %+v", v)
			}
			if v := verify(func(v *ScrapeVerifier) { v.To = end.Add(40 * time.Second) }); v.Missing < 2*3*series {
				t.Errorf("40 s without a sample: %+v", v)
			}
			store.change(func() {
				store.tamper = func(r *prompb.ReadResponse) {
					for _, ts := range r.Results[0].Timeseries {
						ts.Samples, ts.Histograms = ts.Samples[:len(ts.Samples)/2], ts.Histograms[:len(ts.Histograms)/2]
					}
				}
			})
			if v := verify(func(*ScrapeVerifier) {}); v.Missing < series || !strings.Contains(strings.Join(v.Examples, " "), "no sample between") {
				t.Errorf("half of all is lost: %+v", v)
			}
			store.change(func() { store.tamper = nil })
			if m.Histogram() {
				return
			}
			if v := verify(func(v *ScrapeVerifier) { v.Over = OverQuery }); !v.OK() || v.Compared < series*(scrapes-1) || v.Markers != 0 {
				t.Errorf("by queries: %+v", v)
			}
		})
	}
}
