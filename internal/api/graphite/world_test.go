package graphite

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/api/apitest"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/graphite/names"
)

// store is names in memory.
type store struct {
	mu      sync.Mutex
	tenants map[string][]string
	open    int64
}

// Load adds a name.
func (s *store) Load(tenant, line string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tenants[tenant] = append(s.tenants[tenant], line)
	return nil
}

// Open returns the number of sets that are not released.
func (s *store) Open() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

func (s *store) Names(_ context.Context, req *model.Request) ([]model.NameSet, func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := &model.NameList{Times: model.TimeRange{Min: 500e9, Max: 900e9}}
	for _, name := range s.tenants[req.Tenant] {
		n.AddName([]byte(name))
	}
	n.Sort()
	s.open++
	if !n.Times.Overlaps(req.Range) {
		return nil, s.release, nil
	}
	return []model.NameSet{n}, s.release, nil
}

func (s *store) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
}

// newWorld builds an API over an empty store. Its time is 1000 seconds.
func newWorld(t testing.TB, change func(*api.Options, *names.Limits)) *apitest.API {
	s := &store{tenants: make(map[string][]string)}
	o := Options{Options: api.Options{Now: func() time.Time { return time.Unix(1000, 0) }, Registerer: prometheus.NewRegistry()}}
	var l names.Limits
	if change != nil {
		change(&o.Options, &l)
	}
	finder := names.New(names.Options{From: s, Limits: l, Registerer: prometheus.NewRegistry()})
	o.Names = finder
	return apitest.Serve(t, New(o).Routes, s, finder.Close)
}

// TestAPI runs the files of testdata/api, with the limits max-names, max-bytes and max-body.
func TestAPI(t *testing.T) {
	g := apitest.Golden{
		New: func(t *testing.T, limits *datadriven.TestData) *apitest.API {
			return newWorld(t, func(o *api.Options, l *names.Limits) {
				if limits != nil {
					limits.MaybeScanArgs(t, "max-names", &l.MaxNames)
					limits.MaybeScanArgs(t, "max-bytes", &o.Limits.MaxBytes)
					limits.MaybeScanArgs(t, "max-body", &o.Limits.MaxBodyBytes)
				}
			})
		},
		JSON: "application/json",
	}
	g.Run(t, "testdata/api")
}

func TestPipeline(t *testing.T) {
	p := apitest.Pipeline{
		New: func(t *testing.T, change func(*api.Options)) http.Handler {
			return newWorld(t, func(o *api.Options, _ *names.Limits) {
				if change != nil {
					change(o)
				}
			})
		},
		Path: "/metrics/find?query=a", Full: http.StatusServiceUnavailable,
	}
	p.Run(t)
}
