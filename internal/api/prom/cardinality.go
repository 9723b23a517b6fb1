package prom

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
)

// Cardinality counts what makes series.
type Cardinality interface {
	// Count counts series by their labels.
	Count(ctx context.Context, q *CountQuery) (*Counts, error)
	// Active counts the active series, and what has created series.
	Active(ctx context.Context, q *ActiveQuery) (*Active, error)
	// Unused finds what no query has asked for.
	Unused(ctx context.Context, q *UnusedQuery) (*Unused, error)
}

// The lists of [Cardinality.Count].
const (
	CountMetrics = "metrics"
	CountLabels  = "labels"
	CountValues  = "values"
)

// CountQuery says which series to count, and by what.
type CountQuery struct {
	Tenant string
	Signal model.Signal
	// By is CountMetrics, CountLabels or CountValues. Label is the label of CountValues; empty: all labels.
	By, Label string
	Matchers  []*labels.Matcher
	// Day is the day with samples of the series; zero: the series of now. Against is a day to compare it with.
	Day, Against time.Time
	Limit        int
	Quota        *model.Quota
	Cost         *model.Cost
}

// Counts are series by metric, label name or value.
type Counts struct {
	// Series is the number of series.
	Series uint64 `json:"series"`
	// Before is that of the day to compare with.
	Before *uint64 `json:"before,omitempty"`
	// Distinct is how many metrics, label names or values there are, of which the list has the first.
	Distinct uint64 `json:"distinct"`
	// Undercount is what the number of series of any entry may be too low by, and DistinctError the relative
	// standard error of numbers of values that are not exact. 0: all are exact.
	Undercount    uint64  `json:"undercount"`
	DistinctError float64 `json:"distinctError"`
	// List has the entries with the greatest numbers, or with a day to compare with the greatest changes.
	List []CountEntry `json:"list"`
}

// CountEntry is a metric, a label name or a value.
type CountEntry struct {
	Name string `json:"name"`
	// Series is the number of series, or with a day to compare with the number of CountMetrics and CountValues.
	Series uint64 `json:"series"`
	// Values and ValueBytes are those of CountLabels: how many values the label has, and how many bytes they
	// take in all series together.
	Values     *uint64 `json:"values,omitempty"`
	ValueBytes *uint64 `json:"valueBytes,omitempty"`
	// Before is the number on the day to compare with: of series, or for CountLabels of values.
	Before *uint64 `json:"before,omitempty"`
}

// ActiveQuery asks for the active series of a tenant, and the days from one to another.
type ActiveQuery struct {
	Tenant   string
	Signal   model.Signal
	From, To time.Time
	Limit    int
}

// Active is what a tenant has, and what creates it.
type Active struct {
	// Active is the number of active series of both signals.
	Active int64 `json:"active"`
	// New are the series created in the last Seconds.
	New Creations `json:"new"`
	// Days are the series created on each day, newest first.
	Days []Creations `json:"days"`
}

// Creations are the series that were created in some time.
type Creations struct {
	Day        string       `json:"day,omitempty"`
	Seconds    float64      `json:"seconds,omitempty"`
	Series     uint64       `json:"series"`
	Undercount uint64       `json:"undercount"`
	List       []CountEntry `json:"list"`
}

// maxActiveDays is how many days of creations are kept.
const maxActiveDays = 90

const (
	maxCounted     = 10_000
	defaultCounted = 20
)

// cardinalityEndpoints are Shale's own.
func (h *Handler) cardinalityEndpoints() []api.Endpoint {
	of := func(by string) api.Endpoint {
		return api.Endpoint{Pattern: prefix + "cardinality/" + by, Name: "cardinality_" + by, Needs: bounded, Serve: func(r *api.Request) (*api.Response, error) {
			return h.count(r, by)
		}}
	}
	return []api.Endpoint{
		of(CountMetrics), of(CountLabels), of(CountValues),
		{Pattern: prefix + "cardinality/unused", Name: "cardinality_unused", Needs: bounded, Serve: h.unused},
		{Pattern: prefix + "cardinality/active", Name: "cardinality_active", Needs: bounded, Serve: h.active},
	}
}

func (h *Handler) count(r *api.Request, by string) (*api.Response, error) {
	q := &CountQuery{Tenant: r.Tenant(), By: by, Label: r.Form.Get("label"), Quota: r.Quota, Cost: r.Cost}
	var bad *api.Error
	if q.Signal, q.Limit, bad = countParams(r.Form); bad != nil {
		return nil, bad
	}
	switch {
	case by != CountValues && q.Label != "":
		return nil, badData("invalid parameter %q: only cardinality/values has it", "label")
	case by == CountMetrics && q.Signal == model.Logs:
		return nil, badData("invalid parameter %q: streams of logs have no metrics; ask cardinality/values with label=service_name", "signal")
	}
	if q.Day, bad = dayParam(r.Form, "day"); bad != nil {
		return nil, bad
	}
	if q.Against, bad = dayParam(r.Form, "against"); bad != nil {
		return nil, bad
	}
	if q.Day.IsZero() && !q.Against.IsZero() {
		return nil, badData("invalid parameter %q: expected a day to compare with it in %q", "against", "day")
	}
	sets, err := h.matcherSets(r, plainBad)
	switch {
	case err != nil:
		return nil, err
	case len(sets) > 1:
		return nil, badData("invalid parameter %q: expected at most one selector, got %d: a series that two select would count twice", "match[]", len(sets))
	case len(sets) == 1:
		q.Matchers = sets[0]
	}
	counts := &Counts{}
	if h.o.Cardinality != nil {
		if counts, err = h.o.Cardinality.Count(r.Context(), q); err != nil {
			return nil, err
		}
	}
	if counts.List == nil {
		counts.List = []CountEntry{}
	}
	return jsonResponse(counts)
}

func (h *Handler) active(r *api.Request) (*api.Response, error) {
	q := &ActiveQuery{Tenant: r.Tenant()}
	var bad *api.Error
	if q.Signal, q.Limit, bad = countParams(r.Form); bad != nil {
		return nil, bad
	}
	days := 1
	if text := r.Form.Get("days"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxActiveDays {
			return nil, badData("invalid parameter %q: expected a number from 1 to %d, got %.40q", "days", maxActiveDays, text)
		}
		days = n
	}
	q.To = h.o.Now().UTC()
	q.From = q.To.AddDate(0, 0, 1-days)
	a := &Active{}
	if h.o.Cardinality != nil {
		var err error
		if a, err = h.o.Cardinality.Active(r.Context(), q); err != nil {
			return nil, err
		}
	}
	if a.Days == nil {
		a.Days = []Creations{}
	}
	return jsonResponse(a)
}

// countParams reads the signal and the limit.
func countParams(form url.Values) (s model.Signal, limit int, bad *api.Error) {
	switch text := form.Get("signal"); text {
	case "", "metrics":
		s = model.Metrics
	case "logs":
		s = model.Logs
	default:
		return s, 0, badData("invalid parameter %q: expected metrics or logs, got %.40q", "signal", text)
	}
	limit = defaultCounted
	if text := form.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxCounted {
			return s, 0, badData("invalid parameter %q: expected a number from 1 to %d, got %.40q", "limit", maxCounted, text)
		}
		limit = n
	}
	return s, limit, nil
}

// dayParam reads an optional day, in UTC.
func dayParam(form url.Values, name string) (time.Time, *api.Error) {
	text := form.Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.DateOnly, text)
	if err != nil || t.Before(minTime) || t.After(maxTime) {
		return time.Time{}, badData("invalid parameter %q: expected a day such as 2026-11-26, got %.40q", name, text)
	}
	return t, nil
}

// UnusedQuery asks for what no query of a tenant has asked for.
type UnusedQuery struct {
	Tenant string
	Limit  int
	Quota  *model.Quota
	Cost   *model.Cost
}

// Unused are the metrics and labels that no query has asked for lately.
type Unused struct {
	// Since is the first day of the queries that were seen, and Days are the days until now; 30 are enough.
	Since string `json:"since"`
	Days  int    `json:"days"`
	// Full says that there were too many different queries to remember them. Then both lists are empty.
	Full bool `json:"full"`
	// Series are those of the tenant, and Metrics and Labels count those that are unused.
	Series  uint64 `json:"series"`
	Metrics int    `json:"metrics"`
	Labels  int    `json:"labels"`
	// Saved is what the listed metrics take together.
	Saved Saving `json:"saved"`
	// ByMetric has the unused metrics with most series, and ByLabel the unused labels with most bytes.
	ByMetric []UnusedMetric `json:"byMetric"`
	ByLabel  []UnusedLabel  `json:"byLabel"`
	// Relabel drops the listed metrics, and the labels that tell no series apart, in the form of
	// write_relabel_configs of Prometheus.
	Relabel string `json:"relabel"`
}

// Saving is what dropping something saves. All but the series are estimates.
type Saving struct {
	Series          uint64  `json:"series"`
	SamplesPerDay   float64 `json:"samplesPerDay"`
	BytesPerDay     float64 `json:"bytesPerDay"`
	DollarsPerMonth float64 `json:"dollarsPerMonth"`
}

// UnusedMetric is a metric that no query has asked for.
type UnusedMetric struct {
	Name string `json:"name"`
	Saving
}

// UnusedLabel is a label that no query has asked for.
type UnusedLabel struct {
	Name       string `json:"name"`
	Series     uint64 `json:"series"`
	Values     uint64 `json:"values"`
	ValueBytes uint64 `json:"valueBytes"`
	// Droppable says that the label tells no series apart: all series have it, with one value.
	Droppable bool `json:"droppable"`
}

func (h *Handler) unused(r *api.Request) (*api.Response, error) {
	q := &UnusedQuery{Tenant: r.Tenant(), Quota: r.Quota, Cost: r.Cost}
	var bad *api.Error
	if _, q.Limit, bad = countParams(r.Form); bad != nil {
		return nil, bad
	}
	u := &Unused{}
	if h.o.Cardinality != nil {
		var err error
		if u, err = h.o.Cardinality.Unused(r.Context(), q); err != nil {
			return nil, err
		}
	}
	if u.ByMetric == nil {
		u.ByMetric = []UnusedMetric{}
	}
	if u.ByLabel == nil {
		u.ByLabel = []UnusedLabel{}
	}
	return jsonResponse(u)
}
