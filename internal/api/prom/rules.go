package prom

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/shaledb/shale/internal/api"
)

// Shale evaluates no rules and scrapes no targets. It responds like a Prometheus that has neither, and
// refuses the same parameters.

func (h *Handler) rules(r *api.Request) (*api.Response, error) {
	if _, err := h.matcherSets(r, plainBad); err != nil {
		return nil, err
	}
	// Upstream reads these from the URL only.
	q := r.URL.Query()
	switch kind := strings.ToLower(q.Get("type")); kind {
	case "", "alert", "record":
	default:
		return nil, badParam("type", fmt.Errorf("not supported value %.200q", kind))
	}
	if s := strings.ToLower(q.Get("exclude_alerts")); s != "" {
		if _, err := strconv.ParseBool(s); err != nil {
			return nil, badParam("exclude_alerts", fmt.Errorf("error converting exclude_alerts: %w", err))
		}
	}
	limit, token := q.Get("group_limit"), q.Get("group_next_token")
	switch n, err := strconv.ParseInt(limit, 10, 32); {
	case limit == "" && token != "":
		return nil, badParam("group_next_token", errors.New("group_limit needs to be present in order to paginate over the groups"))
	case limit == "":
	case err != nil:
		return nil, badParam("group_limit", fmt.Errorf("group_limit needs to be a valid number: %w", err))
	case n <= 0:
		return nil, badParam("group_limit", errors.New("group_limit needs to be greater than 0"))
	case token != "":
		return nil, badParam("group_next_token", fmt.Errorf("invalid group_next_token '%.200s'. were rule groups changed?", token))
	}
	return constant(`{"groups":[]}`)(r)
}

func targets(r *api.Request) (*api.Response, error) {
	switch strings.ToLower(r.URL.Query().Get("state")) {
	case "", "any", "dropped":
		return constant(`{"activeTargets":[],"droppedTargets":[],"droppedTargetCounts":{}}`)(r)
	}
	return constant(`{"activeTargets":[],"droppedTargets":[],"droppedTargetCounts":null}`)(r)
}

func (h *Handler) targetsMetadata(r *api.Request) (*api.Response, error) {
	if _, err := numberParam(r.Form, "limit"); err != nil {
		return nil, err
	}
	if s := r.Form.Get("match_target"); s != "" {
		if err := (&regexCharge{quota: r.Quota}).text(s); err != nil {
			return nil, err
		}
		if _, err := h.o.Parser.ParseMetricSelector(s); err != nil {
			return nil, badParam("match_target", err)
		}
	}
	return constant(`[]`)(r)
}
