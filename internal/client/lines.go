package client

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fastjson"
)

// Line is a line as a server gives it.
type Line struct {
	At     int64
	Labels map[string]string
	Stream string // the labels as a selector
	Text   []byte
}

// ParseLines reads the answer of query_range. The lines are valid until the parser is used again.
func ParseLines(p *fastjson.Parser, body []byte) ([]Line, error) {
	v, err := p.ParseBytes(body)
	if err != nil {
		return nil, fmt.Errorf("the response is not of the Loki API: %w", err)
	}
	switch kind := string(v.GetStringBytes("data", "resultType")); kind {
	case "streams":
		return ReadStreams(v.GetArray("data", "result"))
	case "matrix", "vector", "scalar":
		return nil, fmt.Errorf("the query returns samples (a %s), not lines", kind)
	default:
		return nil, fmt.Errorf("the response is not of the Loki API: %.200q", body)
	}
}

// ReadStreams reads streams as answers and frames hold them.
func ReadStreams(streams []*fastjson.Value) (lines []Line, err error) {
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
			lines = append(lines, Line{at, labels, stream, pair[1].GetStringBytes()})
		}
	}
	return lines, nil
}

// SortLines sorts by time; at one time it leaves the order as it is.
func SortLines(lines []Line, forward bool) {
	slices.SortStableFunc(lines, func(a, b Line) int {
		if forward {
			return cmp.Compare(a.At, b.At)
		}
		return cmp.Compare(b.At, a.At)
	})
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
