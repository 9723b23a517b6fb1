package renders

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
)

// series is one of the series of a response.
type series struct {
	Target     string        `json:"target"`
	Datapoints [][2]*float64 `json:"datapoints"`
}

// parse reads a response, and sorts it by target: servers have orders of their own where no function sorts.
func parse(body []byte) ([]series, error) {
	var all []series
	if err := json.Unmarshal(body, &all); err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b series) int { return strings.Compare(a.Target, b.Target) })
	return all, nil
}

// alike reports whether responses have equal targets, times and gaps, and values that differ by rounding
// only.
func alike(a, b []series) bool {
	return slices.EqualFunc(a, b, func(a, b series) bool {
		return a.Target == b.Target && slices.EqualFunc(a.Datapoints, b.Datapoints, func(a, b [2]*float64) bool {
			return near(a[0], b[0]) && near(a[1], b[1])
		})
	})
}

func near(a, b *float64) bool {
	if a == nil || b == nil {
		return a == b
	}
	return math.Abs(*a-*b) <= 1e-9*max(math.Abs(*a), math.Abs(*b))
}
