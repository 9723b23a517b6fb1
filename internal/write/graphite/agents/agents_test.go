package agents

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/goleak"

	"github.com/shaledb/shale/internal/write"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sink hands over what is stored.
type sink struct{ stored chan map[string]float64 }

func (s sink) Store(ctx context.Context, tenant string, paths []string, times []int64, values []float64) error {
	m := map[string]float64{}
	for i := range paths {
		m[tenant+" "+paths[i]] = values[i]
	}
	select {
	case s.stored <- m:
	case <-ctx.Done():
	}
	return ctx.Err()
}

func TestPoints(t *testing.T) {
	reg := prometheus.NewRegistry()
	f := promauto.With(reg)
	received := f.NewCounterVec(prometheus.CounterOpts{Name: "shale_graphite_received_points_total"}, []string{"transport"})
	discarded := f.NewCounterVec(prometheus.CounterOpts{Name: "shale_write_discarded_samples_total"}, []string{"reason"})
	cpu := f.NewCounter(prometheus.CounterOpts{Name: "process_cpu_seconds_total"})
	sent := f.NewCounterVec(prometheus.CounterOpts{Name: "shale_graphite_relay_sent_points_total"}, []string{"destination"})
	sent.WithLabelValues("10.0.0.1:2004").Add(8)
	connections := f.NewGauge(prometheus.GaugeOpts{Name: "shale_graphite_connections"})
	received.WithLabelValues("tcp").Add(1000) // before the start
	now := int64(0)
	w := newWriter(Options{Prefix: "carbon", Host: "a.example.com", Gatherer: reg, Now: func() int64 { return now }, Logger: slog.New(slog.DiscardHandler)})
	expect := func(want map[string]float64) {
		t.Helper()
		paths, values := w.points()
		got := map[string]float64{}
		for i := range paths {
			got[paths[i]] = values[i]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}
	received.WithLabelValues("tcp").Add(5)
	received.WithLabelValues("udp").Add(2)
	discarded.WithLabelValues(write.ReasonBlacklisted).Add(3)
	discarded.WithLabelValues(write.ReasonNotForwarded).Add(10)
	discarded.WithLabelValues(write.ReasonNaN).Add(100)
	discarded.WithLabelValues(write.ReasonRelayed).Add(20)
	sent.WithLabelValues("10.0.0.1:2004").Add(2)
	sent.WithLabelValues("[fe80::1]:2004:a").Add(1)
	cpu.Add(30)
	connections.Set(4)
	now += int64(time.Minute)
	const agent, relay = "carbon.agents.a_example_com.", "carbon.relays.a_example_com.destinations."
	expect(map[string]float64{
		agent + "metricsReceived": 37, agent + "committedPoints": 7, agent + "activeConnections": 4, agent + "blacklistMatches": 3,
		agent + "whitelistRejects": 0, agent + "cpuUsage": 50, relay + "10_0_0_1:2004:None.sent": 2, relay + "fe80::1:2004:a.sent": 1,
	})
	now += int64(time.Minute)
	connections.Set(1)
	expect(map[string]float64{
		agent + "metricsReceived": 0, agent + "committedPoints": 0, agent + "activeConnections": 1, agent + "blacklistMatches": 0,
		agent + "whitelistRejects": 0, agent + "cpuUsage": 0, relay + "10_0_0_1:2004:None.sent": 0, relay + "fe80::1:2004:a.sent": 0,
	})
}

func TestWriter(t *testing.T) {
	reg := prometheus.NewRegistry()
	promauto.With(reg).NewGauge(prometheus.GaugeOpts{Name: "process_resident_memory_bytes"}).Set(7)
	s := sink{make(chan map[string]float64)}
	w := Start(Options{Interval: time.Millisecond, Prefix: "p", Host: "h", Tenant: "t", Gatherer: reg, Sink: s, Now: func() int64 { return time.Now().UnixNano() }, Logger: slog.New(slog.DiscardHandler)})
	if got := <-s.stored; got["t p.agents.h.memUsage"] != 7 || len(got) != 1 {
		t.Errorf("stored %v", got)
	}
	w.Close()
}

// TestFamiliesExist: the metrics that series are made of are in the table of all metrics, which is made from
// the source. Otherwise a series would end without a word when its metric gets another name.
func TestFamiliesExist(t *testing.T) {
	doc, err := os.ReadFile("../../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range table() {
		for _, from := range s.from {
			if strings.HasPrefix(from.family, own) && !strings.Contains(string(doc), "| `"+from.family+"` |") {
				t.Errorf("%s.%s is made of %s, which is no metric", s.daemon, s.name, from.family)
			}
		}
	}
}
