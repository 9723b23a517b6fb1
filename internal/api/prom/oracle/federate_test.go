package oracle

import (
	"testing"
	"time"
)

func TestFederation(t *testing.T) {
	p := newPair(t, load(t, time.Now()))
	for _, accept := range []string{
		"", "text/plain", "text/plain;version=0.0.4;escaping=allow-utf-8", "text/plain;version=0.0.4;escaping=underscores", "text/plain;escaping=values", "application/openmetrics-text;version=1.0.0",
		"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=text",
		"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=compact-text;escaping=allow-utf-8", "*/*", "application/json", "nonsense;;q=x",
	} {
		for _, params := range [][]string{
			{`match[]={__name__!~"odd|native|custom|http.*"}`}, {"match[]=http_requests_total", "match[]=native", `match[]={job="j0",__name__!="odd"}`}, {"match[]=odd"}, {"match[]=gone", "match[]=gone_native"}, {"match[]=old"}, {`match[]={nameless="yes"}`},
			{"match[]=custom"}, {"match[]=mixed"}, {`match[]={"dotted.näme"}`}, {"match[]=special"}, {"match[]=nothing"}, {"match[]={}"}, {}, {"match[]=up{"}, {"match[]=sum(up)"}, {`match[]={a=~"("}`},
		} {
			c := exchangeCase{path: "/federate", params: params, headers: []string{"Accept: " + accept}}
			theirs := send(t, p.prometheus, "GET", c.path, c.params, c.headers)
			ours := send(t, p.shale, "GET", c.path, c.params, c.headers)
			if theirs.header.Get("Content-Type") != ours.header.Get("Content-Type") {
				t.Errorf("%q %q: type %q, want %q", accept, params, ours.header.Get("Content-Type"), theirs.header.Get("Content-Type"))
			}
			p.compare(t, c)
		}
	}
	p.compare(t, exchangeCase{
		path: "/federate", params: []string{`match[]={__name__=~"custom|odd"}`},
		headers: []string{"Accept: application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=text"},
		differs: "upstream shows the last float histogram in place of the others: it keeps what its iterator will use again",
	})
}
