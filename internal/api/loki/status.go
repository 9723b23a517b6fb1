package loki

import (
	"net/http"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/read/logql/syntax"
)

func (h *Handler) buildInfo(http.ResponseWriter, *request) (*answer, error) {
	v := &h.o.Version
	return &answer{contentType: "application/json", write: func(b *api.Body) {
		for i, m := range [...][2]string{
			{`{"version":`, v.Version}, {`"revision":`, v.Revision}, {`"branch":`, v.Branch},
			{`"buildUser":`, v.BuildUser}, {`"buildDate":`, v.BuildDate}, {`"goVersion":`, v.GoVersion},
		} {
			if i > 0 {
				b.Raw(",")
			}
			b.Raw(m[0])
			b.Str(m[1])
		}
		b.Raw("}\n")
	}}, nil
}

// formatQuery answers with a query in its standard form. What is wrong with it is JSON here, unlike everywhere else.
func (h *Handler) formatQuery(_ http.ResponseWriter, r *request) (*answer, error) {
	text := r.form.Get("query")
	if err := r.quota.TakeBytes(treeBytes * int64(len(text))); err != nil {
		return nil, err
	}
	a := &answer{contentType: "application/json; charset=utf-8"}
	expr, err := syntax.Parse(text)
	if err != nil {
		e := classify(err)
		if e.status != http.StatusBadRequest {
			return nil, err
		}
		a.status = e.status
		a.write = func(b *api.Body) {
			b.Raw(`{"status":"invalid-query","error":`)
			b.Str(e.text())
			b.Raw("}\n")
		}
		return a, nil
	}
	formatted := syntax.Pretty(expr)
	a.write = func(b *api.Body) {
		b.Raw(`{"status":"success","data":`)
		b.Str(formatted)
		b.Raw("}\n")
	}
	return a, nil
}
