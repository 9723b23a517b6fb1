package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/shaledb/shale/internal/terminal"
)

// point is [seconds, "value"]. The value stays text, so that it is shown as the server wrote it.
type point struct {
	seconds json.Number
	value   string
}

// UnmarshalJSON reads the pair.
func (p *point) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&p.seconds, &p.value})
}

// lastSecond ends the year 9999.
const lastSecond = 253402300799

// time returns the timestamp in UTC, in milliseconds. A number that is too great for a time is shown as it
// is: Loki 3.7 gives scalars wrong times.
func (p *point) time() string {
	s, err := p.seconds.Float64()
	if err != nil || math.Abs(s) > lastSecond {
		return p.seconds.String()
	}
	return time.UnixMilli(int64(math.Round(s * 1000))).UTC().Format("2006-01-02T15:04:05.000Z")
}

type resultSeries struct {
	Metric     map[string]string `json:"metric"`
	Value      *point            `json:"value"`
	Values     []point           `json:"values"`
	Histogram  json.RawMessage   `json:"histogram"`
	Histograms json.RawMessage   `json:"histograms"`
}

// name writes the series for CSV: name{a="b"}, with the bare name whatever is in it.
func (s *resultSeries) name() string {
	labels := make([]string, 0, len(s.Metric))
	for k, v := range s.Metric {
		if k != "__name__" {
			labels = append(labels, k+"="+strconv.Quote(v))
		}
	}
	sort.Strings(labels)
	if len(labels) == 0 && s.Metric["__name__"] != "" {
		return s.Metric["__name__"]
	}
	return s.Metric["__name__"] + "{" + strings.Join(labels, ", ") + "}"
}

// series returns the series of a result. A scalar or a string is a series of one point.
func (d *queryData) series() (series []resultSeries, err error) {
	switch d.ResultType {
	case "vector", "matrix":
		err = json.Unmarshal(d.Result, &series)
	case "scalar", "string":
		var p point
		err = json.Unmarshal(d.Result, &p)
		series = []resultSeries{{Metric: map[string]string{"__name__": d.ResultType}, Value: &p}}
	default:
		return nil, fmt.Errorf("the result has the unknown type %q", d.ResultType)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the result: %w", err)
	}
	return series, nil
}

// rows calls emit with every point of a series; a histogram is one row that shows its JSON.
func (s *resultSeries) rows(emit func(at, value string) error) error {
	points := s.Values
	if s.Value != nil {
		points = []point{*s.Value}
	}
	for i := range points {
		if err := emit(points[i].time(), points[i].value); err != nil {
			return err
		}
	}
	for _, h := range []json.RawMessage{s.Histogram, s.Histograms} {
		if len(h) > 0 {
			if err := emit("", string(h)); err != nil {
				return err
			}
		}
	}
	return nil
}

// The formats of every query.
const (
	formatTable = "table" // for people
	formatJSON  = "json"
)

func printTable(w io.Writer, series []resultSeries) error {
	if len(series) == 0 {
		_, err := fmt.Fprintln(w, "no series")
		return err
	}
	sets := make([]map[string]string, len(series))
	for i := range series {
		sets[i] = series[i].Metric
	}
	common := commonOf(sets)
	if len(common.Labels) > 0 {
		if _, err := fmt.Fprintln(w, commonLabels(common)); err != nil {
			return err
		}
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SERIES\tTIME (UTC)\tVALUE")
	for i := range series {
		// The name of a range series is printed once, so that the beginning of the next series is easy to
		// see.
		name := terminal.Selector(series[i].Metric, common.Labels)
		err := series[i].rows(func(at, value string) error {
			_, err := fmt.Fprintf(t, "%s\t%s\t%s\n", name, terminal.Escape(nil, []byte(at)), terminal.Escape(nil, []byte(value)))
			name = ""
			return err
		})
		if err != nil {
			return err
		}
	}
	return t.Flush()
}

func printCSV(w io.Writer, series []resultSeries) error {
	c := csv.NewWriter(w)
	if err := c.Write([]string{"series", "time", "value"}); err != nil {
		return err
	}
	for i := range series {
		name := series[i].name()
		if err := series[i].rows(func(at, value string) error { return c.Write([]string{name, at, value}) }); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

// printStats writes the statistics of a query, one line per figure. Loki's are many, so those of 0 can be
// left out.
func printStats(w io.Writer, stats json.RawMessage, withoutZeros bool) error {
	if len(stats) == 0 {
		_, err := fmt.Fprintln(w, "the server sent no statistics")
		return err
	}
	var tree map[string]any
	d := json.NewDecoder(strings.NewReader(string(stats)))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		return fmt.Errorf("reading the statistics: %w", err)
	}
	var lines []string
	flatten("", tree, &lines)
	if withoutZeros {
		lines = slices.DeleteFunc(lines, func(line string) bool {
			return strings.HasSuffix(line, ": 0") || strings.HasSuffix(line, ": false")
		})
	}
	sort.Strings(lines)
	_, err := fmt.Fprintln(w, terminal.EscapeLines(strings.Join(lines, "\n")))
	return err
}

func flatten(prefix string, tree map[string]any, lines *[]string) {
	for k, v := range tree {
		switch v := v.(type) {
		case map[string]any:
			flatten(prefix+k+".", v, lines)
		case []any: // per-step figures: as many as points
		default:
			*lines = append(*lines, fmt.Sprintf("%s%s: %v", prefix, k, v))
		}
	}
}
