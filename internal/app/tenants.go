package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/bill"
	"github.com/shaledb/shale/internal/config"
	"github.com/shaledb/shale/internal/filewatch"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/store/head"
	"github.com/shaledb/shale/internal/store/retention"
	"github.com/shaledb/shale/internal/write"
	"github.com/shaledb/shale/internal/write/groups"
	"github.com/shaledb/shale/internal/write/logs"
)

// maxTenantsFile bounds the file of tenants.
const maxTenantsFile = 64 << 20

// tenantBook holds the settings of tenants, which are read again when their file changes. A file that is
// wrong changes nothing. It is safe for concurrent use.
type tenantBook struct {
	c     *config.Config
	log   *slog.Logger
	now   atomic.Pointer[config.Tenants]
	file  *filewatch.Watcher
	fresh prometheus.Gauge
	// changed is called after the rules of retention have changed; nil: none is called.
	changed atomic.Pointer[func()]
	// close ends the watching.
	close func()
}

// openTenants reads the file of tenants, if there is one, and watches it until close.
func openTenants(ctx context.Context, c *config.Config, reg prometheus.Registerer, log *slog.Logger) (*tenantBook, error) {
	t := &tenantBook{c: c, log: log, close: func() {}}
	t.now.Store(c.EveryTenant())
	f := promauto.With(reg)
	t.fresh = f.NewGauge(prometheus.GaugeOpts{Name: "shale_tenants_reload_success", Help: "1 if the file of tenants was last read without an error; while it is 0, the previous limits apply."})
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: "shale_tenants_own_settings", Help: "Tenants that have a section of their own in the file of tenants."},
		func() float64 { return float64(t.now.Load().Len()) })
	t.fresh.Set(1)
	if c.TenantsFile == "" {
		return t, nil
	}
	t.file = filewatch.New(c.TenantsFile)
	if err := t.load(); err != nil {
		return nil, err
	}
	t.close = watchFile(ctx, t.watch)
	return t, nil
}

// sameForAll returns the limits of an engine for the writes of all tenants.
func sameForAll(o *EngineOptions) *tenantBook {
	c := config.Config{Write: o.Write, Head: o.Head}
	t := &tenantBook{c: &c, close: func() {}}
	all := c.EveryTenant()
	all.Of("").Write = o.Write
	t.now.Store(all)
	return t
}

// maxShorter bounds the tenants that the log names.
const maxShorter = 10

// load reads the file. After an error the settings are those of before.
func (t *tenantBook) load() (err error) {
	defer func() {
		t.fresh.Set(1)
		if err != nil {
			t.fresh.Set(0)
		}
	}()
	read, err := ReadTenants(t.c.TenantsFile, t.c)
	if err != nil {
		return err
	}
	before := t.now.Swap(read)
	same := before != nil && before.Retention() != nil && before.Retention().Same(read.Retention())
	if changed := t.changed.Load(); changed != nil && !same {
		(*changed)()
		if list := read.Shorter(before, maxShorter); len(list) > 0 {
			t.log.Warn("the file of tenants shortens retention: rows beyond it are hidden now, and dropped for good within minutes", "least", list)
		}
	}
	return nil
}

// ReadTenants reads a file of tenants. What it does not set is as in the configuration.
func ReadTenants(path string, c *config.Config) (*config.Tenants, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: tenants.file: %w", model.ErrInvalid, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxTenantsFile+1))
	if err == nil && len(text) > maxTenantsFile {
		err = fmt.Errorf("%s has more than %d bytes", path, maxTenantsFile)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: tenants.file: %w", model.ErrInvalid, err)
	}
	return config.ParseTenants(path, text, c)
}

// watch reads the file again when it has changed, looking each interval, and at once when hurry says so.
func (t *tenantBook) watch(ctx context.Context, interval time.Duration, hurry <-chan os.Signal) {
	t.file.Run(ctx, interval, hurry, func() {
		if err := t.load(); err != nil {
			if errors.Is(err, os.ErrNotExist) {
				err = fmt.Errorf("%w; put it back, or start without tenants.file", err)
			}
			t.log.Error("cannot read the file of tenants; keeping the previous limits", "err", err)
			return
		}
		t.log.Info("read the file of tenants", "file", t.c.TenantsFile, "tenants", t.now.Load().Len())
	})
}

// The limits of a tenant as each room takes them. The results are shared, and never changed.

func (t *tenantBook) write(tenant string) *write.Limits      { return &t.now.Load().Of(tenant).Write }
func (t *tenantBook) head(tenant string) head.TenantLimits   { return t.now.Load().Of(tenant).Head }
func (t *tenantBook) groups(tenant string) *groups.Limits    { return &t.now.Load().Of(tenant).Groups }
func (t *tenantBook) lines(tenant string) *logs.Rules        { return &t.now.Load().Of(tenant).Lines }
func (t *tenantBook) queries(tenant string) *api.Limits      { return &t.now.Load().Of(tenant).Query }
func (t *tenantBook) retention() *retention.Rules            { return t.now.Load().Retention() }
func (t *tenantBook) bucketReads(tenant string) *bill.Limits { return &t.now.Load().Of(tenant).Bill }

// maxShownTenants bounds the tenants that have metrics of their own. The others share one, whose name no
// tenant can have.
const (
	maxShownTenants = 100
	otherTenants    = "(other)"
)

// tenantMeter counts what tenants write. A tenant has metrics of its own once it has stored a row, so a flood
// of names costs nothing. It is safe for concurrent use.
type tenantMeter struct {
	samples, lines, lineBytes, requests, requestBytes *prometheus.CounterVec // by tenant
	discardedSamples, discardedLines                  *prometheus.CounterVec // by tenant and reason

	mu    sync.RWMutex
	shown map[string]*tenantCounters
	other *tenantCounters
}

// tenantCounters are the metrics of one tenant.
type tenantCounters struct {
	name                                              string
	samples, lines, lineBytes, requests, requestBytes prometheus.Counter
}

var _ write.Meter = (*tenantMeter)(nil)

func newTenantMeter(reg prometheus.Registerer) *tenantMeter {
	f := promauto.With(reg)
	vec := func(name, help string, labels []string) *prometheus.CounterVec {
		return f.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &tenantMeter{
		samples:          vec("shale_tenant_samples_total", "Samples, histograms and exemplars of a tenant that are durable; beyond 100 tenants, further ones count as (other).", []string{"tenant"}),
		lines:            vec("shale_tenant_lines_total", "Log lines of a tenant that are durable; beyond 100 tenants, further ones count as (other).", []string{"tenant"}),
		lineBytes:        vec("shale_tenant_line_bytes_total", "Bytes of log lines of a tenant that are durable, without their structured metadata; beyond 100 tenants, further ones count as (other).", []string{"tenant"}),
		requests:         vec("shale_tenant_write_requests_total", "Write requests of a tenant over HTTP whose body was read; beyond 100 tenants, further ones count as (other).", []string{"tenant"}),
		requestBytes:     vec("shale_tenant_write_request_bytes_total", "Bytes of the write requests of a tenant over HTTP, as sent and as decoded together; beyond 100 tenants, further ones count as (other).", []string{"tenant"}),
		discardedSamples: vec("shale_discarded_samples_total", "Samples of a tenant received and not stored, by reason; those that the sender may send again count each time; beyond 100 tenants, further ones count as (other).", []string{"tenant", "reason"}),
		discardedLines:   vec("shale_discarded_lines_total", "Log lines of a tenant received and not stored, by reason; those that the sender may send again count each time; beyond 100 tenants, further ones count as (other).", []string{"tenant", "reason"}),
		shown:            make(map[string]*tenantCounters),
	}
	m.other = m.counters(otherTenants)
	return m
}

func (m *tenantMeter) counters(tenant string) *tenantCounters {
	return &tenantCounters{
		name: tenant, samples: m.samples.WithLabelValues(tenant), lines: m.lines.WithLabelValues(tenant), lineBytes: m.lineBytes.WithLabelValues(tenant),
		requests: m.requests.WithLabelValues(tenant), requestBytes: m.requestBytes.WithLabelValues(tenant),
	}
}

// of returns the metrics of a tenant, or those of all others.
func (m *tenantMeter) of(tenant string) *tenantCounters {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if t := m.shown[tenant]; t != nil {
		return t
	}
	return m.other
}

// Stored counts durable rows.
func (m *tenantMeter) Stored(tenant string, n write.Counts) {
	if n.Total() == 0 {
		return
	}
	t := m.of(tenant)
	if t == m.other {
		t = m.show(tenant)
	}
	t.samples.Add(float64(n.Samples + n.Histograms + n.Exemplars))
	t.lines.Add(float64(n.Lines))
	t.lineBytes.Add(float64(n.LineBytes))
}

// show gives a tenant metrics of its own, if there is room.
func (m *tenantMeter) show(tenant string) *tenantCounters {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.shown[tenant]
	switch {
	case t != nil:
	case len(m.shown) >= maxShownTenants:
		t = m.other
	default:
		t = m.counters(tenant)
		m.shown[tenant] = t
	}
	return t
}

// Discarded counts rows that were received and not stored.
func (m *tenantMeter) Discarded(tenant, reason string, n write.Counts) {
	name := m.of(tenant).name
	if samples := n.Samples + n.Histograms + n.Exemplars; samples > 0 {
		m.discardedSamples.WithLabelValues(name, reason).Add(float64(samples))
	}
	if n.Lines > 0 {
		m.discardedLines.WithLabelValues(name, reason).Add(float64(n.Lines))
	}
}

// Received counts a request and its bytes.
func (m *tenantMeter) Received(tenant string, bytes int64) {
	t := m.of(tenant)
	t.requests.Inc()
	t.requestBytes.Add(float64(bytes))
}
