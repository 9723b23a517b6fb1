//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"sort"
	"strconv"
	"strings"
	"time"
)

// sample is a stamp in Unix milliseconds and a value.
type sample struct {
	ms    int64
	value float64
}

// same compares bit for bit, but for NaN, whose payload JSON does not carry.
func (s sample) same(o sample) bool {
	return s.ms == o.ms && (math.Float64bits(s.value) == math.Float64bits(o.value) || math.IsNaN(s.value) && math.IsNaN(o.value))
}

func (s sample) String() string {
	return fmt.Sprintf("%s at %s", strconv.FormatFloat(s.value, 'g', -1, 64), time.UnixMilli(s.ms).UTC().Format("15:04:05.000"))
}

// seriesSet holds samples by the text of their labels.
type seriesSet map[string][]sample

func (s seriesSet) samples() int {
	n := 0
	for _, list := range s {
		n += len(list)
	}
	return n
}

// call asks one endpoint of the Prometheus API and decodes the data of its answer.
func call(base, path string, form url.Values, data any) error {
	resp, err := http.Get(base + path + "?" + form.Encode())
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s?%s: HTTP %d: %.300s", path, form.Encode(), resp.StatusCode, body)
	}
	var a struct{ Data json.RawMessage }
	if err := json.Unmarshal(body, &a); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return json.Unmarshal(a.Data, data)
}

// metricNames lists the names of all metrics.
func metricNames(base string) ([]string, error) {
	var names []string
	err := call(base, "/api/v1/label/__name__/values", url.Values{}, &names)
	sort.Strings(names)
	return names, err
}

// rawSamples returns what one selector finds between two times, as it was stored.
func rawSamples(base, selector string, from, to time.Time) (seriesSet, error) {
	var data struct {
		Result []struct {
			Metric map[string]string
			Values [][2]json.RawMessage
		}
	}
	form := url.Values{
		"query": {fmt.Sprintf("%s[%dms]", selector, to.Sub(from).Milliseconds())},
		"time":  {strconv.FormatFloat(float64(to.UnixMilli())/1000, 'f', 3, 64)},
	}
	if err := call(base, "/api/v1/query", form, &data); err != nil {
		return nil, err
	}
	set := seriesSet{}
	for _, r := range data.Result {
		list := make([]sample, len(r.Values))
		for i, pair := range r.Values {
			seconds, err1 := strconv.ParseFloat(string(pair[0]), 64)
			value, err2 := strconv.ParseFloat(strings.Trim(string(pair[1]), `"`), 64)
			if err1 != nil || err2 != nil {
				return nil, fmt.Errorf("%s: sample %s %s: %v %v", selector, pair[0], pair[1], err1, err2)
			}
			list[i] = sample{int64(math.Round(seconds * 1000)), value}
		}
		set[labelText(r.Metric)] = list
	}
	return set, nil
}

func labelText(m map[string]string) string {
	var pairs []string
	for k, v := range m {
		pairs = append(pairs, k+"="+strconv.Quote(v))
	}
	sort.Strings(pairs)
	return "{" + strings.Join(pairs, ",") + "}"
}

// selector selects all series of one name.
func selector(name string) string { return "{__name__=" + strconv.Quote(name) + "}" }
