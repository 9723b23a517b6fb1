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
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/prometheus/prometheus/util/stats"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
	shalepromql "github.com/shaledb/shale/internal/read/promql"
)

// maxPoints is upstream's limit on the steps of a range query: enough for a week of minutes or a year of hours.
const maxPoints = 11000

var errTruncated = errors.New("results truncated due to limit")

func (h *Handler) query(r *request) (*answer, error) {
	if _, bad := limitParam(r.form); bad != nil {
		return nil, bad
	}
	at, bad := timeParam(r.form, "time", h.o.Now())
	if bad != nil {
		return nil, bad
	}
	return h.run(r, 0, func(ctx context.Context, opts promql.QueryOpts, q string) (promql.Query, error) {
		return h.o.Engine.NewInstantQuery(ctx, r.store, opts, q, at)
	})
}

func (h *Handler) queryRange(r *request) (*answer, error) {
	if _, bad := limitParam(r.form); bad != nil {
		return nil, bad
	}
	start, err := parseTime(r.form.Get("start"))
	if err != nil {
		return nil, badParam("start", err)
	}
	end, err := parseTime(r.form.Get("end"))
	if err != nil {
		return nil, badParam("end", err)
	}
	if end.Before(start) {
		return nil, badParam("end", errors.New("end timestamp must not be before start time"))
	}
	step, err := parseDuration(r.form.Get("step"))
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
	return h.run(r, end.Sub(start), func(ctx context.Context, opts promql.QueryOpts, q string) (promql.Query, error) {
		return h.o.Engine.NewRangeQuery(ctx, r.store, opts, q, start, end, step)
	})
}

// run evaluates a query over a span of time and gives its result as an answer.
func (h *Handler) run(r *request, span time.Duration, open func(context.Context, promql.QueryOpts, string) (promql.Query, error)) (_ *answer, err error) {
	limit, bad := limitParam(r.form)
	if bad != nil {
		return nil, bad
	}
	ctx := r.ctx
	if s := r.form.Get("timeout"); s != "" {
		timeout, err := parseDuration(s)
		if err != nil {
			return nil, badParam("timeout", err)
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	opts, bad := queryOpts(r.form)
	if bad != nil {
		return nil, bad
	}
	text := r.form.Get("query")
	if err := h.checkQuery(text, span, r.quota); err != nil {
		return nil, err
	}
	q, err := open(ctx, opts, text)
	if err != nil {
		return nil, badQuery(err)
	}
	answered := false
	defer func() {
		if !answered { // also when the engine panicked
			q.Close()
		}
	}()
	res := q.Exec(ctx)
	if res.Err != nil {
		return nil, res.Err
	}
	a := &answer{warnings: res.Warnings, query: text, done: q.Close}
	truncate(res, limit, &a.warnings)
	statistics, err := h.statistics(r, q.Stats(), &a.warnings)
	if err != nil {
		return nil, err
	}
	a.write = func(b *body) {
		b.Raw(`{"resultType":"`)
		b.Raw(string(res.Value.Type()))
		b.Raw(`","result":`)
		b.value(res.Value)
		b.Buf = append(b.Buf, statistics...)
		b.Raw("}")
	}
	answered = true
	return a, nil
}

// checkQuery refuses what the engine would not survive.
func (h *Handler) checkQuery(text string, span time.Duration, quota *model.Quota) error {
	if err := checkDepth(text); err != nil {
		return badQuery(err)
	}
	if err := (&regexCharge{quota: quota}).text(text); err != nil {
		return err
	}
	expr, err := h.o.Parser.ParseExpr(text)
	if err != nil {
		return badQuery(err)
	}
	if err := checkGrowth(expr); err != nil {
		return badQuery(err)
	}
	return h.chargeSubqueries(expr, span, quota)
}

// treeBytes is the memory of the tree of an expression, for each byte of its text.
const treeBytes = 64

// parse parses an expression that is not to be evaluated. Bad makes an error of the API out of one in it.
func (h *Handler) parse(r *request, bad func(error) *apiError) (parser.Expr, error) {
	text := r.form.Get("query")
	if err := checkDepth(text); err != nil {
		return nil, bad(err)
	}
	if err := (&regexCharge{quota: r.quota}).text(text); err != nil {
		return nil, err
	}
	expr, err := h.o.Parser.ParseExpr(text)
	if err != nil {
		return nil, bad(err)
	}
	return expr, nil
}

// badQuery names the parameter in an error in an expression.
func badQuery(err error) *apiError { return badParam("query", err) }

func queryOpts(form url.Values) (promql.QueryOpts, *apiError) {
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

// statistics returns the member `stats` of the data if the parameter of that name asks for it: upstream's statistics
// with the statement of cost under "shale".
func (h *Handler) statistics(r *request, s *stats.Statistics, warnings *annotations.Annotations) ([]byte, error) {
	param := r.form.Get("stats")
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
	return append(api.AppendCost(out, r.cost, model.Metrics), '}'), nil
}
