package loki

import (
	"fmt"
	"net/url"

	"github.com/shaledb/shale/internal/api/loki/lokitest"
)

// detectedRequests returns the requests without their responses.
func detectedRequests(begin int64) (all []*lokitest.Request) {
	add := func(path string, pairs ...string) *lokitest.Request {
		r := &lokitest.Request{Path: current + path, Params: url.Values{"start": {fmt.Sprint(begin - 10)}, "end": {fmt.Sprint(begin + 60)}}}
		for i := 0; i < len(pairs); i += 2 {
			r.Params.Set(pairs[i], pairs[i+1])
		}
		all = append(all, r)
		return r
	}
	queries := []string{
		`{app=~".+"}`, `{app="web"}`, `{app="db"}`, `{app="bare"}`, `{app="nothing"}`, `{host="a1"}`, `{app="web"} |= "Bob"`, `{app="web"} | json`, `{app=~".+"} | logfmt`,
		`{app="web"} | json name="user[\"na me\"]" | line_format "{{.name}}=x"`, `{app="web"} | label_format host=pod`, `{app="web"} | drop trace, app`,
		`{app="web"} | json | ms > 5`, `{app="web"} | line_format "{{.host}}" | logfmt`, ``, `{}`, `{app="web"`, `{app=~".*"}`, `{app="web"} |~ "("`, `rate({app="web"}[1m])`,
	}
	for _, q := range queries {
		add("detected_labels", "query", q)
		add("detected_fields", "query", q)
		for _, name := range []string{"ms", "size", "took", "trace", "user_id", "app_extracted", "level", "nothing", "__error__"} {
			add("detected_field/"+name+"/values", "query", q)
		}
	}
	add("detected_labels")
	add("detected_labels", "query", `{app="web"}`).Tenant = "t1|t2"
	add("detected_labels", "start", "1000", "end", "2000")
	add("detected_fields", "query", `{app="web"}`).Tenant = "t1|t2"
	for _, p := range [][2]string{{"line_limit", "1"}, {"line_limit", "x"}, {"line_limit", "0"}, {"line_limit", "-1"}, {"line_limit", "5001"}, {"limit", "x"}, {"limit", "0"},
		{"field_limit", "x"}, {"field_limit", "0"}, {"start", "x"}, {"end", "x"}, {"since", "x"}, {"end", "5"}, {"step", "0"}, {"step", "x"}, {"step", "0.001"}} {
		for _, path := range []string{"detected_labels", "detected_fields", "detected_field/ms/values"} {
			add(path, "query", `{app="db"}`, p[0], p[1])
		}
	}
	return all
}
