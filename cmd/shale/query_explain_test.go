package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestQueryExplain: a bill is asked for as the query would be, and printed as a table or as it came.
func TestQueryExplain(t *testing.T) {
	const body = `{"status":"success","data":{"resultType":"streams","result":[]},"bill":{"blocks":2,"pages":10,"pagesCached":4,"index":{"requests":3,"bytes":30,"seconds":0.02,"dollars":0.0000012},` +
		`"least":{"requests":1,"bytes":5},"likely":{"requests":2,"bytes":6},"most":{"requests":6,"bytes":60,"seconds":1.5,"dollars":0.25},"endsEarly":true,"assumed":{"requestSeconds":0.02,"parallel":16,"queries":1}}}`
	const table = `                         REQUESTS  BYTES  SECONDS  DOLLARS
index, read now                 3     30     0.02  1.2e-06
the query, at least             1      5        0        0
all its pages, together         2      6        0        0
the query, at most              6     60      1.5     0.25

blocks: 2; pages: at most 10, 40 % of them cached
`
	asked, response := "", body
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = fmt.Sprintf("%s explain=%s limit=%s step=%s", r.URL.Path, r.FormValue("explain"), r.FormValue("limit"), r.FormValue("step"))
		fmt.Fprint(w, response)
	}))
	defer s.Close()
	for _, c := range []struct {
		args       []string
		asked, out string
	}{
		{[]string{"--logs", `{app="a"}`, "--limit", "7"}, "/loki/api/v1/query_range explain=true limit=7 step=", table},
		{[]string{"--logs", `rate({app="a"}[1m])`, "--since", "1h"}, "/loki/api/v1/query_range explain=true limit= step=60", table},
		{[]string{"up"}, "/api/v1/query explain=true limit= step=", table},
		{[]string{"up", "-o", "json"}, "/api/v1/query explain=true limit= step=", body + "\n"},
	} {
		code, out, errs := shale(t, nil, append([]string{"query", "--explain", "--url", s.URL}, c.args...)...)
		if code != exitOK || out != c.out || asked != c.asked {
			t.Errorf("%q: exit %d, asked %s\n%s\nstderr: %s", c.args, code, asked, out, errs)
		}
		if c.out == table && (!strings.Contains(errs, "ends as soon as it has enough lines") || !strings.Contains(errs, "assumed: no query has read")) {
			t.Errorf("%q: notes: %s", c.args, errs)
		}
	}
	for _, args := range [][]string{{"up", "-o", "csv"}, {"up", "--stats"}, {"up", "--limit", "3"}, {"--logs", `{app="a"}`, "--step", "1m"}} {
		if code, _, errs := shale(t, nil, append([]string{"query", "--explain", "--url", s.URL}, args...)...); code != exitUsage {
			t.Errorf("%q: exit %d, %s", args, code, errs)
		}
	}
	response = `{"status":"success","data":{"resultType":"vector","result":[]}}`
	if code, _, errs := shale(t, nil, "query", "--explain", "--url", s.URL, "up"); code != exitFailed || !strings.Contains(errs, "does not support explain=true") {
		t.Errorf("a server without bills: exit %d, %s", code, errs)
	}
}
