package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fastjson"
)

// The formats of lines, beside table and json.
const (
	formatRaw   = "raw"
	formatJSONL = "jsonl"
)

// logLine is a line as a server gives it.
type logLine struct {
	at     int64
	labels map[string]string
	stream string // the labels as a selector
	text   []byte
}

// parseLogLines reads the answer of query_range. The lines are valid until the parser is used again.
func parseLogLines(p *fastjson.Parser, body []byte) ([]logLine, error) {
	v, err := p.ParseBytes(body)
	if err != nil {
		return nil, fmt.Errorf("the response is not of the Loki API: %w", err)
	}
	switch kind := string(v.GetStringBytes("data", "resultType")); kind {
	case "streams":
		return linesOf(v.GetArray("data", "result"))
	case "matrix", "vector", "scalar":
		return nil, fmt.Errorf("the query returns samples (a %s), not lines", kind)
	default:
		return nil, fmt.Errorf("the response is not of the Loki API: %.200q", body)
	}
}

// linesOf reads streams as answers and frames hold them.
func linesOf(streams []*fastjson.Value) (lines []logLine, err error) {
	for _, s := range streams {
		labels := map[string]string{}
		if o := s.GetObject("stream"); o != nil {
			o.Visit(func(name []byte, v *fastjson.Value) { labels[string(name)] = string(v.GetStringBytes()) })
		}
		stream := selector(labels)
		for _, value := range s.GetArray("values") {
			pair := value.GetArray()
			if len(pair) < 2 {
				return nil, errors.New("a line has no time or no text")
			}
			at, err := strconv.ParseInt(string(pair[0].GetStringBytes()), 10, 64)
			if err != nil {
				return nil, fmt.Errorf("the time of a line: %w", err)
			}
			lines = append(lines, logLine{at, labels, stream, pair[1].GetStringBytes()})
		}
	}
	return lines, nil
}

// sortLines sorts by time; at one time it leaves the order as it is.
func sortLines(lines []logLine, forward bool) {
	slices.SortStableFunc(lines, func(a, b logLine) int {
		if forward {
			return cmp.Compare(a.at, b.at)
		}
		return cmp.Compare(b.at, a.at)
	})
}

// write writes a line in a format.
func (l *logLine) write(w *bufio.Writer, format string) error {
	switch format {
	case formatRaw:
		_, _ = w.Write(l.text)
		return w.WriteByte('\n')
	case formatJSONL:
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		return e.Encode(struct {
			Time   string            `json:"time"`
			Labels map[string]string `json:"labels"`
			Line   string            `json:"line"`
		}{l.time(), l.labels, string(l.text)})
	case "table":
		_, err := fmt.Fprintf(w, "%s %s %s\n", l.time(), l.stream, l.text)
		return err
	}
	return nil
}

func (l *logLine) time() string {
	return time.Unix(0, l.at).UTC().Format("2006-01-02T15:04:05.000000000Z")
}

// selector writes labels as a selector.
func selector(labels map[string]string) string {
	pairs := make([]string, 0, len(labels))
	for name, value := range labels {
		pairs = append(pairs, name+"="+strconv.Quote(value))
	}
	slices.Sort(pairs)
	return "{" + strings.Join(pairs, ", ") + "}"
}
