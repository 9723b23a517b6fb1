package graphite

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/read/graphite"
	"github.com/shaledb/shale/internal/read/graphite/series"
)

// Tags answers questions about the tags of series: a [graphite.Engine].
type Tags interface {
	TaggedSeries(ctx context.Context, q *graphite.TagQuery) ([]string, error)
	TagNames(ctx context.Context, q *graphite.TagQuery) ([]string, error)
	TagValues(ctx context.Context, q *graphite.TagQuery, tag string) ([]string, error)
	CountedTagValues(ctx context.Context, q *graphite.TagQuery, tag string) ([]graphite.CountedValue, error)
}

var _ Tags = (*graphite.Engine)(nil)

// Methods of endpoints about tags.
const (
	reads  = "GET, HEAD"
	writes = "POST"
)

func (h *Handler) tagEndpoints() []api.Endpoint {
	return []api.Endpoint{
		{Pattern: "/tags", Name: "tags", Needs: bounded, Methods: reads, Serve: h.tags},
		{Pattern: "/tags/{tag}", Name: "tag", Needs: bounded, Methods: reads, Serve: h.tag},
		{Pattern: "/tags/findSeries", Name: "find_series", Needs: bounded, Serve: h.findSeries},
		{Pattern: "/tags/autoComplete/tags", Name: "complete_tags", Needs: bounded, Serve: h.completeTags},
		{Pattern: "/tags/autoComplete/values", Name: "complete_values", Needs: bounded, Serve: h.completeValues},
		{Pattern: "/tags/tagSeries", Name: "tag_series", Needs: fixed, Methods: writes, Serve: h.tagSeries},
		{Pattern: "/tags/tagMultiSeries", Name: "tag_series", Needs: fixed, Methods: writes, Serve: h.tagMultiSeries},
		{Pattern: "/tags/delSeries", Name: "del_series", Needs: fixed, Methods: writes, Serve: h.delSeries},
	}
}

// usualCompletions is the limit of autocompletion without one, as in graphite-web.
const usualCompletions = 100

// tagQuery reads the parameters of a request for tags.
func (h *Handler) tagQuery(r *api.Request, usualLimit int) (*graphite.TagQuery, error) {
	rg, err := h.rangeOf(r)
	if err != nil {
		return nil, err
	}
	q := &graphite.TagQuery{Tenant: r.Tenant(), Range: rg, Limit: usualLimit, Quota: r.Quota, Cost: r.Cost}
	if text := param(r, "limit"); text != "" {
		if q.Limit, err = strconv.Atoi(text); err != nil || q.Limit < 0 {
			return nil, badParameters("limit must be a whole number from 0, not %.200q", text)
		}
		if q.Limit == 0 {
			q.Limit = usualLimit
		}
	}
	q.Expressions, err = list(r, "expr")
	return q, err
}

// tags serves all tags.
func (h *Handler) tags(r *api.Request) (*api.Response, error) {
	q, err := h.tagQuery(r, 0)
	if err != nil {
		return nil, err
	}
	q.Expressions, q.Filter = nil, param(r, "filter")
	found, err := h.o.Tags.TagNames(r.Context(), q)
	if err != nil {
		return nil, err
	}
	type tag struct {
		Tag string `json:"tag"`
	}
	all := make([]tag, len(found))
	for i, t := range found {
		all[i].Tag = t
	}
	return jsonResponse(all)
}

// tag serves the values of a tag; of a tag that no series has, null.
func (h *Handler) tag(r *api.Request) (*api.Response, error) {
	q, err := h.tagQuery(r, 0)
	if err != nil {
		return nil, err
	}
	q.Expressions, q.Filter = nil, param(r, "filter")
	tag := r.PathValue("tag")
	values, err := h.o.Tags.CountedTagValues(r.Context(), q, tag)
	if err != nil {
		return nil, err
	}
	if len(values) == 0 && q.Filter == "" {
		return jsonResponse(nil)
	}
	return jsonResponse(struct {
		Tag    string                  `json:"tag"`
		Values []graphite.CountedValue `json:"values"`
	}{tag, values})
}

// findSeries serves the paths of series by expressions of their tags.
func (h *Handler) findSeries(r *api.Request) (*api.Response, error) {
	q, err := h.tagQuery(r, 0)
	if err != nil {
		return nil, err
	}
	if len(q.Expressions) == 0 {
		return nil, badText("no tag expressions specified")
	}
	return texts(h.o.Tags.TaggedSeries(r.Context(), q))
}

func (h *Handler) completeTags(r *api.Request) (*api.Response, error) {
	q, err := h.tagQuery(r, usualCompletions)
	if err != nil {
		return nil, err
	}
	q.Prefix = param(r, "tagPrefix")
	return texts(h.o.Tags.TagNames(r.Context(), q))
}

func (h *Handler) completeValues(r *api.Request) (*api.Response, error) {
	q, err := h.tagQuery(r, usualCompletions)
	if err != nil {
		return nil, err
	}
	tag := param(r, "tag")
	if tag == "" {
		return nil, badText("no tag specified")
	}
	q.Prefix = param(r, "valuePrefix")
	return texts(h.o.Tags.TagValues(r.Context(), q, tag))
}

// texts writes a list of strings.
func texts(all []string, err error) (*api.Response, error) {
	if err != nil {
		return nil, err
	}
	return &api.Response{Write: func(b *api.Body) error {
		b.Texts(all)
		return nil
	}}, nil
}

// canonical returns a path with its tags in order.
func canonical(path string) (string, error) {
	tags, err := series.ParseTags(path)
	if err != nil {
		return "", err
	}
	return series.FormatTags(tags["name"], tags), nil
}

// tagSeries returns the canonical form of a path. Nothing is stored: points bring their tags.
func (h *Handler) tagSeries(r *api.Request) (*api.Response, error) {
	path := param(r, "path")
	if path == "" {
		return nil, badText("no path specified")
	}
	text, err := canonical(path)
	if err != nil {
		return nil, err
	}
	return jsonResponse(text)
}

// tagMultiSeries is tagSeries for several paths.
func (h *Handler) tagMultiSeries(r *api.Request) (*api.Response, error) {
	paths := r.Form["path"]
	if len(paths) == 0 {
		paths = r.Form["path[]"]
	}
	if len(paths) == 0 {
		return nil, badText("no paths specified")
	}
	out := make([]string, len(paths))
	for i, p := range paths {
		var err error
		if out[i], err = canonical(p); err != nil {
			return nil, err
		}
	}
	return texts(out, nil)
}

// delSeries refuses: the tags of a series are part of it, and cannot be taken from its points.
func (h *Handler) delSeries(*api.Request) (*api.Response, error) {
	return nil, failed(http.StatusNotImplemented, errors.New("tags are a part of their series here: delete the points with POST /api/v1/admin/tsdb/delete_series"))
}
