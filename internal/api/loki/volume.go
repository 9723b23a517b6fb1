package loki

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/logql"
)

// maxTargets bounds targetLabels: each is a matcher of streams.
const maxTargets = 256

// errAggregateBy has Loki's text.
var errAggregateBy = errors.New("invalid aggregation option")

// volumeLimit reads how many groups are wanted. Loki takes 0 for its default.
func volumeLimit(form url.Values) (int, error) {
	n, err := integer(form, "limit", defaultLimit)
	switch {
	case err != nil:
		return 0, err
	case n < 0:
		return 0, errLimitSign
	case n == 0:
		n = defaultLimit
	}
	return n, nil
}

// volumeParams are the parameters of a request for volumes. Step is 0 in a request without steps.
type volumeParams struct {
	start, end, step int64
	limit            int
	targets          []string
	byName           bool
}

// parseVolume reads the parameters in Loki's order, so that it reports the same one of several errors.
func parseVolume(form url.Values, now int64, steps bool) (p volumeParams, err error) {
	if p.limit, err = volumeLimit(form); err != nil {
		return p, err
	}
	if form.Get("limit") == "0" {
		form.Del("limit") // which is an error elsewhere
	}
	if steps {
		w, err := parseWindow(form, now)
		if err != nil {
			return p, err
		}
		p.start, p.end, p.step = w.start, w.end, w.step
	} else if _, err = parseInstant(form, now); err != nil {
		return p, err
	}
	switch form.Get("aggregateBy") {
	case "", "series":
	case "labels":
		p.byName = true
	default:
		return p, errAggregateBy
	}
	if !steps {
		if p.start, p.end, err = bounds(form, now); err != nil {
			return p, err
		}
		if p.end < p.start {
			return p, errEndBeforeStart
		}
	}
	if text := form.Get("targetLabels"); text != "" {
		p.targets = strings.Split(text, ",")
		slices.Sort(p.targets)
		if p.targets = slices.Compact(p.targets); len(p.targets) > maxTargets {
			return p, fmt.Errorf("%d target labels; at most %d are allowed", len(p.targets), maxTargets)
		}
	}
	return p, nil
}

// cuts returns the multiples of the step within the range. As in Loki, they divide the range into intervals.
func (p *volumeParams) cuts() []int64 {
	if p.step == 0 {
		return nil
	}
	var all []int64
	for t := p.start - p.start%p.step; t < p.end; t += p.step {
		if t > p.start {
			all = append(all, t)
		}
		if t > math.MaxInt64-p.step {
			break
		}
	}
	return all
}

// volume serves the bytes of groups of streams over a range.
func (h *Handler) volume(r *api.Request) (*api.Response, error) { return h.volumes(r, false) }

// volumeRange serves the bytes of groups of streams for each step of a range.
func (h *Handler) volumeRange(r *api.Request) (*api.Response, error) { return h.volumes(r, true) }

func (h *Handler) volumes(r *api.Request, steps bool) (*api.Response, error) {
	p, err := parseVolume(r.Form, h.o.Now().UnixNano(), steps)
	if err != nil {
		return nil, bad(err)
	}
	q := &logql.VolumeQuery{
		Selection: logql.Selection{Tenants: r.Tenants, Range: model.TimeRange{Min: p.start, Max: p.end}, Quota: r.Quota, Cost: r.Cost},
		Targets:   p.targets, ByName: p.byName, Limit: p.limit,
	}
	if text := r.Form.Get("query"); text != "{}" {
		sel, err := parseSelector(r, text)
		if err != nil {
			return nil, explain(r, err)
		}
		q.Selectors = []logql.Selector{sel}
	}
	q.Cuts = p.cuts()
	r.Cost.Reach.AddLists(model.Logs) // volumes follow how lines lie in parts
	groups, err := h.o.Engine.VolumeBy(r.Context(), q)
	if err != nil {
		return nil, err
	}
	return sendNumbers(r, volumeNumbers(groups, q.Cuts, p.end))
}

// volumeNumbers returns volumes as samples. The time of a sample is the last millisecond of its interval. As
// in Loki, the result is a vector if no group has two samples.
func volumeNumbers(groups []logql.VolumeGroup, cuts []int64, end int64) *numbers {
	n := &numbers{kind: logql.ResultVector, stats: new(logql.Stats)}
	for _, t := range cuts {
		n.times = append(n.times, (t-int64(time.Millisecond))/int64(time.Millisecond))
	}
	n.times = append(n.times, end/int64(time.Millisecond))
	for i := range groups {
		if groups[i].Present.Len() > 1 {
			n.kind = logql.ResultMatrix
		}
		n.series = append(n.series, groups[i].Series)
	}
	return n
}
