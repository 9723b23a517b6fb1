package prom

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"time"

	common "github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/shaledb/shale/internal/api"
)

// The bounds of time: int64 Unix nanoseconds. Times beyond them saturate.
var (
	minTime = time.Unix(0, math.MinInt64).UTC()
	maxTime = time.Unix(0, math.MaxInt64).UTC()
)

// Some clients send these texts for the beginning and the end of time. time.Parse cannot read them.
const (
	upstreamMinTime = "-292273086-05-16T16:47:06Z"
	upstreamMaxTime = "292277025-08-18T07:12:54.999999999Z"
)

// parseTime reads Unix seconds, rounded to milliseconds, or RFC 3339.
func parseTime(s string) (time.Time, error) {
	if t, err := strconv.ParseFloat(s, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		const edge = math.MaxInt64 / float64(time.Second)
		switch {
		case math.IsNaN(t):
			return time.Time{}, fmt.Errorf("cannot parse %.200q to a valid timestamp", s)
		case t >= edge:
			return maxTime, nil
		case t <= -edge:
			return minTime, nil
		}
		whole, frac := math.Modf(t)
		// Round to integer milliseconds first: .57 times 1e9 is a nanosecond short, and then a millisecond.
		return inBounds(time.Unix(int64(whole), int64(math.Round(frac*1000))*int64(time.Millisecond)).UTC()), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return inBounds(t), nil
	}
	switch s {
	case upstreamMinTime:
		return minTime, nil
	case upstreamMaxTime:
		return maxTime, nil
	}
	return time.Time{}, fmt.Errorf("cannot parse %.200q to a valid timestamp", s)
}

func inBounds(t time.Time) time.Time {
	switch {
	case t.Before(minTime):
		return minTime
	case t.After(maxTime):
		return maxTime
	}
	return t
}

// timeParam reads an optional time.
func timeParam(form url.Values, name string, otherwise time.Time) (time.Time, *api.Error) {
	s := form.Get(name)
	if s == "" {
		return otherwise, nil
	}
	t, err := parseTime(s)
	if err != nil {
		return time.Time{}, badParam(name, fmt.Errorf("invalid time value for '%s': %w", name, err))
	}
	return t, nil
}

// parseDuration reads seconds or a PromQL duration.
func parseDuration(s string) (time.Duration, error) {
	if d, err := strconv.ParseFloat(s, 64); err == nil {
		ns := d * float64(time.Second)
		if !(ns < math.MaxInt64 && ns > math.MinInt64) { // also catches NaN
			return 0, fmt.Errorf("cannot parse %.200q to a valid duration. It overflows int64", s)
		}
		return time.Duration(ns), nil
	}
	if d, err := common.ParseDuration(s); err == nil {
		return time.Duration(d), nil
	}
	return 0, fmt.Errorf("cannot parse %.200q to a valid duration", s)
}

// limitParam reads the maximum number of results; 0 means all.
func limitParam(form url.Values) (int, *api.Error) {
	s := form.Get("limit")
	if s == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(s)
	if err == nil && n < 0 {
		err = errors.New("limit must be non-negative")
	}
	if err != nil {
		return 0, badParam("limit", err)
	}
	return n, nil
}

// oneMore adds one to a limit: if the extra result exists, there are more than the limit.
func oneMore(limit int) int {
	if limit > 0 && limit < math.MaxInt {
		return limit + 1
	}
	return limit
}

// maxSelectors bounds match[]: each selector is a query of its own, and all are open at the same time.
const maxSelectors = 256

// parseSelectors reads match[]. bad turns an error in a selector into one of the API.
func (h *Handler) parseSelectors(r *api.Request, bad func(error) *api.Error) ([][]*labels.Matcher, error) {
	texts := r.Form["match[]"]
	if n := len(texts); n > maxSelectors {
		return nil, bad(fmt.Errorf("%d selectors; at most %d are allowed", n, maxSelectors))
	}
	charge := regexCharge{quota: r.Quota}
	for _, text := range texts {
		if err := charge.text(text); err != nil {
			return nil, err
		}
	}
	sets, err := h.o.Parser.ParseMetricSelectors(texts)
	if err != nil {
		return nil, bad(err)
	}
	return sets, nil
}

// matcherSets reads match[]. Each selector must have a matcher that does not match the empty string;
// otherwise it would select everything.
func (h *Handler) matcherSets(r *api.Request, bad func(error) *api.Error) ([][]*labels.Matcher, error) {
	sets, err := h.parseSelectors(r, bad)
	if err != nil {
		return nil, err
	}
next:
	for _, ms := range sets {
		for _, m := range ms {
			if m != nil && !m.Matches("") {
				continue next
			}
		}
		return nil, bad(errors.New("match[] must contain at least one non-empty matcher"))
	}
	return sets, nil
}
