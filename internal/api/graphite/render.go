package graphite

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/plot/graph"
	"github.com/shaledb/shale/internal/read/graphite"
	"github.com/shaledb/shale/internal/read/graphite/attime"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// Renderer evaluates targets.
type Renderer interface {
	Render(ctx context.Context, q *graphite.Query) (series.List, error)
}

// rendering is a request for the values of series, and how they are written.
type rendering struct {
	graphite.Query
	format     string
	maxPoints  int64 // 0: no limit
	noNulls    bool
	jsonp      string
	pretty     bool
	zone       *time.Location
	parameters url.Values
	picture    *graph.Graph // of png and svg
	ctx        context.Context
}

// encoder writes series in one format.
type encoder struct {
	contentType string
	write       func(b *api.Body, r *rendering, list series.List) error
}

// encoders by the parameter format.
var encoders = map[string]encoder{
	"json":     {"application/json", writeSeriesJSON},
	"csv":      {"text/csv", writeCSV},
	"raw":      {"text/plain; charset=utf-8", writeRaw},
	"dygraph":  {"application/json", writeDygraph},
	"rickshaw": {"application/json", writeRickshaw},
	"pickle":   {"application/pickle", writePickle},
	"png":      {"image/png", writePNG},
	"svg":      {"image/svg+xml", writeSVG},
	"msgpack":  {"application/x-msgpack", writeMsgpack},
}

// render evaluates targets and writes their series.
func (h *Handler) render(r *api.Request) (*api.Response, error) {
	q, err := h.rendering(r)
	if err != nil {
		return nil, err
	}
	e, ok := encoders[q.format]
	if !ok {
		return nil, badParameters("format must be one of json, csv, raw, pickle, msgpack, dygraph, rickshaw, png and svg, not %q", q.format)
	}
	if q.format == "png" || q.format == "svg" {
		if err := q.readPicture(); err != nil {
			return nil, err
		}
	}
	list, err := h.o.Render.Render(r.Context(), &q.Query)
	if err != nil {
		return nil, err
	}
	if q.picture != nil {
		if err := q.readCurves(list); err != nil {
			return nil, err
		}
	}
	if q.jsonp != "" && q.format != "png" {
		e.contentType = "text/javascript"
	}
	return &api.Response{ContentType: e.contentType, Encoded: q.format == "png", Write: func(b *api.Body) error { return e.write(b, q, list) }}, nil
}

// defaultFrom is the start of the window of a request that names none.
const defaultFrom = "-1d"

// callback is what jsonp may be: a name, which a page calls.
var callback = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$.]{0,127}$`)

func (h *Handler) rendering(r *api.Request) (*rendering, error) {
	p := parametersOf(r)
	q := &rendering{parameters: p, format: p.Get("format"), zone: time.UTC, ctx: r.Context()}
	switch {
	case p.Has("format"):
		q.jsonp = p.Get("jsonp")
	case p.Has("rawData"):
		q.format = "raw"
	case p.Has("pickle"):
		q.format = "pickle"
	default:
		q.format = "png"
	}
	if q.jsonp != "" && !callback.MatchString(q.jsonp) {
		return nil, badParameters("jsonp must be the name of a function, not %q", q.jsonp)
	}
	q.pretty, q.noNulls = p.Get("pretty") != "", p.Has("noNullPoints")
	if n, err := strconv.ParseInt(p.Get("maxDataPoints"), 10, 64); err == nil && n > 0 {
		q.maxPoints = n
	}
	q.Tenant, q.Quota, q.Cost = r.Tenant(), r.Quota, r.Cost
	if q.Targets = p["target"]; len(q.Targets) == 0 {
		q.Targets = p["target[]"]
	}
	if x := p.Get("xFilesFactor"); x != "" {
		var err error
		if q.XFF, err = strconv.ParseFloat(x, 64); err != nil {
			return nil, badParameters("xFilesFactor must be a number, not %q", x)
		}
	}
	for name := range p {
		if inner, ok := strings.CutPrefix(name, "template["); ok {
			if q.Template == nil {
				q.Template = make(map[string]string)
			}
			q.Template[strings.TrimSuffix(inner, "]")] = p.Get(name)
		}
	}
	return q, h.window(q)
}

// window reads the times of a request. A zone that does not exist is ignored, as in graphite-web.
func (h *Handler) window(q *rendering) error {
	if zone, err := time.LoadLocation(q.parameters.Get("tz")); err == nil && q.parameters.Get("tz") != "Local" {
		q.zone = zone
	}
	times := []struct {
		name, otherwise string
		at              time.Time
	}{{name: "now", otherwise: "now"}, {name: "until", otherwise: "now"}, {name: "from", otherwise: defaultFrom}}
	now := h.o.Now().In(q.zone)
	for i := range times {
		t := &times[i]
		text := t.otherwise
		if q.parameters.Has(t.name) {
			text = q.parameters.Get(t.name)
		}
		var err error
		if t.at, err = attime.Parse(text, now); err != nil {
			return badParameters("%s: %w", t.name, err)
		}
		if i == 0 {
			now = t.at
		}
	}
	q.Now, q.From, q.Until = now, times[2].at.Unix(), times[1].at.Unix()
	if q.From > q.Until {
		q.From, q.Until = q.Until, q.From
	}
	if q.From == q.Until {
		return badParameters("Invalid empty time range")
	}
	return nil
}

// badParameters refuses parameters in the words of graphite-web's InputParameterError.
func badParameters(format string, args ...any) *api.Error {
	//lint:ignore ST1005 clients see the text that graphite-web writes
	return &api.Error{Status: http.StatusBadRequest, Err: fmt.Errorf("Invalid parameters (%w)", fmt.Errorf(format, args...))}
}

// parametersOf returns the parameters of the URL and the body. Of a name with several values, Get returns
// the last one, and those of the body come after those of the URL.
func parametersOf(r *api.Request) url.Values {
	all := r.URL.Query()
	for name, values := range r.PostForm {
		all[name] = append(all[name], values...)
	}
	for name, values := range all {
		if n := len(values); n > 1 && name != "target" && name != "target[]" {
			all[name] = values[n-1:]
		}
	}
	return all
}
