package prom

import (
	"fmt"
	"slices"
	"strings"

	"github.com/shaledb/shale/internal/api"
)

// operation describes an endpoint in the OpenAPI document.
type operation struct {
	// path is below /api/v1, or absolute if it does not begin with a letter.
	path, summary string
	// params are names of [parameters]; those that end in ! are required. A POST takes them as a form.
	params string
	// methods are get and post if empty.
	methods string
	// success has the media types of successful responses, json for JSON in the envelope, and 204 for one
	// without a body. Empty: json. none: there is no success.
	success string
}

const none = "none"

// operations returns all that the server serves below /api/v1/, with the receivers, and what this package
// serves outside.
func operations() []operation {
	return []operation{
		{path: "query", summary: "Evaluate a query at one time", params: "query! time timeout limit lookback_delta stats rollups explain"},
		{path: "query_range", summary: "Evaluate a query over a range", params: "query! start! end! step! timeout limit lookback_delta stats rollups explain"},
		{path: "query_exemplars", summary: "Exemplars of the series that a query selects", params: "query! start end explain", success: "json 204"},
		{path: "format_query", summary: "Format a query", params: "query!"},
		{path: "parse_query", summary: "Parse a query into its syntax tree", params: "query!"},
		{path: "series", summary: "Label sets of series", params: "match[]! start end limit explain"},
		{path: "labels", summary: "Label names", params: "match[] start end limit"},
		{path: "label/{name}/values", summary: "Values of a label", params: "match[] start end limit"},
		{path: "metadata", summary: "Type, help and unit of metric families", params: "metric limit limit_per_metric"},
		{path: "status/tsdb", summary: "Counts of the series that are not in the bucket yet", params: "limit"},
		{path: "cardinality/metrics", summary: "Metrics with the most series", params: "match[] day against limit"},
		{path: "cardinality/labels", summary: "Label names with the most values", params: "match[] signal day against limit"},
		{path: "cardinality/values", summary: "Values of a label, or labels, with the most series", params: "match[] label signal day against limit"},
		{path: "cardinality/active", summary: "Active series, and what creates series", params: "signal days limit"},
		{path: "cardinality/unused", summary: "Metrics and labels that no query has asked for in 30 days", params: "limit"},
		{path: "status/tsdb/blocks", summary: "Blocks of the bucket"},
		{path: "status/self_metrics", summary: "Metrics of Shale itself", params: "metric_name_pattern"},
		{path: "status/buildinfo", summary: "Version of the program"},
		{path: "status/config", summary: "Settings as YAML"},
		{path: "status/flags", summary: "Settings by name"},
		{path: "status/runtimeinfo", summary: "State of the process"},
		{path: "status/walreplay", summary: "Progress of the replay of the journal, which is complete"},
		{path: "features", summary: "Features that are on or off"},
		{path: "openapi.yaml", summary: "This document", success: yamlType},
		{path: "rules", summary: "Rule groups: none", params: "type exclude_alerts match[] group_limit group_next_token"},
		{path: "alerts", summary: "Active alerts: none"},
		{path: "alertmanagers", summary: "Alertmanagers: none"},
		{path: "notifications", summary: "Notifications: none"},
		{path: "notifications/live", summary: "Stream of notifications: none", success: "204"},
		{path: "scrape_pools", summary: "Scrape pools: none"},
		{path: "scrape_pools/config", summary: "Configuration of a scrape pool: none is found", params: "scrapePool!", success: none},
		{path: "targets", summary: "Scrape targets: none", params: "state"},
		{path: "targets/metadata", summary: "Metadata of scrape targets: none", params: "match_target metric limit"},
		{path: "targets/relabel_steps", summary: "Relabeling of a scrape pool: none is found", params: "scrapePool! labels!", success: none},
		{path: "search/metric_names", summary: "Search for metric names: disabled", success: none},
		{path: "search/label_names", summary: "Search for label names: disabled", success: none},
		{path: "search/label_values", summary: "Search for label values: disabled", success: none},
		{path: "admin/tsdb/delete_series", summary: "Delete samples of series", methods: "post put", params: "match[]! start end", success: "204"},
		{path: "admin/tsdb/clean_tombstones", summary: "Start to remove deleted data", methods: "post put", success: "204"},
		{path: "admin/tsdb/snapshot", summary: "Take a snapshot: disabled", methods: "post put", success: none},
		{path: "read", summary: "Remote read: a body in protobuf, compressed by snappy", methods: "post", success: "application/x-protobuf"},
		{path: "write", summary: "Remote write 1.0 or 2.0: a body in protobuf", methods: "post", success: "204"},
		{path: "otlp/v1/metrics", summary: "Metrics of OpenTelemetry", methods: "post", success: "application/x-protobuf"},
		{path: "/federate", summary: "Newest samples of series", params: "match[]", success: "text/plain"},
		{path: "/version", summary: "Version of the program, as JSON without an envelope", success: "text/plain"},
	}
}

// parameters returns the schema and the description of each parameter.
func parameters() map[string][2]string {
	const (
		text, number, texts = "{type: string}", "{type: integer}", "{type: array, items: {type: string}}"
		instant             = "{oneOf: [{type: string, format: date-time}, {type: number}]}"
		length              = "{oneOf: [{type: string}, {type: number}]}"
	)
	return map[string][2]string{
		"query":               {text, "PromQL expression."},
		"time":                {instant, "Time of the evaluation: RFC 3339 or Unix seconds. By default now."},
		"start":               {instant, "First time: RFC 3339 or Unix seconds."},
		"end":                 {instant, "Last time: RFC 3339 or Unix seconds."},
		"step":                {length, "Interval between two evaluations, such as 15s, or in seconds."},
		"timeout":             {length, "Longest run time, at most query.timeout."},
		"limit":               {number, "Most entries of the result."},
		"lookback_delta":      {length, "Greatest age of a sample that a selector returns."},
		"stats":               {text, "Statistics to add: true or all."},
		"rollups":             {"{type: boolean}", "Whether the query uses rollups in place of points, in place of what query.rollups says."},
		"explain":             {"{type: boolean}", "Return the bill of the query, which is what it would read from the bucket, without running it."},
		"match[]":             {texts, "Selectors of series. The result is their union."},
		"metric":              {text, "Name of a metric family. By default all."},
		"limit_per_metric":    {number, "Most entries of a metric family."},
		"metric_name_pattern": {text, "Regular expression that matches whole names."},
		"type":                {"{type: string, enum: [alert, record]}", "Kind of rules."},
		"exclude_alerts":      {"{type: boolean}", "Leave out the alerts of rules."},
		"group_limit":         {number, "Most rule groups."},
		"group_next_token":    {text, "Token of the next page of rule groups."},
		"state":               {text, "State of targets: active, dropped or any."},
		"scrapePool":          {text, "Name of a scrape pool."},
		"labels":              {text, "Labels of a target as a JSON object."},
		"label":               {text, "Name of a label. By default all labels."},
		"signal":              {"{type: string, enum: [metrics, logs]}", "Which series: those of metrics, or streams of log lines."},
		"day":                 {"{type: string, format: date}", "Day, in UTC, on which the series had samples. By default the series of now."},
		"against":             {"{type: string, format: date}", "Day to compare with. The result has the greatest changes."},
		"days":                {number, "Days of created series, with today."},
		"match_target":        {text, "Selector of targets."},
	}
}

const yamlType = "application/yaml"

// openAPI serves the document.
func (h *Handler) openAPI(r *api.Request) (*api.Response, error) {
	r.W.Header().Set("Cache-Control", "no-cache, no-store, must-revalidate")
	return &api.Response{ContentType: yamlType + "; charset=utf-8", Write: func(b *api.Body) error {
		b.Raw(h.document)
		return nil
	}}, nil
}

// openAPIDocument writes the operations as an OpenAPI document.
func openAPIDocument(all []operation) string {
	var b strings.Builder
	b.WriteString(`openapi: 3.1.0
info:
  title: Shale, Prometheus HTTP API
  description: The HTTP API of Prometheus as Shale serves it. The header X-Scope-OrgID names the tenant.
  version: v1
servers:
  - url: /api/v1
paths:
`)
	known := parameters()
	for i := range all {
		all[i].write(&b, known)
	}
	b.WriteString(`components:
  schemas:
    Success:
      type: object
      required: [status, data]
      properties:
        status: {const: success}
        data: {}
        warnings: {type: array, items: {type: string}}
        infos: {type: array, items: {type: string}}
    Error:
      type: object
      required: [status, errorType, error]
      properties:
        status: {const: error}
        errorType: {enum: [bad_data, execution, timeout, canceled, internal, unavailable, not_found]}
        error: {type: string}
`)
	return b.String()
}

// write writes the entry of a path.
func (o *operation) write(b *strings.Builder, known map[string][2]string) {
	outside := strings.HasPrefix(o.path, "/")
	fmt.Fprintf(b, "  /%s:\n", strings.TrimPrefix(o.path, "/"))
	if outside {
		b.WriteString("    servers: [{url: /}]\n")
	}
	if strings.Contains(o.path, "{name}") {
		b.WriteString("    parameters:\n      - {name: name, in: path, required: true, schema: {type: string}, description: Name of a label.}\n")
	}
	methods := strings.Fields(o.methods)
	if len(methods) == 0 {
		methods = []string{"get", "post"}
	}
	for _, method := range methods {
		id := strings.Map(func(c rune) rune {
			if strings.ContainsRune("/.{}", c) {
				return '-'
			}
			return c
		}, strings.Trim(o.path, "/"))
		fmt.Fprintf(b, "    %s:\n      operationId: %s-%s\n      summary: %q\n", method, id, method, o.summary)
		o.writeParameters(b, method, known)
		o.writeResponses(b, outside)
	}
}

func (o *operation) writeParameters(b *strings.Builder, method string, known map[string][2]string) {
	names := strings.Fields(o.params)
	if len(names) == 0 {
		return
	}
	if method == "get" {
		b.WriteString("      parameters:\n")
		for _, n := range names {
			name, required := strings.CutSuffix(n, "!")
			p := known[name]
			fmt.Fprintf(b, "        - {name: %q, in: query, required: %t, schema: %s, description: %q}\n", name, required, p[0], p[1])
		}
		return
	}
	b.WriteString("      requestBody:\n        content:\n          application/x-www-form-urlencoded:\n            schema:\n              type: object\n")
	required := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !strings.HasSuffix(n, "!") })
	if len(required) > 0 {
		fmt.Fprintf(b, "              required: [%s]\n", strings.ReplaceAll(strings.Join(quoted(required), ", "), "!", ""))
	}
	b.WriteString("              properties:\n")
	for _, n := range names {
		name := strings.TrimSuffix(n, "!")
		fmt.Fprintf(b, "                %q: %s\n", name, known[name][0])
	}
}

func quoted(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = fmt.Sprintf("%q", n)
	}
	return out
}

func (o *operation) writeResponses(b *strings.Builder, outside bool) {
	b.WriteString("      responses:\n")
	kinds := strings.Fields(o.success)
	if len(kinds) == 0 {
		kinds = []string{"json"}
	}
	for _, kind := range kinds {
		switch {
		case kind == none:
		case kind == "204":
			b.WriteString("        \"204\": {description: No content.}\n")
		case kind != "json":
			fmt.Fprintf(b, "        \"200\": {description: Success., content: {%s: {}}}\n", kind)
		case outside:
			b.WriteString("        \"200\": {description: Success., content: {application/json: {schema: {type: object}}}}\n")
		default:
			b.WriteString("        \"200\": {description: Success., content: {application/json: {schema: {$ref: \"#/components/schemas/Success\"}}}}\n")
		}
	}
	switch {
	case outside, o.methods == "post": // errors as text
		b.WriteString("        default: {description: Error as text., content: {text/plain: {schema: {type: string}}}}\n")
	default:
		b.WriteString("        default: {description: Error., content: {application/json: {schema: {$ref: \"#/components/schemas/Error\"}}}}\n")
	}
}
