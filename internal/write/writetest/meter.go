package writetest

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
)

// Meter is a head that knows no series, and a journal that stores nothing. When a batch comes, it collects
// garbage and notes how much memory is alive and how much is reserved: a batch comes when its request holds
// most. The path must register its metrics with Registry.
type Meter struct {
	Unknown
	Registry *prometheus.Registry
	// Use is that of the last request.
	Use Use

	before runtime.MemStats
}

// Use is what a request uses of the memory, in bytes.
type Use struct {
	// Reserved and Live are what is reserved and alive when the batch comes; Allocated is everything until
	// the response.
	Reserved, Live, Allocated int64
	Batches                   int
}

// NewMeter returns a meter with a registry.
func NewMeter() *Meter { return &Meter{Registry: prometheus.NewRegistry()} }

// Append notes what the request uses.
func (m *Meter) Append(context.Context, *model.Batch) error {
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	m.Use.Allocated += int64(now.TotalAlloc - m.before.TotalAlloc)
	m.Use.Batches++
	settle(&now)
	m.Use.Live = max(m.Use.Live, int64(now.HeapAlloc)-int64(m.before.HeapAlloc))
	m.Use.Reserved = max(m.Use.Reserved, m.reserved())
	live := m.before.HeapAlloc
	runtime.ReadMemStats(&m.before)
	m.before.HeapAlloc = live
	return nil
}

// reserved reads the gauge of the path.
func (m *Meter) reserved() int64 {
	families, _ := m.Registry.Gather()
	for _, f := range families {
		if strings.HasSuffix(f.GetName(), "write_inflight_bytes") {
			return int64(f.GetMetric()[0].GetGauge().GetValue())
		}
	}
	return 0
}

// Of returns what f uses, which sends a request.
func (m *Meter) Of(f func()) Use {
	m.Use = Use{}
	settle(&m.before)
	f()
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	m.Use.Allocated += int64(after.TotalAlloc - m.before.TotalAlloc)
	return m.Use
}

// settle collects garbage, also that of pools, and reads the statistics.
func settle(s *runtime.MemStats) {
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(s)
}

// slack is what a request may use without a reservation: its objects, small tables and pools.
const slack = 512 << 10

// Garbage is how many times what is reserved may be allocated in all: an array that doubles up to a bound
// leaves up to twice its size as garbage. It is more where series, streams or values are read one by one into
// memory of their own, of which little is alive at a time.
const Garbage = 3

// Check fails the test if a request used more than it had reserved: what is alive when the batch comes must
// be reserved, and what is allocated in all be at most so many times that.
func (u Use) Check(t *testing.T, what string, garbage int64) {
	t.Helper()
	u.CheckTimes(t, what, 1, garbage)
}

// CheckTimes is Check where so many times what is reserved may be alive.
func (u Use) CheckTimes(t *testing.T, what string, alive, garbage int64) {
	t.Helper()
	t.Logf("%s: %d KiB reserved, %d KiB live, %d KiB allocated", what, u.Reserved>>10, u.Live>>10, u.Allocated>>10)
	if u.Batches == 0 {
		t.Errorf("%s: no batch has come", what)
	}
	if u.Live > alive*u.Reserved+slack {
		t.Errorf("%s: %d bytes are alive, and %d are reserved", what, u.Live, u.Reserved)
	}
	if u.Allocated > garbage*u.Reserved+slack {
		t.Errorf("%s: %d bytes are allocated, and %d are reserved", what, u.Allocated, u.Reserved)
	}
}
