//go:build e2e

package e2e

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/shaledb/shale/internal/auth/issuertest"
)

// A panelRequest is a request of one of Grafana's data sources.
type panelRequest struct {
	why, method, path string
	form              string   // encoded as Grafana encodes it: the URL's of a GET, the body of a POST
	headers           []string // name, value, name, value
	want              string   // a part of the response
}

// grafanaRequests are what Grafana's data sources for Graphite, Loki and Prometheus send, of their backends
// and of their front ends, for dashboards, variables, annotations, alerts, Explore and Save & test. A more
// thorough list of Prometheus' is in internal/api/prom, with the shapes of the responses.
func grafanaRequests(now time.Time) []panelRequest {
	from, until := now.Add(-time.Hour).Unix(), now.Add(time.Minute).Unix()
	seconds := fmt.Sprintf("from=%d&until=%d", from, until)
	nanos := fmt.Sprintf("start=%d&end=%d", from*1e9, until*1e9)
	render := func(target string, more ...string) string {
		return fmt.Sprintf("target=%s&from=%d&until=%d&format=json&maxDataPoints=800", url.QueryEscape(target), from, until) + strings.Join(more, "")
	}
	source := func(name string) []string { return []string{"X-Query-Tags", "Source=" + name} }
	drilldown := append(source("grafana-lokiexplore-app"), "X-Loki-Response-Encoding-Flags", "categorize-labels")
	esc := url.QueryEscape
	const volume = `sum by (level, detected_level) (count_over_time({app="shop"} | drop __error__[1m]))`
	rfc3339 := "start=" + esc(now.Add(-time.Hour).UTC().Format(time.RFC3339Nano)) + "&end=" + esc(now.Add(time.Minute).UTC().Format(time.RFC3339Nano))
	return []panelRequest{
		{"Graphite, Save & test", "POST", "/graphite/render", "target=constantLine(100)&from=-1h&until=now&format=json&maxDataPoints=100", nil, `"target": "100`},
		{"Graphite, panel", "POST", "/graphite/render", render(`aliasSub(servers.*.cpu, "(^.*$)", "\1 A")`), []string{"X-Dashboard-Id", "3", "X-Panel-Id", "2"}, `servers.web-1.cpu A`},
		{"Graphite, panel with a nested query", "POST", "/graphite/render", render(`aliasSub(aliasByNode(sumSeries(servers.*.cpu), 1), "(^.*$)", "\1 B")`), nil, ` B"`},
		{"Graphite, panel of tags", "POST", "/graphite/render", render(`aliasSub(seriesByTag('name=disk.used', 'rack=a1'), "(^.*$)", "\1 A")`), nil, "rack=a1"},
		{"Graphite, panel, rollup notice", "POST", "/graphite/render?meta=true", render(`servers.web-1.cpu`), nil, "servers.web-1.cpu"},
		{"Graphite, alert", "POST", "/graphite/render", render(`servers.web-1.cpu`), []string{"FromAlert", "true"}, "51"},
		{"Graphite, old alert", "POST", "/graphite/render", strings.Replace(render("servers.web-1.cpu"), "800", "500", 1), nil, "51"},
		{"Graphite, cacheTimeout", "POST", "/graphite/render", render("servers.web-1.cpu", "&cacheTimeout=60"), nil, "51"},
		{"Graphite, relative range", "POST", "/graphite/render", "target=servers.web-1.cpu&from=-6h&until=now&format=json&maxDataPoints=1000", nil, "51"},
		{"Graphite, annotation of a metric", "POST", "/graphite/render", "target=servers.web-1.cpu&from=-1h&until=now&format=json&maxDataPoints=100", nil, "51"},
		{"Graphite, annotation of events", "GET", "/graphite/events/get_data", seconds + "&tags=deploy", nil, "version 7"},
		{"Graphite, editor, raw body", "POST", "/graphite/metrics/find?" + seconds, "query=servers.{web-1,web-2}.*", nil, `"text": "cpu"`},
		{"Graphite, editor, of the backend", "POST", "/graphite/metrics/find", "query=servers.%2A", nil, `"text": "web-1"`},
		{"Graphite, editor, before Grafana 7", "GET", "/graphite/metrics/find", "query=*&" + seconds, nil, `"text": "servers"`},
		{"Graphite, variable", "GET", "/graphite/metrics/expand", "query=servers.*.cpu&" + seconds, nil, "servers.web-2.cpu"},
		{"Graphite, variable tags()", "GET", "/graphite/tags/autoComplete/tags", "expr=name%3Ddisk.used&limit=10000&" + seconds, nil, `"rack"`},
		{"Graphite, tags of the editor", "GET", "/graphite/tags/autoComplete/tags", "tagPrefix=ra&" + seconds, nil, `"rack"`},
		{"Graphite, variable tag_values()", "GET", "/graphite/tags/autoComplete/values", "expr=name%3Ddisk.used&tag=rack&limit=10000&" + seconds, nil, `"a1"`},
		{"Graphite, values of the editor", "GET", "/graphite/tags/autoComplete/values", "expr=name%3Ddisk.used&tag=rack&valuePrefix=a", nil, `"a1"`},
		{"Graphite, all tags", "GET", "/graphite/tags", seconds, nil, `"rack"`},
		{"Graphite, a tag", "GET", "/graphite/tags/rack", seconds, nil, `"a1"`},
		{"Graphite, functions", "GET", "/graphite/functions", "", nil, `"aliasSub"`},
		{"Graphite, version", "GET", "/graphite/version", "", nil, "1.1"},

		{"Loki, Save & test", "GET", "/loki/api/v1/query", "direction=backward&query=" + esc("vector(1)+vector(1)") + fmt.Sprintf("&time=%d", now.UnixNano()), nil, `"2"`},
		{"Loki, lines of a panel", "GET", "/loki/api/v1/query_range", "direction=backward&limit=1000&step=15000ms&query=" + esc(`{app="shop"} |= "order"`) + "&" + nanos, drilldown[2:], "order 7"},
		{"Loki, graph", "GET", "/loki/api/v1/query_range", "direction=backward&step=60000ms&query=" + esc(`sum(rate({app="shop"}[1m]))`) + "&" + nanos, nil, "matrix"},
		{"Loki, instant", "GET", "/loki/api/v1/query", "direction=backward&query=" + esc(`sum(count_over_time({app="shop"}[1h]))`) + fmt.Sprintf("&time=%d", until*1e9), nil, "vector"},
		{"Loki, histogram of Explore", "GET", "/loki/api/v1/query_range", "direction=backward&step=60000ms&query=" + esc(volume) + "&" + nanos, source("logvolhist"), "detected_level"},
		{"Loki, sample of lines", "GET", "/loki/api/v1/query_range", "direction=backward&limit=100&step=1000ms&query=" + esc(`{app="shop"}`) + "&" + nanos, source("logsample"), "order 7"},
		{"Loki, sample of data", "GET", "/loki/api/v1/query_range", "direction=backward&limit=10&step=1000ms&query=" + esc(`{app="shop"}`) + "&" + nanos, source("datasample"), "order 7"},
		{"Loki, labels", "GET", "/loki/api/v1/labels", nanos, nil, `"app"`},
		{"Loki, labels of the builder", "GET", "/loki/api/v1/labels", nanos + "&query=" + esc(`{app="shop"}`), nil, `"app"`},
		{"Loki, values", "GET", "/loki/api/v1/label/app/values", nanos, nil, `"shop"`},
		{"Loki, values of the builder", "GET", "/loki/api/v1/label/app/values", nanos + "&query=" + esc(`{app=~".+"}`), nil, `"shop"`},
		{"Loki, series", "GET", "/loki/api/v1/series", nanos + "&match%5B%5D=" + esc(`{app="shop"}`), nil, `"shop"`},
		{"Loki, estimate of a query", "GET", "/loki/api/v1/index/stats", nanos + "&query=" + esc(`{app="shop"}`), nil, `"streams":1`},
		{"Loki, fields", "GET", "/loki/api/v1/detected_fields", nanos + "&limit=1000&query=" + esc(`{app="shop"}`), nil, `"ms"`},
		{"Loki, values of a field", "GET", "/loki/api/v1/detected_field/ms/values", nanos + "&limit=1000&query=" + esc(`{app="shop"}`), nil, `"12"`},
		{"Drilldown, limits", "GET", "/loki/api/v1/drilldown-limits", "", drilldown, "volume_enabled"},
		{"Drilldown, services", "GET", "/loki/api/v1/index/volume", rfc3339 + "&limit=5000&query=" + esc("{service_name=~`.+`}"), drilldown, "service_name"},
		{"Drilldown, labels", "GET", "/loki/api/v1/detected_labels", rfc3339 + "&query=" + esc(`{app="shop"}`), drilldown, `"app"`},
		{"Drilldown, patterns", "GET", "/loki/api/v1/patterns", rfc3339 + "&step=60s&query=" + esc(`{app="shop"}`), drilldown, `"data"`},
		{"Drilldown, tab of lines", "GET", "/loki/api/v1/query_range", "direction=backward&limit=1000&step=15000ms&query=" + esc(`{app="shop"} | json | logfmt | drop __error__, __error_details__`) + "&" + nanos, drilldown, "order 7"},

		{"Prometheus, Save & test", "POST", "/api/v1/query", "query=1%2B1&time=4", nil, `"2"`},
		{"Prometheus, the kind of server", "GET", "/api/v1/status/buildinfo", "", nil, `"version"`},
		{"Prometheus, panel", "POST", "/api/v1/query_range", "query=" + esc(`avg by (rack) ({"disk.used"})`) + fmt.Sprintf("&start=%d&end=%d&step=15", from, until), nil, `"a1"`},
		{"Prometheus, instant", "GET", "/api/v1/query", "query=" + esc(`{"disk.used"}`) + fmt.Sprintf("&time=%d", now.Unix()), nil, `"a1"`},
		{"Prometheus, variable", "GET", "/api/v1/label/rack/values", fmt.Sprintf("start=%d&end=%d", from, until) + "&match%5B%5D=" + esc(`{"disk.used"}`), nil, `"a1"`},
		{"Prometheus, labels", "POST", "/api/v1/labels", fmt.Sprintf("start=%d&end=%d", from, until), nil, `"rack"`},
		{"Prometheus, metadata", "GET", "/api/v1/metadata", "limit=40000", nil, "success"},
		{"Prometheus, rules of alerting", "GET", "/api/v1/rules", "", nil, `"groups"`},
		{"Prometheus, exemplars", "POST", "/api/v1/query_exemplars", "query=test&start=1&end=2", nil, "success"},
	}
}

// TestGrafana sends what Grafana's data sources send with each way to log in that they have: a password, a
// header with a token, the JWT of the user and a client certificate. All are answered. With the wrong
// password, with no credentials and with a token that may only write, each is refused.
func TestGrafana(t *testing.T) {
	t.Parallel()
	if *serverKind != "shale" {
		t.Skip("it is about tokens")
	}
	issuer := issuertest.New(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	issuer.Publish("one", key.Public())
	jwt := issuertest.Sign(t, jose.RS256, key, "one", map[string]any{
		"iss": issuer.URL, "aud": "shale", "sub": "mary", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(), "tenants": []string{"team-a"}, "scope": "openid read",
	})
	d := openDoor(t, fmt.Sprintf("oidc: {issuer: %q, audience: shale, tenants_claim: tenants, rights_claim: scope}\n", issuer.URL))
	withCert := &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: d.servers.Pool(), Certificates: []tls.Certificate{d.clients.Client(t, "grafana.example").TLS(t)}}}}

	send := func(client *http.Client, r panelRequest, login func(*http.Request)) (int, string) {
		t.Helper()
		target, body := "https://"+d.httpAddr+r.path, io.Reader(http.NoBody)
		if r.method == http.MethodPost {
			body = strings.NewReader(r.form)
		} else if r.form != "" {
			target += "?" + r.form
		}
		req, err := http.NewRequest(r.method, target, body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("User-Agent", "Grafana/12.0.0")
		if r.method == http.MethodPost {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		for i := 0; i+1 < len(r.headers); i += 2 {
			req.Header.Set(r.headers[i], r.headers[i+1])
		}
		login(req)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", r.why, err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatalf("%s: %v", r.why, err)
		}
		return resp.StatusCode, string(text)
	}
	now := time.Now()
	writer := func(r *http.Request) { r.SetBasicAuth("any", "shale_writer") }
	for path, body := range map[string]string{
		"/api/v1/write/graphite": fmt.Sprintf("servers.web-1.cpu 51 %[1]d\nservers.web-2.cpu 49 %[1]d\ndisk.used;rack=a1 9 %[1]d\n", now.Unix()),
		"/loki/api/v1/push":      fmt.Sprintf(`{"streams":[{"stream":{"app":"shop"},"values":[["%d","level=info msg=\"order 7\" ms=12"]]}]}`, now.UnixNano()),
		"/events":                `{"what": "version 7", "tags": ["deploy"]}`,
	} {
		r := panelRequest{why: path, method: http.MethodPost, path: path, form: body}
		if status, text := send(d.client, r, func(r *http.Request) {
			writer(r)
			r.Header.Set("Content-Type", "application/json")
		}); status/100 != 2 {
			t.Fatalf("%s: %d %s", path, status, text)
		}
	}

	tenant := func(r *http.Request) { r.Header.Set("X-Scope-OrgID", "team-a") }
	logins := []struct {
		name   string
		client *http.Client
		login  func(*http.Request)
	}{
		{"basic auth and a header for the tenant", d.client, func(r *http.Request) { tenant(r); r.SetBasicAuth("any", "shale_reader") }},
		{"a header with a token", d.client, func(r *http.Request) { tenant(r); r.Header.Set("Authorization", "Bearer shale_reader") }},
		{"the user's JWT", d.client, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+jwt) }},
		{"a client certificate", withCert, func(*http.Request) {}},
	}
	requests := grafanaRequests(now)
	for _, l := range logins {
		for _, r := range requests {
			status, text := send(l.client, r, l.login)
			if status != http.StatusOK || !strings.Contains(strings.ReplaceAll(text, `": `, `":`), strings.ReplaceAll(r.want, `": `, `":`)) {
				t.Errorf("%s with %s: %d, want 200 and %s: %.500s", r.why, l.name, status, r.want, text)
			}
		}
	}
	refused := []struct {
		name   string
		status int
		login  func(*http.Request)
	}{
		{"the wrong password", 401, func(r *http.Request) { r.SetBasicAuth("shale_reader", "any") }},
		{"no credentials", 401, func(*http.Request) {}},
		{"a token that may only write", 403, writer},
		{"another tenant's header", 403, func(r *http.Request) {
			r.Header.Set("X-Scope-OrgID", "team-b")
			r.Header.Set("Authorization", "Bearer "+jwt)
		}},
	}
	for _, l := range refused {
		for _, r := range requests {
			if status, text := send(d.client, r, l.login); status != l.status || bytes.Contains([]byte(text), []byte("order 7")) {
				t.Errorf("%s with %s: %d, want %d: %.300s", r.why, l.name, status, l.status, text)
			}
		}
	}
	t.Logf("%d requests with %d logins", len(requests), len(logins)+len(refused))
}
