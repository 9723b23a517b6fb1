package prom_test

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"go.uber.org/goleak"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/api/apitest"
	"github.com/shaledb/shale/internal/api/prom"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	shalepromql "github.com/shaledb/shale/internal/read/promql"
	"github.com/shaledb/shale/internal/read/readtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// now is the time of every test.
var now = time.Unix(1000, 0)

// world is an API over a store in memory.
type world struct {
	*apitest.API
	memory store
	reg    *prometheus.Registry
}

// newWorld builds an API; change may change its options before.
func newWorld(t testing.TB, change func(*prom.Options)) *world {
	t.Helper()
	w := &world{memory: store{readtest.NewMemory(1)}, reg: prometheus.NewRegistry()}
	querier := read.New(read.Options{Sources: []read.Source{w.memory}})
	o := prom.Options{
		Engine: &shalepromql.Engine{Upstream: newEngine(t, 1000, 10*time.Second)},
		Queryable: func(tenant string, q *model.Quota, c *model.Cost) storage.Queryable {
			return &shalepromql.Queryable{Read: querier, Tenant: tenant, Quota: q, Cost: c}
		},
		Options: api.Options{
			Version:    api.Version{Version: "1.2.3", Revision: "r", Branch: "b", BuildUser: "u", BuildDate: "d", GoVersion: "g"},
			Now:        func() time.Time { return now },
			Registerer: w.reg,
		},
	}
	if change != nil {
		change(&o)
	}
	w.API = apitest.Serve(t, prom.New(o).Routes, w.memory, nil)
	return w
}

func newEngine(t testing.TB, maxSamples int, timeout time.Duration) *promql.Engine {
	e := promql.NewEngine(promql.EngineOpts{
		MaxSamples: maxSamples, Timeout: timeout, EnableAtModifier: true, EnableNegativeOffset: true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return 60_000 },
		Parser:                   parser.NewParser(parser.Options{}),
	})
	t.Cleanup(func() { e.Close() })
	return e
}

// store is a store in memory.
type store struct{ *readtest.Memory }

// Load adds a series: name{label="value"}, and samples as seconds:value.
func (s store) Load(tenant, line string) error {
	metric, samples := line, ""
	if i := strings.LastIndex(line, "}"); i >= 0 {
		metric, samples = line[:i+1], line[i+1:]
	} else {
		metric, samples, _ = strings.Cut(line, " ")
	}
	ls, err := parser.NewParser(parser.Options{}).ParseMetric(metric)
	if err != nil {
		return err
	}
	var pairs []string
	ls.Range(func(l labels.Label) { pairs = append(pairs, l.Name, l.Value) })
	l := model.LabelsOf(pairs...)
	var rows model.Rows
	for _, sample := range strings.Fields(samples) {
		at, value, _ := strings.Cut(sample, ":")
		t, err := strconv.ParseFloat(at, 64)
		if err != nil {
			return err
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return err
		}
		rows.Append(int64(t*1000)*1e6, math.Float64bits(v), 0)
	}
	s.Add(tenant, l.Key(7, model.Metrics), l, &rows)
	return nil
}
