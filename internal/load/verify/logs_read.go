package verify

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fastjson"

	"github.com/shaledb/shale/internal/load/lines"
	"github.com/shaledb/shale/internal/model"
)

// gotLine is a line as a query gave it.
type gotLine struct {
	at       int64
	stream   string // canonical text of its labels, without those that servers add
	text     string
	metadata []lines.Label
}

// servers name the service of a stream, and guess the level of a line.
const (
	serviceLabel = "service_name"
	levelLabel   = "detected_level"
)

// parseLines reads the answer of query_range.
func parseLines(p *fastjson.Parser, data []byte) ([]gotLine, error) {
	bad := func(what string) ([]gotLine, error) {
		return nil, fmt.Errorf("%w: load: query_range: the answer makes no sense: %s", model.ErrInvalid, what)
	}
	v, err := p.ParseBytes(data)
	if err != nil {
		return bad(err.Error())
	}
	if string(v.GetStringBytes("status")) != "success" || string(v.GetStringBytes("data", "resultType")) != "streams" {
		return bad(fmt.Sprintf("%.200q", data))
	}
	var out []gotLine
	for _, s := range v.GetArray("data", "result") {
		stream := streamText(labelsIn(s.GetObject("stream"), serviceLabel))
		for _, entry := range s.GetArray("values") {
			pair := entry.GetArray()
			if len(pair) < 2 {
				return bad("a line without time or text")
			}
			at, err1 := strconv.ParseInt(string(pair[0].GetStringBytes()), 10, 64)
			text, err2 := pair[1].StringBytes()
			if err := errors.Join(err1, err2); err != nil {
				return bad(err.Error())
			}
			got := gotLine{at: at, stream: stream, text: string(text)}
			if len(pair) > 2 {
				got.metadata = labelsIn(pair[2].GetObject("structuredMetadata"), levelLabel)
			}
			out = append(out, got)
		}
	}
	slices.SortStableFunc(out, func(a, b gotLine) int { return compare(a.at, b.at) })
	return out, nil
}

// labelsIn reads labels, by name, but for the one that servers add.
func labelsIn(o *fastjson.Object, added string) (ls []lines.Label) {
	if o == nil {
		return nil
	}
	o.Visit(func(name []byte, v *fastjson.Value) {
		if string(name) != added {
			ls = append(ls, lines.Label{Name: string(name), Value: string(v.GetStringBytes())})
		}
	})
	slices.SortFunc(ls, func(a, b lines.Label) int { return strings.Compare(a.Name, b.Name) })
	return ls
}

// streamText tells sets of labels apart.
func streamText(ls []lines.Label) string {
	var b []byte
	for _, l := range ls {
		b = append(append(append(append(b, l.Name...), 0), l.Value...), 0)
	}
	return string(b)
}

func compare(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
