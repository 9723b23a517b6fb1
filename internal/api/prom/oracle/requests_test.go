package oracle

import (
	"fmt"
	"strings"
	"time"
)

// expressions are queries of every node of the language, and of every kind of value.
var expressions = []string{
	"http_requests_total", `http_requests_total{job="j0"}`, "special", `{"dotted.näme"}`, "gone", "native", "custom", "odd", "mixed", "old", "long", "{nameless=\"yes\"}",
	`http_requests_total{job=~"j[01]",instance!="1",job!~"j1"} offset 1m`, "http_requests_total[1m]", "native[1m]", "mixed[2m]", `"a <string> & \"quotes\""`, "1", "1e300", "NaN", "-Inf", "-0", "1e-7", "0x1F",
	"vector(1)", "time()", "scalar(vector(3))", "nothing",
	"sum by (job) (rate(http_requests_total[5m]))", "sum without (instance) (http_requests_total)", "topk(2, http_requests_total)", "quantile(0.9, http_requests_total)", `sort(count_values("v", http_requests_total{job="j0"}))`,
	"rate(special[5m])", "http_requests_total * on (job, instance) group_left () http_requests_total", "http_requests_total > bool 10 or special", "http_requests_total and ignoring (instance) http_requests_total",
	"http_requests_total unless on (job) special", "-http_requests_total", "(http_requests_total + 1) ^ 2 % 3", "sum_over_time(http_requests_total[5m:1m] offset 1m)", "max_over_time(rate(http_requests_total[1m])[5m:30s])",
	"http_requests_total @ start()", "http_requests_total @ end()", "http_requests_total @ 1700000000.123", "rate(http_requests_total[5m] @ end() offset -1m)",
	"histogram_quantile(0.9, rate(native[5m]))", "histogram_count(native)", "histogram_sum(odd)", "histogram_fraction(0, 1, custom)", "rate(native[5m])", "rate(custom[5m])", "sum(native)", "avg(custom)", "native * 2", "sum(rate(classic_bucket[5m])) by (le)",
	"histogram_quantile(0.5, classic_bucket)", "native + custom", "rate(mixed[5m])", "sum_over_time(mixed[5m])", "mad_over_time(http_requests_total[5m])", "sort_by_label(http_requests_total, \"job\")", "limitk(1, http_requests_total)",
	`label_replace(http_requests_total, "x", "$1", "job", "j(.*)")`, `label_join(http_requests_total, "x", "-", "job", "instance")`, `absent(nothing{a="b"})`, `absent_over_time(nothing[5m])`, "day_of_month()", "changes(http_requests_total[5m])",
	"http_requests_total[5m + 1m]", "rate(http_requests_total[1m * 2])", "http_requests_total offset (1m + 30s)", "http_requests_total[step() * 2]", "rate(http_requests_total[5m] smoothed)", "rate(http_requests_total[5m] anchored)",
	"http_requests_total + fill(0) special", "http_requests_total + on (job) group_left fill_right(1) special", "max_of(1m, 2m)", "http_requests_total[-(5m)]",
	strings.Repeat("http_requests_total or ", 8) + "special", "sum by (job, instance, le, code, handler) (rate(http_requests_total{job=~\"j.*\"}[5m])) / ignoring (x) group_left (y) sum(http_requests_total)",
	"", "up{", "sum(", "http_requests_total[5m", "foo{a=\"b\",}[5m]", "1 +", "up and 1", "nothing_such()", `up{a=~"("}`, "rate(up)", "http_requests_total[0s]", "up @ \"x\"", "up offset", "\"unclosed", "{}", `{__name__=~".*"}`, "up # comment", "'single'", "`raw`",
}

// requests has the requests other than queries, and the parameters of queries.
func requests(now time.Time) []exchangeCase {
	start, end := fmt.Sprint(now.Add(-10*time.Minute).Unix()), fmt.Sprint(now.Unix())
	at := "time=" + end
	all := []exchangeCase{
		get("/api/v1/query"), get("/api/v1/query", "query=1", at, "limit=-1"), get("/api/v1/query", "query=1", at, "limit=x"), get("/api/v1/query", "query=1", "time=x", "limit=x"),
		get("/api/v1/query", "query=1", at, "timeout=x"), get("/api/v1/query", "query=1", at, "timeout=1s"), get("/api/v1/query", "query=1", at, "lookback_delta=x"),
		get("/api/v1/query", "query=http_requests_total", at, "limit=3"), get("/api/v1/query", "query=http_requests_total", at, "limit=6"), get("/api/v1/query", "query=http_requests_total", at, "limit=0"),
		get("/api/v1/query", "query=http_requests_total[5m]", at, "limit=3"), get("/api/v1/query", "query=1", at, "limit=1"), get("/api/v1/query", "query=1", at, "stats=something"), get("/api/v1/query", "query=1", at, "stats=true"),
		get("/api/v1/query", "query=http_requests_total", at, "timeout=0"), get("/api/v1/query", "query=1", "time=2020-01-01T00:00:00.123456789Z"), get("/api/v1/query", "query=time()", "time=-5.0625"), get("/api/v1/query", "query=1", "time=1e9"),
		get("/api/v1/query", "query=count(http_requests_total[100d:100ms])", at), get("/api/v1/query", "query=http_requests_total", at, "timeout=1e-9"),
		get("/api/v1/query_range", "query=1", "start="+start, "end="+end, "step=60"), get("/api/v1/query_range", "query=1", "start=x", "end="+end, "step=60"), get("/api/v1/query_range", "query=1", "start="+start, "end=x", "step=60"),
		get("/api/v1/query_range", "query=1", "start="+end, "end="+start, "step=60"), get("/api/v1/query_range", "query=1", "start="+start, "end="+end, "step=x"), get("/api/v1/query_range", "query=1", "start="+start, "end="+end, "step=0"),
		get("/api/v1/query_range", "query=1", "start="+start, "end="+end, "step=-1"), get("/api/v1/query_range", "query=1", "start=0", "end="+end, "step=1"), get("/api/v1/query_range", "query=1", "start="+start, "end="+end, "step=1e300"),
		get("/api/v1/query_range", "query=http_requests_total", "start="+start, "end="+end, "step=1h", "limit=2"), get("/api/v1/query_range", "query=1", "start="+start, "end="+end, "step=15", "timeout=x"), get("/api/v1/query_range"),
		get("/api/v1/query_range", "query=http_requests_total[5m]", "start="+start, "end="+end, "step=15"), get("/api/v1/query_range", "query=\"x\"", "start="+start, "end="+end, "step=15"),

		get("/api/v1/labels"), get("/api/v1/labels", "limit=3"), get("/api/v1/labels", "limit=0"), get("/api/v1/labels", "limit=-3"), get("/api/v1/labels", "limit=x"), get("/api/v1/labels", "match[]=special"), get("/api/v1/labels", "match[]=special", "match[]=native"),
		get("/api/v1/labels", "match[]=special", "match[]=native", "limit=1"), get("/api/v1/labels", "match[]=nothing"), get("/api/v1/labels", "match[]={}"), get("/api/v1/labels", "match[]=up{"), get("/api/v1/labels", "start=x"), get("/api/v1/labels", "end=x"),
		get("/api/v1/labels", "start="+start, "end="+end), get("/api/v1/labels", "start=1", "end=2"), {method: "POST", path: "/api/v1/labels", params: []string{"match[]=special", "limit=1"}},
		get("/api/v1/label/__name__/values"), get("/api/v1/label/__name__/values", "limit=2"), get("/api/v1/label/job/values", "match[]=native", "match[]=special"), get("/api/v1/label/job/values", "match[]=native", "match[]=special", "limit=2"),
		get("/api/v1/label/nothing/values"), get("/api/v1/label/job/values", "match[]={a=\"\"}"), get("/api/v1/label/job/values", "match[]=("), get("/api/v1/label/job/values", "limit=x"), get("/api/v1/label/job/values", "start=x"), get("/api/v1/label/job/values", "end=x"),
		get("/api/v1/label/U__label_20_with_20_space/values"), get("/api/v1/label/U__a_2e_b/values"), get("/api/v1/label/label%20with%20space/values"), get("/api/v1/label/a.b/values"), get("/api/v1/label/U___/values"), get("/api/v1/label/U__job/values"), get("/api/v1/label/%FF/values"),
		get("/api/v1/series"), get("/api/v1/series", "match[]=http_requests_total"), get("/api/v1/series", "match[]=http_requests_total", "limit=2"), get("/api/v1/series", "match[]=http_requests_total", "match[]={job=\"j0\"}"),
		get("/api/v1/series", "match[]=http_requests_total", "match[]={job=\"j0\"}", "limit=4"), get("/api/v1/series", "match[]="), get("/api/v1/series", "match[]={}"), get("/api/v1/series", "match[]=sum(up)"), get("/api/v1/series", "match[]=up", "limit=x"),
		get("/api/v1/series", "match[]=up", "start=x"), get("/api/v1/series", "match[]=up", "end=x"), get("/api/v1/series", "match[]=old", "start="+start), get("/api/v1/series", "match[]={\"dotted.näme\"}"), {method: "POST", path: "/api/v1/series", params: []string{"match[]=special"}},
		get("/api/v1/series", "match[]=up", "limit=-1"), get("/api/v1/series", "match[]=http_requests_total", "limit=6"),

		get("/api/v1/query_exemplars", "query=http_requests_total", "start="+start, "end="+end), get("/api/v1/query_exemplars", "query=sum(rate(http_requests_total{job=\"j0\"}[5m])) + http_requests_total{job=\"j1\"}"), get("/api/v1/query_exemplars", "query=1"),
		get("/api/v1/query_exemplars"), get("/api/v1/query_exemplars", "query=test", "start="+start+"000", "end="+end+"000"), get("/api/v1/query_exemplars", "query=up", "start=x"), get("/api/v1/query_exemplars", "query=up", "end=x"),
		get("/api/v1/query_exemplars", "query=up", "start="+end, "end="+start), get("/api/v1/query_exemplars", "query=up{"), {method: "POST", path: "/api/v1/query_exemplars", params: []string{"query=http_requests_total", "start=" + start, "end=" + end}},

		get("/api/v1/metadata"), get("/api/v1/metadata", "limit=x"), get("/api/v1/metadata", "limit_per_metric=x"), get("/api/v1/metadata", "metric=up", "limit=", "limit_per_metric=0"),
		get("/api/v1/targets"), get("/api/v1/targets", "state=active"), get("/api/v1/targets", "state=dropped"), get("/api/v1/targets", "state=ANY"), get("/api/v1/targets", "state=x"), get("/api/v1/targets/metadata"), get("/api/v1/targets/metadata", "limit=x"),
		get("/api/v1/targets/metadata", "match_target={"), get("/api/v1/targets/metadata", "match_target={job=\"x\"}", "metric=up", "limit=1"), get("/api/v1/scrape_pools"), get("/api/v1/alertmanagers"), get("/api/v1/alerts"), get("/api/v1/notifications"),
		get("/api/v1/rules"), get("/api/v1/rules", "type=alert"), get("/api/v1/rules", "type=RECORD"), get("/api/v1/rules", "type=x"), get("/api/v1/rules", "exclude_alerts=x"), get("/api/v1/rules", "exclude_alerts=TRUE"), get("/api/v1/rules", "group_limit=x"),
		get("/api/v1/rules", "group_limit=0"), get("/api/v1/rules", "group_next_token=x"), get("/api/v1/rules", "group_limit=1", "group_next_token=x"), get("/api/v1/rules", "match[]={}"), get("/api/v1/rules", "match[]=("), get("/api/v1/rules", "rule_name[]=a", "rule_group[]=b", "file[]=c"),
		get("/api/v1/status/flags"), get("/api/v1/status/config"), get("/api/v1/status/walreplay"), get("/api/v1/status/tsdb", "limit=0"), get("/api/v1/status/tsdb", "limit=x"), get("/api/v1/status/tsdb", "limit=10001"),
		get("/api/v1/status/self_metrics", "metric_name_pattern=("), get("/api/v1/status/self_metrics", "metric_name_pattern=nothing"), get("/api/v1/scrape_pools/config"), get("/api/v1/scrape_pools/config", "scrapePool=x"),
		get("/api/v1/targets/relabel_steps"), get("/api/v1/targets/relabel_steps", "scrapePool=x"), get("/api/v1/targets/relabel_steps", "scrapePool=x", "labels={"), get("/api/v1/targets/relabel_steps", "scrapePool=x", "labels={\"a\":\"b\"}"),
		{method: "POST", path: "/api/v1/admin/tsdb/clean_tombstones"}, {method: "PUT", path: "/api/v1/admin/tsdb/snapshot"}, {method: "POST", path: "/api/v1/admin/tsdb/delete_series", params: []string{"match[]=up"}}, get("/version"),
		get("/api/v1/query", "query=sum_over_time(http_requests_total[5m:step()])", at), get("/api/v1/query_range", "query=sum_over_time(http_requests_total[step()*2:step()/2])", "start="+start, "end="+end, "step=60"), get("/api/v1/query", "query=sum_over_time(http_requests_total[1m:-(1m)])", at),
		get("/api/v1/search/metric_names", "search[]=x"), get("/api/v1/format_query"), get("/api/v1/parse_query"), {method: "POST", path: "/api/v1/format_query", params: []string{"query=a+b"}}, {method: "POST", path: "/api/v1/parse_query", params: []string{"query=a+b"}},

		{path: "/api/v1/labels", headers: []string{"Origin: http://x"}}, {path: "/api/v1/query", params: []string{"query="}, headers: []string{"Origin: http://x"}}, {method: "OPTIONS", path: "/api/v1/query", headers: []string{"Origin: http://x"}},
		{method: "OPTIONS", path: "/api/v1/nothing"}, {path: "/api/v1/labels", headers: []string{"Accept: text/plain"}}, {method: "POST", path: "/api/v1/query", headers: []string{"Content-Type: application/json"}, params: []string{"query=1"}},
		{method: "POST", path: "/api/v1/query?query=1&" + at, headers: []string{"Content-Type: text/plain"}},
	}
	return append(all, differences(start, end)...)
}

// differences are the requests to which Shale responds in another way.
func differences(start, end string) []exchangeCase {
	differ := func(why string, c exchangeCase) exchangeCase {
		c.differs = why
		return c
	}
	return []exchangeCase{
		differ("the application is named", get("/api/v1/status/buildinfo")),
		differ("another process", get("/api/v1/status/runtimeinfo")),
		differ("Shale has no head", get("/api/v1/status/tsdb")),
		differ("an error in JSON", get("/api/v1/nothing")),
		differ("HEAD is answered", exchangeCase{method: "HEAD", path: "/api/v1/query", params: []string{"query=1"}}),
		differ("an error in JSON", exchangeCase{method: "PUT", path: "/api/v1/query"}),
		differ("POST is answered", exchangeCase{method: "POST", path: "/api/v1/label/job/values"}),
		differ("times saturate at int64 nanoseconds", get("/api/v1/query", "query=vector(1)", "time=1e12")),
		differ("steps below 1 ms are refused", get("/api/v1/query_range", "query=1", "start="+end, "end="+end, "step=0.0001")),
		differ("NaN is no time", get("/api/v1/query", "query=1", "time=NaN")),
		differ("NaN is no duration", get("/api/v1/query", "query=1", "time="+end, "timeout=NaN")),
	}
}
