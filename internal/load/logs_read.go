package load

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fastjson"

	"github.com/shaledb/shale/internal/model"
)

// gotLine is a line as a query gave it.
type gotLine struct {
	at       int64
	stream   string // canonical text of its labels, without those that servers add
	text     string
	metadata []logLabel
}

// servers name the service of a stream, and guess the level of a line.
const (
	serviceLabel = "service_name"
	levelLabel   = "detected_level"
)

// lines asks for the oldest lines of a time [from, to), at most limit of them, by time.
func (r *Reader) lines(ctx context.Context, p *fastjson.Parser, tenant, query string, from, to int64, limit int) ([]gotLine, error) {
	form := url.Values{
		"query": {query}, "start": {strconv.FormatInt(from, 10)}, "end": {strconv.FormatInt(to, 10)},
		"limit": {strconv.Itoa(limit)}, "direction": {"forward"},
	}
	var out []gotLine
	err := r.patiently(ctx, func() error {
		req, err := http.NewRequest(http.MethodGet, strings.TrimRight(r.URL, "/")+"/loki/api/v1/query_range?"+form.Encode(), nil)
		if err != nil {
			return fmt.Errorf("%w: load: %s: %w", model.ErrInvalid, query, err)
		}
		// So structured metadata stands apart from labels.
		req.Header.Set("X-Loki-Response-Encoding-Flags", "categorize-labels")
		code, data, err := r.do(ctx, tenant, req)
		if err := classify(query, code, string(data[:min(len(data), 300)]), err); err != nil {
			return err
		}
		out, err = parseLines(p, data)
		return err
	})
	return out, err
}

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
func labelsIn(o *fastjson.Object, added string) (ls []logLabel) {
	if o == nil {
		return nil
	}
	o.Visit(func(name []byte, v *fastjson.Value) {
		if string(name) != added {
			ls = append(ls, logLabel{string(name), string(v.GetStringBytes())})
		}
	})
	slices.SortFunc(ls, func(a, b logLabel) int { return strings.Compare(a.name, b.name) })
	return ls
}

// streamText tells sets of labels apart.
func streamText(ls []logLabel) string {
	var b []byte
	for _, l := range ls {
		b = append(append(append(append(b, l.name...), 0), l.value...), 0)
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
