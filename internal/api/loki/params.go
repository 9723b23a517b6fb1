package loki

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	common "github.com/prometheus/common/model"

	"github.com/shaledb/shale/internal/read/logql"
	"github.com/shaledb/shale/internal/read/logql/vector"
)

// Loki's defaults and bounds.
const (
	defaultLimit = 100
	defaultSince = time.Hour
	maxPoints    = 11000
	maxDelayFor  = 5 // seconds
)

// Loki's texts for parameters that do not fit together.
var (
	errEndBeforeStart = errors.New("end timestamp must not be before or equal to start time")
	errStep           = errors.New("zero or negative query resolution step widths are not accepted. Try a positive integer")
	errStepTooSmall   = errors.New("exceeded maximum resolution of 11,000 points per time series. Try increasing the value of the step parameter")
	errInterval       = errors.New("interval must be >= 0")
	errLimitSign      = errors.New("limit must be a positive value")
)

// parseTime reads a time as Loki does. A number with a dot is seconds, rounded to milliseconds. An integer of
// up to ten characters is seconds, and a longer one nanoseconds. Anything else is RFC 3339. Times beyond
// int64 nanoseconds saturate.
func parseTime(s string) (int64, error) {
	if strings.Contains(s, ".") {
		if t, err := strconv.ParseFloat(s, 64); err == nil {
			return floatTime(t)
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err == nil && len(s) <= 10:
		return saturated(time.Unix(n, 0)), nil
	case err == nil:
		return n, nil
	}
	t, rfc := time.Parse(time.RFC3339Nano, s)
	if rfc != nil {
		return 0, shortened(err)
	}
	return saturated(t), nil
}

// floatTime turns seconds into nanoseconds, rounded to milliseconds.
func floatTime(t float64) (int64, error) {
	const edge = math.MaxInt64 / float64(time.Second)
	switch {
	case math.IsNaN(t):
		return 0, errors.New("NaN is not a time")
	case t >= edge:
		return math.MaxInt64, nil
	case t <= -edge:
		return math.MinInt64, nil
	}
	whole, frac := math.Modf(t)
	// Round to integer milliseconds first: .57 times 1e9 is a nanosecond short.
	return saturated(time.Unix(int64(whole), int64(math.Round(frac*1000))*int64(time.Millisecond))), nil
}

func saturated(t time.Time) int64 {
	switch {
	case t.Before(time.Unix(0, math.MinInt64)):
		return math.MinInt64
	case t.After(time.Unix(0, math.MaxInt64)):
		return math.MaxInt64
	}
	return t.UnixNano()
}

// shortened bounds the text of an error of package strconv, which quotes all of its input.
func shortened(err error) error {
	var number *strconv.NumError
	if errors.As(err, &number) && len(number.Num) > 200 {
		return &strconv.NumError{Func: number.Func, Num: strings.ToValidUTF8(number.Num[:200], ""), Err: number.Err}
	}
	return err
}

// timeParam reads an optional time.
func timeParam(form url.Values, name string, otherwise int64) (int64, error) {
	s := form.Get(name)
	if s == "" {
		return otherwise, nil
	}
	return parseTime(s)
}

// bounds reads start, end and since. The default of end is now. The default of start is an hour, or since,
// before the earlier of end and now.
func bounds(form url.Values, now int64) (start, end int64, err error) {
	since := int64(defaultSince)
	if s := form.Get("since"); s != "" {
		d, err := common.ParseDuration(s)
		if err != nil && len(s) > 200 { // the library quotes all of it
			err = fmt.Errorf("not a valid duration string: %.200q", s)
		}
		if err != nil {
			return 0, 0, fmt.Errorf("could not parse 'since' parameter: %w", err)
		}
		since = int64(d)
	}
	if end, err = timeParam(form, "end", now); err != nil {
		return 0, 0, fmt.Errorf("could not parse 'end' parameter: %w", err)
	}
	start = min(end, now)
	if start < math.MinInt64+since {
		start = math.MinInt64
	} else {
		start -= since
	}
	if start, err = timeParam(form, "start", start); err != nil {
		return 0, 0, fmt.Errorf("could not parse 'start' parameter: %w", err)
	}
	return start, end, nil
}

// span returns the nanoseconds from start to end, saturated. end must not be before start.
func span(start, end int64) int64 {
	if d := end - start; d >= 0 {
		return d
	}
	return math.MaxInt64
}

// integer reads an optional integer.
func integer(form url.Values, name string, otherwise int) (int, error) {
	s := form.Get(name)
	if s == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(s)
	return n, shortened(err)
}

// limitParam reads the maximum number of entries.
func limitParam(form url.Values) (int, error) { return positive(form, "limit", defaultLimit) }

// positive reads an optional count that is at least 1.
func positive(form url.Values, name string, otherwise int) (int, error) {
	n, err := integer(form, name, otherwise)
	switch {
	case err != nil:
		return 0, err
	case n <= 0:
		return 0, errLimitSign
	case n > math.MaxUint32:
		return 0, fmt.Errorf("%s value %d is out of range [0, %d]", name, n, uint32(math.MaxUint32))
	}
	return n, nil
}

func directionParam(form url.Values) (logql.Direction, error) {
	s := form.Get("direction")
	switch strings.ToUpper(s) {
	case "", "BACKWARD":
		return logql.Backward, nil
	case "FORWARD":
		return logql.Forward, nil
	}
	return logql.Backward, fmt.Errorf("invalid direction '%.200s'", s)
}

// duration reads seconds or a Prometheus duration, in nanoseconds.
func duration(s string) (int64, error) {
	if d, err := strconv.ParseFloat(s, 64); err == nil {
		ns := d * float64(time.Second)
		if !(ns < math.MaxInt64 && ns > math.MinInt64) { // also catches NaN
			return 0, fmt.Errorf("cannot parse %.200q to a valid duration. It overflows int64", s)
		}
		return int64(ns), nil
	}
	if d, err := common.ParseDuration(s); err == nil {
		return int64(d), nil
	}
	return 0, fmt.Errorf("cannot parse %.200q to a valid duration", s)
}

// parseInstant reads the parameters of an instant query, and returns its time.
func parseInstant(form url.Values, now int64) (int64, error) {
	if _, err := limitParam(form); err != nil {
		return 0, err
	}
	t, err := timeParam(form, "time", now)
	if err != nil {
		return 0, err
	}
	_, err = directionParam(form)
	return t, err
}

// stepParam reads the nanoseconds between the points of a range. The default gives 250 points.
func stepParam(form url.Values, start, end int64) (step int64, err error) {
	length := span(start, end)
	if s := form.Get("step"); s == "" {
		step = max(length/int64(time.Second)/250, 1) * int64(time.Second)
	} else if step, err = duration(s); err != nil {
		return 0, err
	}
	switch {
	case step <= 0:
		return 0, errStep
	case length/step > maxPoints:
		return 0, errStepTooSmall
	}
	return step, nil
}

// window holds the parameters of a request over a range, without its query. Times and durations are
// nanoseconds.
type window struct {
	start, end     int64
	limit          int
	direction      logql.Direction
	step, interval int64
}

// parseWindow reads the parameters of a range in Loki's order, so that it reports the same one of several
// errors.
func parseWindow(form url.Values, now int64) (w window, err error) {
	if w.start, w.end, err = bounds(form, now); err != nil {
		return w, err
	}
	if w.end < w.start {
		return w, errEndBeforeStart
	}
	if w.limit, err = limitParam(form); err != nil {
		return w, err
	}
	if w.direction, err = directionParam(form); err != nil {
		return w, err
	}
	if w.step, err = stepParam(form, w.start, w.end); err != nil {
		return w, err
	}
	if s := form.Get("interval"); s != "" {
		if w.interval, err = duration(s); err != nil {
			return w, err
		}
	}
	if w.interval < 0 {
		return w, errInterval
	}
	return w, nil
}

// steps returns the steps of a metric query. As in Loki, the step has whole milliseconds, and all times are
// multiples of the step: the range begins with the multiple before start and ends with the one after end. A
// range that would begin or end beyond the times that exist keeps its own first or last time.
func (w *window) steps() (vector.Steps, error) {
	step := w.step - w.step%int64(time.Millisecond)
	if step == 0 {
		return vector.Steps{}, errStep
	}
	first, last := w.start-w.start%step, w.end-w.end%step
	if first > w.start {
		first = max(first, math.MinInt64+step) - step
	}
	if last < w.end && last <= math.MaxInt64-step {
		last += step
	}
	return vector.Steps{Start: first, Step: step, Count: int(uint64(last-first)/uint64(step)) + 1}, nil
}
