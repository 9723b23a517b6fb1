package loki

import (
	"net/http"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

func (h *Handler) buildInfo(*api.Request) (*api.Response, error) {
	res := response(func(b *api.Body) {
		b.Raw("{")
		b.VersionMembers(&h.o.Version)
		b.Raw("}\n")
	})
	res.ContentType = "application/json"
	return res, nil
}

// formatQuery returns a query in its standard form. Unlike everywhere else, an error in the query is JSON.
func (h *Handler) formatQuery(r *api.Request) (*api.Response, error) {
	text := r.Form.Get("query")
	if err := r.Quota.TakeBytes(treeBytes * int64(len(text))); err != nil {
		return nil, err
	}
	begin, status := `{"status":"success","data":`, http.StatusOK
	expr, err := syntax.Parse(text)
	if err != nil {
		e := classify(err, false)
		if e.Status != http.StatusBadRequest {
			return nil, err
		}
		begin, status, text = `{"status":"invalid-query","error":`, e.Status, errorText(e)
	} else {
		text = syntax.Pretty(expr)
	}
	res := response(func(b *api.Body) {
		b.Raw(begin)
		b.Str(text)
		b.Raw("}\n")
	})
	res.ContentType, res.Status = "application/json; charset=utf-8", status
	return res, nil
}
