package graphite

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// The clock of the backtracking engine ends by itself.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2.runClock"))
}

// get asks an API with options. Parameters are name=value, not escaped.
func get(o Options, path string, params ...string) *httptest.ResponseRecorder {
	mux := http.NewServeMux()
	New(o).Routes(mux)
	query := make(url.Values)
	for _, p := range params {
		name, value, _ := strings.Cut(p, "=")
		query.Add(name, value)
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path+"?"+query.Encode(), nil))
	return w
}

func TestVersion(t *testing.T) {
	for _, path := range []string{"/graphite/version", "/graphite/version/"} {
		if w := get(Options{}, path); w.Code != 200 || w.Body.String() != "1.1.10\n" {
			t.Errorf("%s: %d %q", path, w.Code, w.Body)
		}
	}
	if w := get(Options{}, "/version"); w.Code != 404 {
		t.Errorf("/version is Prometheus's: %d", w.Code)
	}
}

// TestFunctions: the response has the members of graphite-web 1.1.10.
func TestFunctions(t *testing.T) {
	o := Options{Functions: []Function{
		{Name: "sum", Signature: "sum(*seriesLists)", Description: "Adds.", Module: "m", Group: "Combine",
			Params: []Param{{Name: "seriesLists", Type: "seriesList", Required: true, Multiple: true}}},
		{Name: "keepLastValue", Signature: "keepLastValue(seriesList, limit=inf)", Group: "Transform",
			Params: []Param{{Name: "limit", Type: "intOrInf", Default: json.RawMessage("1e9999"), Options: []any{1, "a"}}}},
		{Name: "average", Group: "Pie", Pie: true, Params: []Param{}},
	}}
	const sum = `{"name":"sum","function":"sum(*seriesLists)","description":"Adds.","module":"m","group":"Combine",` +
		`"params":[{"name":"seriesLists","type":"seriesList","required":true,"multiple":true}]}`
	const keep = `{"name":"keepLastValue","function":"keepLastValue(seriesList, limit=inf)","description":"","module":"","group":"Transform",` +
		`"params":[{"name":"limit","type":"intOrInf","default":1e9999,"options":[1,"a"]}]}`
	const pie = `{"name":"average","function":"","description":"","module":"","group":"Pie","params":[]}`
	for _, c := range []struct {
		path, params string
		status       int
		body         string
	}{
		{"/functions", "", 200, `{"keepLastValue":` + keep + `,"sum":` + sum + `}`},
		{"/graphite/functions/", "group=Combine", 200, `{"sum":` + sum + `}`},
		{"/functions", "group=", 200, `{}`},
		{"/functions", "grouped=True", 200, `{"Combine":{"sum":` + sum + `},"Transform":{"keepLastValue":` + keep + `}}`},
		{"/functions", "type=pie", 200, `{"average":` + pie + `}`},
		{"/functions/sum", "", 200, sum},
		{"/functions/average", "type=pie", 200, pie},
		{"/functions/average", "", 404, `{"error":"Function not found: average"}`},
	} {
		if w := get(o, c.path, strings.Fields(c.params)...); w.Code != c.status || w.Body.String() != c.body {
			t.Errorf("%s %s: %d %s\nwant %d %s", c.path, c.params, w.Code, w.Body, c.status, c.body)
		}
	}
}
