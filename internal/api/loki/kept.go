package loki

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/shaledb/shale/internal/api"
)

// varies are the headers that change responses.
var varies = []string{"Accept", "X-Loki-Response-Encoding-Flags"}

// Which responses may be kept.
var (
	keptInstant = &api.Kept{Times: []string{"time"}, Headers: varies, Refuse: isMoving}
	keptRange   = &api.Kept{Times: []string{"start", "end"}, Headers: varies, Refuse: isMoving}
	// keptSummary is for what is said of the lines of a range, which is the same for every client.
	keptSummary = &api.Kept{Times: []string{"start", "end"}, Headers: varies, Refuse: asksForNow, MayLag: true}
	keptSeries  = &api.Kept{Times: []string{"start", "end"}, Headers: varies, Refuse: isMoving, MayLag: true}
	keptLabels  = &api.Kept{Times: []string{"start", "end"}, Headers: varies, Align: alignTimes, MayLag: true}
)

// isMoving reports whether the response to a query may depend on more than the data: Grafana's Logs Drilldown
// gets a part of a large result.
func isMoving(r *api.Request) bool { return isDrilldown(r.Header) || asksForNow(r) }

// asksForNow reports whether a template of a query may ask for the time of the evaluation.
func asksForNow(r *api.Request) bool {
	q := r.Form.Get("query")
	if !strings.Contains(q, "_format") { // line_format and label_format have templates
		return false
	}
	// The function date takes a text for now. An escape may hide either name.
	return strings.Contains(q, "now") || strings.Contains(q, "date") || strings.Contains(q, `\`)
}

// alignTimes widens the range of a request for labels. Labels are listed by blocks anyway, and
// a dashboard asks for those of a range that ends now.
func alignTimes(form url.Values) {
	api.AlignTimes(form, func(s string) (int64, bool) {
		t, err := parseTime(s)
		return t, err == nil
	}, func(t int64) string { return strconv.FormatInt(t, 10) })
}
