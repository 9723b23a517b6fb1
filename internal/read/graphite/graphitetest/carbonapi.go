package graphitetest

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
)

// ordered begin the calls whose order counts. carbonapi has others in the natural order of names, or, if
// they are equal, in any.
var ordered = []string{"pearsonClosest", "heatMap"}

// ForCarbonapi returns a response that can be compared with carbonapi's. It has no tags, of which carbonapi
// has only some, and no noise: the sign of a phase of half a turn, and values of a transform that are 0 but
// for the last digits. It hides two deliberate differences, which docs/graphite.md lists: the share of an
// interval without values, and the times of pearson.
func ForCarbonapi(target string, a Answer) Answer {
	var all []map[string]any
	// carbonapi has no infinite values in JSON.
	body := strings.NewReplacer("-1e9999", "null", "1e9999", "null", "[NaN,", "[null,").Replace(a.Body)
	if a.Status != http.StatusOK || json.Unmarshal([]byte(body), &all) != nil {
		return a
	}
	for i, s := range all {
		all[i] = map[string]any{"target": s["target"], "datapoints": s["datapoints"]}
		for j, p := range s["datapoints"].([]any) {
			p := p.([]any)
			switch v, present := p[0].(float64); {
			case strings.HasPrefix(target, "slo") && !present:
				p[0] = 0
			case strings.HasPrefix(target, "pearson("):
				p[1] = j
			case strings.Contains(target, "fft") && present && math.Abs(v) < 1e-9:
				p[0] = 0
			case strings.Contains(target, "fft") && math.Abs(math.Abs(v)-math.Pi) < 1e-9:
				p[0] = math.Pi
			}
		}
	}
	if !slices.ContainsFunc(ordered, func(name string) bool { return strings.HasPrefix(target, name) }) {
		slices.SortStableFunc(all, func(a, b map[string]any) int {
			return strings.Compare(fmt.Sprint(a["target"]), fmt.Sprint(b["target"]))
		})
	}
	b, _ := json.Marshal(all)
	a.Body = string(b)
	return a
}
