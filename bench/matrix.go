package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// matrix is a result of a range query: the values of each series by their times in Unix milliseconds.
type matrix map[string]map[int64]float64

// readMatrix reads a response. Names of metrics are left out, because LogQL has none.
func readMatrix(answer []byte) (matrix, error) {
	var a struct {
		Data struct {
			Type   string `json:"resultType"`
			Result []struct {
				Metric map[string]string `json:"metric"`
				Values [][2]any          `json:"values"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := json.Unmarshal(answer, &a); err != nil || a.Data.Type != "matrix" {
		return nil, fmt.Errorf("the response is not a matrix: %.200q", answer)
	}
	m := make(matrix, len(a.Data.Result))
	for _, s := range a.Data.Result {
		var labels []string
		for _, name := range slices.Sorted(maps.Keys(s.Metric)) {
			if name != "__name__" {
				labels = append(labels, name+"="+strconv.Quote(s.Metric[name]))
			}
		}
		key := "{" + strings.Join(labels, ", ") + "}"
		if _, twice := m[key]; twice {
			return nil, fmt.Errorf("the series %s comes twice", key)
		}
		m[key] = make(map[int64]float64, len(s.Values))
		for _, pair := range s.Values {
			seconds, ok := pair[0].(float64)
			text, isText := pair[1].(string)
			v, err := strconv.ParseFloat(text, 64)
			if !ok || !isText || err != nil {
				return nil, fmt.Errorf("the series %s has the point %v", key, pair)
			}
			m[key][int64(math.Round(seconds*1000))] = v
		}
	}
	return m, nil
}

// points returns the number of values.
func (m matrix) points() (n int) {
	for _, values := range m {
		n += len(values)
	}
	return n
}

// shift moves all values by a time.
func (m matrix) shift(by time.Duration) {
	for key, values := range m {
		moved := make(map[int64]float64, len(values))
		for at, v := range values {
			moved[at+by.Milliseconds()] = v
		}
		m[key] = moved
	}
}

// ranks replaces labels by the rank of a value at its time, 1 for the greatest.
func (m matrix) ranks() matrix {
	at := make(map[int64][]float64)
	for _, values := range m {
		for t, v := range values {
			at[t] = append(at[t], v)
		}
	}
	ranked := make(matrix)
	for t, values := range at {
		slices.Sort(values)
		slices.Reverse(values)
		for i, v := range values {
			key := "rank " + strconv.Itoa(i+1)
			if ranked[key] == nil {
				ranked[key] = make(map[int64]float64)
			}
			ranked[key][t] = v
		}
	}
	return ranked
}

// difference describes the earliest value that differs from another matrix by more than a relative tolerance;
// "" if none does.
func (m matrix) difference(other matrix, tolerance float64) string {
	differs, where, when := 0, "", int64(math.MaxInt64)
	for _, key := range slices.Sorted(maps.Keys(union(m, other))) {
		for t := range union(m[key], other[key]) {
			a, okA := m[key][t]
			b, okB := other[key][t]
			if okA && okB && math.Abs(a-b) <= tolerance*max(math.Abs(a), math.Abs(b)) {
				continue
			}
			differs++
			if t < when {
				when, where = t, fmt.Sprintf("%s at %s: %s instead of %s", key, time.UnixMilli(t).UTC().Format(time.RFC3339), shown(a, okA), shown(b, okB))
			}
		}
	}
	if differs == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d values differ; %s", differs, max(m.points(), other.points()), where)
}

func shown(v float64, ok bool) string {
	if !ok {
		return "nothing"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// union returns a map with the keys of two.
func union[K comparable, V any](a, b map[K]V) map[K]V {
	all := maps.Clone(a)
	if all == nil {
		return b
	}
	maps.Copy(all, b)
	return all
}
