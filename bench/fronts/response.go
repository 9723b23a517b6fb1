package fronts

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// content returns what a response holds, in an order of its own: lines with times, series with points, or
// names. Labels of lines are left out, since fronts may choose which fields are labels. It is empty if there
// is nothing to compare: the response holds estimates, or nothing.
func content(path string, body []byte) (string, error) {
	var r struct {
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return "", err
	}
	var all []string
	switch {
	case strings.HasPrefix(path, "label"):
		if err := json.Unmarshal(r.Data, &all); err != nil {
			return "", err
		}
	case strings.HasPrefix(path, "query_range"):
		var data struct {
			ResultType string `json:"resultType"`
			Result     []struct {
				Metric map[string]string   `json:"metric"`
				Values [][]json.RawMessage `json:"values"`
			} `json:"result"`
		}
		if err := json.Unmarshal(r.Data, &data); err != nil {
			return "", err
		}
		for _, s := range data.Result {
			for _, v := range s.Values {
				if len(v) < 2 {
					return "", fmt.Errorf("a value with %d parts", len(v))
				}
				all = append(all, fmt.Sprint(s.Metric, string(v[0]), " ", string(v[1])))
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n"), nil
}
