package graphite

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/graphite"
	"github.com/shaledb/shale/internal/read/graphite/series"
	"github.com/shaledb/shale/internal/read/readtest"
)

// tagged returns an API over series with tags.
func tagged(t testing.TB, paths []string) http.Handler {
	memory := readtest.NewMemory(1)
	for _, p := range paths {
		tags, err := series.ParseTags(p)
		if err != nil {
			t.Fatal(err)
		}
		var pairs []string
		for tag, value := range tags {
			if tag == "name" {
				tag = "__name__"
			}
			pairs = append(pairs, tag, value)
		}
		l := model.LabelsOf(pairs...)
		memory.Add("anonymous", l.Key(1, model.Metrics), l, &model.Rows{Times: []int64{1e9}, Values: []uint64{0}})
	}
	mux := http.NewServeMux()
	New(Options{Tags: graphite.New(graphite.Options{Read: read.New(read.Options{Sources: []read.Source{memory}})})}).Routes(mux)
	t.Cleanup(func() {
		if n := memory.Open(); n != 0 {
			t.Errorf("%d cursors were not closed", n)
		}
	})
	return mux
}

// TestTagsRecorded repeats requests to graphite-web 1.1.10 with its own tag database, which
// test/graphite-oracle/python/tags_oracle.py has recorded. Responses have no ids of rows of a database.
func TestTagsRecorded(t *testing.T) {
	text, err := os.ReadFile("testdata/tags.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct {
		Series   []string
		Requests []struct {
			Path   string
			Params [][2]string
			Status int
			Body   any
		}
	}
	if err := json.Unmarshal(text, &recorded); err != nil {
		t.Fatal(err)
	}
	// A series without tags has no place in the tag database.
	h := tagged(t, append(recorded.Series, "lone.name"))
	for _, q := range recorded.Requests {
		form := make(url.Values)
		for _, p := range q.Params {
			form.Add(p[0], p[1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, (&url.URL{Path: q.Path, RawQuery: form.Encode()}).String(), nil))
		var body any
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
			t.Fatalf("%s %v: %s", q.Path, q.Params, w.Body)
		}
		if w.Code != q.Status || q.Status == 200 && !reflect.DeepEqual(body, q.Body) {
			t.Errorf("%s %v: %d %s, want %d %v", q.Path, q.Params, w.Code, w.Body, q.Status, q.Body)
		}
	}
}

// TestTagSeries: paths come back with their tags in order.
func TestTagSeries(t *testing.T) {
	h := tagged(t, nil)
	for _, c := range []struct {
		path, form string
		status     int
		body       string
	}{
		{"tagSeries", "path=a.b%3Bz%3D1%3Bc%3D2", 200, `"a.b;c=2;z=1"`},
		{"tagMultiSeries", "path=a%3Bz%3D1&path=b%7Bq%3D%22r%22%7D", 200, `["a;z=1","b;q=r"]`},
		{"tagSeries", "", 400, `{"error":"no path specified"}`},
		{"tagMultiSeries", "", 400, `{"error":"no paths specified"}`},
		{"tagSeries", "path=a%3Bz", 400, `{"error":"the path \"a;z\" has an empty tag or value"}`},
		{"delSeries", "path=a%3Bz%3D1", 501, `{"error":"tags are a part of their series here: delete the points with POST /api/v1/admin/tsdb/delete_series"}`},
	} {
		r := httptest.NewRequest(http.MethodPost, "/tags/"+c.path, strings.NewReader(c.form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.status || w.Body.String() != c.body {
			t.Errorf("%s %s: %d %s, want %d %s", c.path, c.form, w.Code, w.Body, c.status, c.body)
		}
	}
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/tags/tagSeries?path=a", nil)); w.Code != 405 {
		t.Errorf("GET: %d", w.Code)
	}
}
