package promwrite

import (
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/prometheus/prompb"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write/replicas"
	"github.com/shaledb/shale/internal/write/writetest"
)

// pair is a handler that elects, with a clock.
type pair struct {
	*Handler
	*writetest.Store
	now time.Time
	reg *prometheus.Registry
}

func newPair(t *testing.T, spareBytes int64) *pair {
	t.Helper()
	p := &pair{now: time.UnixMilli(nowMs), Store: writetest.NewStore(seed), reg: prometheus.NewRegistry()}
	table, err := replicas.Open(replicas.Options{
		Settings: replicas.Settings{ClusterLabel: "cluster", ReplicaLabel: "__replica__", Failover: 30 * time.Second, MaxClusters: 2},
		Now:      func() time.Time { return p.now }, Registerer: p.reg, SpareBytes: spareBytes,
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Handler = NewElecting(newPath(p.Store, testLimits()), table, nil)
	return p
}

// dropped returns how many samples were not stored because of another replica, and as repetitions.
func (p *pair) dropped(t *testing.T, name string) float64 {
	t.Helper()
	n, err := testutil.GatherAndCount(p.reg, name)
	families, err2 := p.reg.Gather()
	if err != nil || err2 != nil || n != 1 {
		t.Fatal(n, err, err2)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	return 0
}

// send sends a request in either version.
func (p *pair) send(t *testing.T, v version, req *prompb.WriteRequest) *httptest.ResponseRecorder {
	t.Helper()
	if v == v2 {
		return sendV2(p.Handler, encodeV2(t, translate(req)))
	}
	return send(p.Handler, encode(t, req))
}

// saysWritten returns what the response of version 2 says to have stored.
func saysWritten(w *httptest.ResponseRecorder) string {
	return w.Header().Get("X-Prometheus-Remote-Write-Samples-Written")
}

// TestOneReplicaIsStored: the label of the replica is not stored, the other replica gets a success for all
// its samples, and series without the labels pass.
func TestOneReplicaIsStored(t *testing.T) {
	long := fmt.Sprintf("%0300d", 7) // its label is not in the common form
	for _, v := range []version{v1, v2} {
		p := newPair(t, 0)
		of := func(replica string, value float64) *prompb.WriteRequest {
			return &prompb.WriteRequest{Timeseries: []prompb.TimeSeries{
				series(sample(nowMs, value), "__name__", "up", "__replica__", replica, "cluster", "eu", "zone", "1"),
				series(sample(nowMs, value), "__name__", "up", "__replica__", replica, "cluster", "eu", "long", long),
				series(sample(nowMs, value), "__replica__", replica, "cluster", "eu", "__name__", "down"), // not in order
				series(sample(nowMs, value), "__name__", "up", "cluster", "eu", "only", "cluster"),
				series(sample(nowMs, value), "__name__", "up", "__replica__", replica, "only", "replica"),
			}}
		}
		if w := p.send(t, v, of("a", 1)); w.Code != 204 || v == v2 && saysWritten(w) != "5" {
			t.Errorf("%s: the first: %d %s, %s written", v, w.Code, w.Body, saysWritten(w))
		}
		if w := p.send(t, v, of("b", 2)); w.Code != 204 || v == v2 && saysWritten(w) != "5" {
			t.Errorf("%s: the other: %d %s, %s written", v, w.Code, w.Body, saysWritten(w))
		}
		for row, want := range map[string]int{
			`anonymous{__name__="up", cluster="eu", zone="1"}`:            1,
			`anonymous{__name__="up", cluster="eu", long="` + long + `"}`: 1,
			`anonymous{__name__="down", cluster="eu"}`:                    1,
			`anonymous{__name__="up", cluster="eu", only="cluster"}`:      2,
			`anonymous{__name__="up", __replica__="a", only="replica"}`:   1,
			`anonymous{__name__="up", __replica__="b", only="replica"}`:   1,
		} {
			if got := p.Rows[row]; got == nil || got.Len() != want {
				t.Errorf("%s: %s has %v, want %d rows", v, row, got, want)
			}
		}
		if len(p.Rows) != 6 {
			t.Errorf("%s: stored %v", v, p.Rows)
		}
		if n := p.dropped(t, "shale_ha_deduplicated_samples_total"); n != 3 {
			t.Errorf("%s: %v samples of the other replica", v, n)
		}
	}
}

// TestMixedReplicas: each series of a request is judged by itself, as proxies mix them.
func TestMixedReplicas(t *testing.T) {
	for _, v := range []version{v1, v2} {
		p := newPair(t, 0)
		at := func(cluster, replica, name string) prompb.TimeSeries {
			return series(sample(nowMs, 1), "__name__", name, "__replica__", replica, "cluster", cluster)
		}
		w := p.send(t, v, &prompb.WriteRequest{Timeseries: []prompb.TimeSeries{
			at("1", "a", "x"), at("2", "b", "x"), at("1", "b", "x"), at("2", "a", "y"), at("1", "a", "y"), at("3", "a", "x"), at("2", "b", "y"),
		}})
		// There may be two clusters.
		if w.Code != 400 || !strings.Contains(w.Body.String(), "1 too_many_ha_clusters") || !strings.Contains(w.Body.String(), "ha.max-clusters is 2") || v == v2 && saysWritten(w) != "6" || !strings.HasPrefix(w.Body.String(), "4 samples stored, 1 sample left out") {
			t.Errorf("%s: %d %s, %s written", v, w.Code, w.Body, saysWritten(w))
		}
		if len(p.Rows) != 4 || p.Samples != 4 {
			t.Errorf("%s: stored %v", v, p.Rows)
		}
	}
}

// byTime sorts rows.
type byTime struct{ *model.Rows }

func (r byTime) Less(i, j int) bool { return r.Times[i] < r.Times[j] }
func (r byTime) Swap(i, j int) {
	r.Times[i], r.Times[j] = r.Times[j], r.Times[i]
	r.Values[i], r.Values[j] = r.Values[j], r.Values[i]
}

// TestFailover plays two replicas that scrape every 5 s and send every 5 s, with clocks up to 30 s apart, one
// of which stops for a while. Each time of the stored series is there once, it grows, and two samples are at
// most two intervals apart. Without memory for spares, no gap is longer than the failover, one interval and
// the difference of the clocks.
func TestFailover(t *testing.T) {
	const step, length = 5, 900
	for run := range uint64(40) {
		random := rand.New(rand.NewPCG(run, 1))
		v := []version{v1, v2}[run%2]
		spareBytes := int64(run/2%2) << 20
		p := newPair(t, spareBytes)
		skew := [2]int64{0, random.Int64N(61) - 30} // seconds
		stops, back := random.Int64N(300)+60, random.Int64N(300)+400
		down := random.IntN(2)
		begin := int64(nowMs - length*1000)
		for at := int64(0); at < length; at += step {
			for r := range int64(2) {
				if r == int64(down) && at >= stops && at < back || at == 0 && r == 1 && run%3 == 0 {
					continue
				}
				p.now = time.UnixMilli(begin + at*1000)
				// What it scraped in the last step, at its own phase.
				ms := begin + (at+skew[r])*1000 + r*1700
				w := p.send(t, v, &prompb.WriteRequest{Timeseries: []prompb.TimeSeries{
					series(sample(ms, float64(r)), "__name__", "up", "__replica__", string(rune('a'+r)), "cluster", "eu"),
				}})
				if w.Code != 204 {
					t.Fatalf("run %d: %d %s", run, w.Code, w.Body)
				}
			}
		}
		if len(p.Rows) != 1 {
			t.Fatalf("run %d: stored %v", run, p.Rows)
		}
		rows := p.Rows[`anonymous{__name__="up", cluster="eu"}`]
		sort.Sort(byTime{rows}) // what was kept is stored after the request that elects
		most := int64(30+2*step+max(skew[1], -skew[1])+2) * 1e9
		if spareBytes > 0 {
			most = 2 * step * 1e9
		}
		changes := 0
		for i := 1; i < rows.Len(); i++ {
			gap := rows.Times[i] - rows.Times[i-1]
			if rows.Values[i] != rows.Values[i-1] {
				changes++
			} else if gap != step*1e9 {
				t.Errorf("run %d: a gap of %d s of one replica", run, gap/1e9)
			}
			if gap <= 0 || gap > most {
				t.Errorf("run %d: row %d is %d s after the one before; skew %d s", run, i, gap/1e9, skew[1])
			}
		}
		if changes > 1 {
			t.Errorf("run %d: %d changes of the replica for one stop", run, changes)
		}
	}
}
