package fleet

import (
	"fmt"
	"math"
	"time"

	"github.com/shaledb/shale/internal/load/values"
	"github.com/shaledb/shale/internal/model"
)

// Fleet is the shape of a load in Prometheus' terms: targets that expose the same metrics, each with the same
// number of series. Every series has constant labels in addition to its own. Series are numbered by tenant,
// then scraper, target and metric, which is the order of a scrape.
type Fleet struct {
	Seed uint64 `json:"seed"`
	// Tenants that each have the whole fleet, with the same labels and other values; 0 is one.
	Tenants int `json:"tenants,omitempty"`
	// Scrapers that each scrape all targets: the same values with a label per scraper; 0 is one
	// without label.
	Scrapers int               `json:"scrapers,omitempty"`
	Targets  int               `json:"targets"`
	Metrics  int               `json:"metrics"` // per target
	Series   int               `json:"series"`  // per target and metric
	Labels   int               `json:"labels"`  // constant ones, in addition to those that tell series apart
	Name     string            `json:"name"`    // of metrics, without their number
	Suffix   string            `json:"suffix,omitempty"`
	Value    values.ValueModel `json:"value"`
	Churn    Churn             `json:"churn,omitzero"`
	// Exemplars is the share of samples with an exemplar.
	Exemplars float64 `json:"exemplars,omitempty"`
	// Metadata sends type, help and unit of each metric, StartTimes the start time of each sample, where the
	// protocol can.
	Metadata   bool `json:"metadata,omitempty"`
	StartTimes bool `json:"start_times,omitempty"`
}

// Check returns an error of class [model.ErrInvalid] unless the shape can be sent.
func (f *Fleet) Check() error {
	switch {
	case f.Targets < 1 || f.Metrics < 1 || f.Series < 1 || f.Tenants < 0 || f.Scrapers < 0:
		return fmt.Errorf("%w: load: tenants, scrapers, targets, metrics and series must each be at least 1", model.ErrInvalid)
	case !fits(f.TenantCount(), f.ScraperCount(), f.Targets, f.Metrics, f.Series):
		return fmt.Errorf("%w: load: more than %d series", model.ErrInvalid, int64(MaxSeries))
	case f.Labels < 0 || f.Labels > 1000:
		return fmt.Errorf("%w: load: %d labels: want 0 to 1000", model.ErrInvalid, f.Labels)
	case !validMetricName(f.Name) || f.Suffix != "" && !validMetricName("_"+f.Suffix):
		return fmt.Errorf("%w: load: %q does not begin a metric name", model.ErrInvalid, f.Name)
	case !(f.Exemplars >= 0 && f.Exemplars <= 1):
		return fmt.Errorf("%w: load: a share of exemplars of %v: want 0 to 1", model.ErrInvalid, f.Exemplars)
	}
	return f.Churn.check(f.Targets)
}

// MaxSeries keeps the product of series and rounds within 64 bits.
const MaxSeries = 1 << 40

func fits(factors ...int) bool {
	product := 1
	for _, n := range factors {
		if product > MaxSeries/n {
			return false
		}
		product *= n
	}
	return true
}

// validMetricName is narrower than Prometheus' rule, so that names need no quoting in selectors.
func validMetricName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || i > 0 && '0' <= c && c <= '9') {
			return false
		}
	}
	return s != ""
}

func (f *Fleet) TenantCount() int  { return max(1, f.Tenants) }
func (f *Fleet) ScraperCount() int { return max(1, f.Scrapers) }

// Total returns the number of series at a time, of all tenants.
func (f *Fleet) Total() int64 { return int64(f.TenantCount()) * f.perTenant() }

func (f *Fleet) perTenant() int64 { return int64(f.ScraperCount()) * int64(f.Targets) * f.PerTarget() }
func (f *Fleet) PerTarget() int64 { return int64(f.Metrics) * int64(f.Series) }

// Place is the position of a series in its fleet.
type Place struct{ Tenant, Scraper, Target, Metric, Series int }

func (f *Fleet) Place(g int64) Place {
	var p Place
	p.Series, g = int(g%int64(f.Series)), g/int64(f.Series)
	p.Metric, g = int(g%int64(f.Metrics)), g/int64(f.Metrics)
	p.Target, g = int(g%int64(f.Targets)), g/int64(f.Targets)
	p.Scraper, p.Tenant = int(g%int64(f.ScraperCount())), int(g/int64(f.ScraperCount()))
	return p
}

// Next moves to the next series, and reports whether that belongs to another target.
func (p *Place) Next(f *Fleet) (moved bool) {
	if p.Series++; p.Series < f.Series {
		return false
	}
	p.Series = 0
	if p.Metric++; p.Metric < f.Metrics {
		return false
	}
	p.Metric = 0
	if p.Target++; p.Target < f.Targets {
		return true
	}
	p.Target = 0
	if p.Scraper++; p.Scraper == f.ScraperCount() {
		p.Scraper = 0
		p.Tenant++
	}
	return true
}

// Number returns the number of the series at a place.
func (f *Fleet) Number(p Place) int64 {
	return (f.Scrape(p)*int64(f.Metrics)+int64(p.Metric))*int64(f.Series) + int64(p.Series)
}

// Scrape numbers the pairs of scraper and target: what one scrape covers.
func (f *Fleet) Scrape(p Place) int64 {
	return (int64(p.Tenant)*int64(f.ScraperCount())+int64(p.Scraper))*int64(f.Targets) + int64(p.Target)
}

// Identity returns the number that determines the values of a series: all scrapers see the same values.
func (f *Fleet) Identity(p Place) uint64 {
	t := int64(p.Tenant)*int64(f.Targets) + int64(p.Target)
	return uint64((t*int64(f.Metrics)+int64(p.Metric))*int64(f.Series) + int64(p.Series))
}

// TenantName returns the name of a tenant: the given name, with a number appended if there are several.
func (f *Fleet) TenantName(prefix string, tenant int) string {
	if f.TenantCount() == 1 {
		return prefix
	}
	if prefix == "" {
		prefix = "load"
	}
	return prefix + "-" + padded(tenant, digits(f.TenantCount()-1))
}

// Batches returns how many requests of at most size series a round takes. A request has series of one tenant.
func (f *Fleet) Batches(size int) int {
	return f.TenantCount() * batches(f.perTenant(), size)
}

// batches returns how many requests the series of one tenant take.
func batches(series int64, size int) int { return int((series + int64(size) - 1) / int64(size)) }

// BatchOf returns the number of the request that has a series, and where its series end.
func (f *Fleet) BatchOf(g int64, size int) (batch int, end int64) {
	per := f.perTenant()
	tenant, at := g/per, g%per
	inTenant := at / int64(size)
	return int(tenant)*batches(per, size) + int(inTenant), tenant*per + min(per, (inTenant+1)*int64(size))
}

// Batch returns the tenant of a request, its first series and their number.
func (f *Fleet) Batch(batch, size int) (tenant int, first int64, n int) {
	per := batches(f.perTenant(), size)
	tenant = batch / per
	at := int64(batch%per) * int64(size)
	return tenant, int64(tenant)*f.perTenant() + at, int(min(int64(size), f.perTenant()-at))
}

// longestStagger bounds the products of targets and durations.
const longestStagger = time.Duration(math.MaxInt64 / 4)

func staggers(targets int, by time.Duration) bool {
	return by == 0 || time.Duration(targets) <= longestStagger/by
}
