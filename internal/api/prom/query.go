package prom

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/prometheus/prometheus/util/stats"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
	shalepromql "github.com/shaledb/shale/internal/read/promql"
)

// maxPoints is upstream's limit on the steps of a range query: enough for a week of minutes or a year of
// hours.
const maxPoints = 11000

var errTruncated = errors.New("results truncated due to limit")

func (h *Handler) query(r *api.Request) (*api.Response, error) {
	if _, bad := limitParam(r.Form); bad != nil {
		return nil, bad
	}
	at, bad := timeParam(r.Form, "time", h.o.Now())
	if bad != nil {
		return nil, bad
	}
	store, err := h.queried(r)
	if err != nil {
		return nil, err
	}
	return h.run(r, steps{at, at, 0}, func(ctx context.Context, opts promql.QueryOpts, q string) (promql.Query, error) {
		return h.o.Engine.NewInstantQuery(ctx, store, opts, q, at)
	})
}

func (h *Handler) queryRange(r *api.Request) (*api.Response, error) {
	if _, bad := limitParam(r.Form); bad != nil {
		return nil, bad
	}
	start, err := parseTime(r.Form.Get("start"))
	if err != nil {
		return nil, badParam("start", err)
	}
	end, err := parseTime(r.Form.Get("end"))
	if err != nil {
		return nil, badParam("end", err)
	}
	if end.Before(start) {
		return nil, badParam("end", errors.New("end timestamp must not be before start time"))
	}
	step, err := parseDuration(r.Form.Get("step"))
	if err != nil {
		return nil, badParam("step", err)
	}
	if step <= 0 {
		return nil, badParam("step", errors.New("zero or negative query resolution step widths are not accepted. Try a positive integer"))
	}
	if step < time.Millisecond {
		// The engine counts in milliseconds and would divide by zero.
		return nil, badParam("step", errors.New("query resolution step widths below 1ms are not accepted"))
	}
	if end.Sub(start)/step > maxPoints {
		return nil, badData("exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)")
	}
	store, err := h.queried(r)
	if err != nil {
		return nil, err
	}
	return h.run(r, steps{start, end, step}, func(ctx context.Context, opts promql.QueryOpts, q string) (promql.Query, error) {
		return h.o.Engine.NewRangeQuery(ctx, store, opts, q, start, end, step)
	})
}

// queried returns the series of the tenant for a query, which may use rollups if the setting or the parameter
// `rollups` says so.
func (h *Handler) queried(r *api.Request) (storage.Queryable, error) {
	use := h.o.RollupUse == shalepromql.RollupsAlways
	switch param := r.Form.Get("rollups"); {
	case param == "":
	case param != "true" && param != "false":
		return nil, badParam("rollups", errors.New("must be true or false"))
	case param == "true" && (h.o.RollupUse == "" || h.o.RollupUse == shalepromql.RollupsOff):
		return nil, badParam("rollups", errors.New("the server makes no rollups for PromQL (query.rollups)"))
	default:
		use = param == "true"
	}
	store := h.store(r)
	if q, ok := store.(*shalepromql.Queryable); ok && use && h.o.Rollups != nil {
		q.Rollups = h.o.Rollups()
	}
	return store, nil
}

// steps are the times at which a query is evaluated. Without an interval it is one time.
type steps struct {
	start, end time.Time
	interval   time.Duration
}

// run evaluates a query and returns its result.
func (h *Handler) run(r *api.Request, at steps, open func(context.Context, promql.QueryOpts, string) (promql.Query, error)) (_ *api.Response, err error) {
	limit, bad := limitParam(r.Form)
	if bad != nil {
		return nil, bad
	}
	ctx := r.Context()
	if s := r.Form.Get("timeout"); s != "" {
		timeout, err := parseDuration(s)
		if err != nil {
			return nil, badParam("timeout", err)
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	opts, bad := queryOpts(r.Form)
	if bad != nil {
		return nil, bad
	}
	text := r.Form.Get("query")
	if err := h.checkQuery(r, text, at); err != nil {
		return nil, err
	}
	q, err := open(ctx, opts, text)
	if err != nil {
		return nil, badQuery(err)
	}
	keep := false
	defer func() {
		if !keep { // also when the engine panicked
			q.Close()
		}
	}()
	res := q.Exec(ctx)
	if res.Err != nil {
		return nil, res.Err
	}
	warnings := res.Warnings
	truncate(res, limit, &warnings)
	statistics, err := h.statistics(r, q.Stats(), &warnings)
	if err != nil {
		return nil, err
	}
	a := annotated(func(b *body) {
		b.Raw(`{"resultType":"`)
		b.Raw(string(res.Value.Type()))
		b.Raw(`","result":`)
		b.value(res.Value)
		b.Buf = append(b.Buf, statistics...)
		b.Raw("}")
	}, warnings, text)
	a.Done = q.Close
	keep = true
	return a, nil
}

// checkQuery refuses expressions that the engine would not survive.
func (h *Handler) checkQuery(r *api.Request, text string, at steps) error {
	if err := checkDepth(text); err != nil {
		return badQuery(err)
	}
	if err := (&regexCharge{quota: r.Quota}).text(text); err != nil {
		return err
	}
	expr, err := h.o.Parser.ParseExpr(text)
	if err != nil {
		return badQuery(err)
	}
	if h.o.Asked != nil {
		h.o.Asked(r.Tenant(), namedLabels(expr)...)
	}
	if err := checkGrowth(expr); err != nil {
		return badQuery(err)
	}
	// Durations are computed here as the engine will compute them.
	if expr, err = promql.PreprocessExpr(expr, at.start, at.end, at.interval); err != nil {
		return nil // the engine will report it, after errors that come first
	}
	return h.chargeSubqueries(expr, at.end.Sub(at.start), r.Quota)
}

// treeBytes is the memory of a syntax tree for each byte of its text.
const treeBytes = 64

// parse parses an expression that will not be evaluated. bad turns a syntax error into one of the API.
func (h *Handler) parse(r *api.Request, bad func(error) *api.Error) (parser.Expr, error) {
	text := r.Form.Get("query")
	if err := checkDepth(text); err != nil {
		return nil, bad(err)
	}
	if err := (&regexCharge{quota: r.Quota}).text(text); err != nil {
		return nil, err
	}
	expr, err := h.o.Parser.ParseExpr(text)
	if err != nil {
		return nil, bad(err)
	}
	return expr, nil
}

// badQuery names the parameter `query`.
func badQuery(err error) *api.Error { return badParam("query", err) }

func queryOpts(form url.Values) (promql.QueryOpts, *api.Error) {
	var lookback time.Duration
	if s := form.Get("lookback_delta"); s != "" {
		var err error
		if lookback, err = parseDuration(s); err != nil {
			return nil, badData("error parsing lookback delta duration: %w", err)
		}
	}
	stats := form.Get("stats")
	return shalepromql.QueryOpts{QueryOpts: promql.NewPrometheusQueryOpts(stats == "all", lookback), Statistics: stats != ""}, nil
}

// truncate cuts a result to the limit, with a warning.
func truncate(res *promql.Result, limit int, warnings *annotations.Annotations) {
	if limit <= 0 {
		return
	}
	switch v := res.Value.(type) {
	case promql.Matrix:
		if len(v) > limit {
			res.Value = v[:limit]
			warnings.Add(errTruncated)
		}
	case promql.Vector:
		if len(v) > limit {
			res.Value = v[:limit]
			warnings.Add(errTruncated)
		}
	}
}

// statistics returns the member `stats` of the data if the parameter `stats` asks for it: upstream's
// statistics with the statement of cost under "shale".
func (h *Handler) statistics(r *api.Request, s *stats.Statistics, warnings *annotations.Annotations) ([]byte, error) {
	param := r.Form.Get("stats")
	switch param {
	case "":
		return nil, nil
	case "true", "all":
	default:
		warnings.Add(fmt.Errorf("value %q for parameter \"stats\" is deprecated and will be rejected in the next major release, use %q or %q", param, "true", "all"))
	}
	upstream, err := json.Marshal(stats.NewQueryStats(s))
	if err != nil || len(upstream) < 2 || upstream[len(upstream)-1] != '}' {
		return nil, fmt.Errorf("%w: statistics: %w", model.ErrCorrupt, err)
	}
	out := append([]byte(`,"stats":`), upstream[:len(upstream)-1]...)
	if len(upstream) > len(`{}`) {
		out = append(out, ',')
	}
	out = append(out, `"shale":`...)
	return append(api.AppendCost(out, r.Cost, model.Metrics), '}'), nil
}
