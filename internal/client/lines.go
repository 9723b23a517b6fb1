package client

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fastjson"
)

// Line is a line as a server gives it.
type Line struct {
	At       int64 // in Unix nanoseconds
	Labels   map[string]string
	Stream   string // the labels as a selector
	Text     []byte
	Metadata []Label // sorted by name; only where [Pages] asks for it
}

// Label is a name with its value.
type Label struct{ Name, Value string }

// readLines reads the response of query_range, whose text is body.
func readLines(v *fastjson.Value, body []byte) ([]Line, error) {
	switch kind := string(v.GetStringBytes("data", "resultType")); kind {
	case "streams":
		return readStreams(v.GetArray("data", "result"))
	case "matrix", "vector", "scalar":
		return nil, fmt.Errorf("the query returns samples (a %s), not lines", kind)
	default:
		return nil, fmt.Errorf("the response is not of the Loki API: %.200q", body)
	}
}

// base64Lines asks for the exact bytes of lines that are not valid UTF-8. Loki ignores it.
const base64Lines = "base64-lines"

// readStreams reads streams as responses and frames hold them.
func readStreams(streams []*fastjson.Value) (lines []Line, err error) {
	for _, s := range streams {
		labels := map[string]string{}
		if o := s.GetObject("stream"); o != nil {
			o.Visit(func(name []byte, v *fastjson.Value) { labels[string(name)] = string(v.GetStringBytes()) })
		}
		stream := selector(labels)
		for _, value := range s.GetArray("values") {
			entry := value.GetArray()
			if len(entry) < 2 {
				return nil, errors.New("a line has no time or no text")
			}
			at, err := strconv.ParseInt(string(entry[0].GetStringBytes()), 10, 64)
			if err != nil {
				return nil, fmt.Errorf("the time of a line: %w", err)
			}
			text, err := entry[1].StringBytes()
			if err != nil {
				return nil, fmt.Errorf("the text of a line: %w", err)
			}
			l := Line{At: at, Labels: labels, Stream: stream, Text: text}
			if len(entry) > 2 {
				l.Metadata = readMetadata(entry[2].GetObject("structuredMetadata"))
				if exact := entry[2].GetStringBytes("base64"); exact != nil {
					if l.Text, err = base64.StdEncoding.AppendDecode(nil, exact); err != nil {
						return nil, fmt.Errorf("the bytes of a line: %w", err)
					}
				}
			}
			lines = append(lines, l)
		}
	}
	return lines, nil
}

func readMetadata(o *fastjson.Object) (metadata []Label) {
	if o == nil {
		return nil
	}
	o.Visit(func(name []byte, v *fastjson.Value) {
		metadata = append(metadata, Label{string(name), string(v.GetStringBytes())})
	})
	slices.SortFunc(metadata, func(a, b Label) int { return strings.Compare(a.Name, b.Name) })
	return metadata
}

// sortLines sorts by time; at one time it leaves the order as it is.
func sortLines(lines []Line, forward bool) {
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
