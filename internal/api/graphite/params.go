package graphite

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read/graphite/attime"
	"github.com/shaledb/shale/internal/read/graphite/names"
)

// maxQueries bounds the parameter query of one request: each is a search of its own.
const maxQueries = 256

// param returns the last value of a parameter; those of the body come after those of the URL.
func param(r *api.Request, name string) string {
	values := r.PostForm[name]
	if len(values) == 0 {
		values = r.Form[name]
	}
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

// list returns the values of a parameter that may repeat: name or, as some clients write it, name[].
func list(r *api.Request, name string) ([]string, error) {
	values := r.Form[name]
	if len(values) == 0 {
		values = r.Form[name+"[]"]
	}
	if len(values) > maxQueries {
		return nil, badParameters("%d values of %s; at most %d are allowed", len(values), name, maxQueries)
	}
	return values, nil
}

// whole reads a whole number.
func whole(r *api.Request, name string, otherwise int) (int, error) {
	if !r.Form.Has(name) {
		return otherwise, nil
	}
	text := param(r, name)
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return 0, badParameters("Invalid int value %.200q for param %s: expected a whole number", text, name)
	}
	return n, nil
}

// flags reads parameters of which any number but 0 means yes.
func flags(r *api.Request, names ...string) (map[string]bool, error) {
	out := make(map[string]bool, len(names))
	for _, name := range names {
		n, err := whole(r, name, 0)
		if err != nil {
			return nil, err
		}
		out[name] = n != 0
	}
	return out, nil
}

// zoneOf reads the parameter tz. As in graphite-web, a zone that does not exist is ignored.
func zoneOf(r *api.Request) *time.Location {
	name := param(r, "tz")
	if zone, err := time.LoadLocation(name); err == nil && name != "Local" {
		return zone
	}
	return time.UTC
}

// rangeOf reads the times of a request for names. Without one, or with -1, the range has no such bound.
func (h *Handler) rangeOf(r *api.Request) (model.TimeRange, error) {
	rg := model.TimeRange{Min: math.MinInt64, Max: math.MaxInt64}
	now := h.o.Now().In(zoneOf(r))
	at := func(name string) (time.Time, bool, error) {
		text := param(r, name)
		if text == "" || text == "-1" {
			return time.Time{}, false, nil
		}
		t, err := attime.Parse(text, now)
		if err != nil {
			return t, false, badParameters("Invalid value %.200q for param %s: %w", text, name, withoutClass(err))
		}
		return t, true, nil
	}
	if t, ok, err := at("now"); err != nil {
		return rg, err
	} else if ok {
		now = t
	}
	if t, ok, err := at("from"); err != nil {
		return rg, err
	} else if ok {
		rg.Min = t.UnixNano()
	}
	if t, ok, err := at("until"); err != nil {
		return rg, err
	} else if ok {
		rg.Max = t.UnixNano()
	}
	if rg.Min > rg.Max {
		rg.Min, rg.Max = rg.Max, rg.Min
	}
	return rg, nil
}

// withoutClass is an error whose text does not repeat its class.
func withoutClass(err error) error {
	text := err.Error()
	for _, class := range []error{model.ErrInvalid, model.ErrLimit} {
		text = strings.TrimPrefix(text, class.Error()+": ")
	}
	return errors.New(text)
}

// query returns a query for the names of the tenant of a request.
func (h *Handler) query(r *api.Request) (*names.Query, error) {
	rg, err := h.rangeOf(r)
	return &names.Query{Tenant: r.Tenant(), Range: rg, Quota: r.Quota, Cost: r.Cost}, err
}

// jsonText returns a response that write writes as JSON, as the argument of a function if the client wants
// that.
func jsonText(r *api.Request, write func(b *api.Body) error) (*api.Response, error) {
	name := param(r, "jsonp")
	switch {
	case name == "":
		return &api.Response{Write: write}, nil
	case !callback.MatchString(name):
		return nil, badParameters("jsonp must be the name of a function, not %.200q", name)
	}
	return &api.Response{ContentType: "text/javascript", Write: func(b *api.Body) error {
		b.Raw(name + "(")
		err := write(b)
		b.Raw(")")
		return err
	}}, nil
}

// uncached says that names change at any time, as graphite-web does.
func uncached(r *api.Request, res *api.Response, err error) (*api.Response, error) {
	r.W.Header().Set("Pragma", "no-cache")
	r.W.Header().Set("Cache-Control", "no-cache")
	return res, err
}
