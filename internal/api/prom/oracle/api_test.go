package oracle

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// exchangeCase is one request, sent to both.
type exchangeCase struct {
	method, path string // method GET if empty
	params       []string
	headers      []string
	// differs is the reason why the responses differ. If it is set, they must differ.
	differs string
}

func get(path string, params ...string) exchangeCase { return exchangeCase{path: path, params: params} }

// timings are the parts of statistics that differ from run to run.
var timings = regexp.MustCompile(`("[a-zA-Z]*Time":)[0-9.e-]+`)

// normal returns the part of a response that must be equal: decoded JSON, without members that only Shale
// has, warnings in order.
func normal(t *testing.T, r reply) any {
	t.Helper()
	kind, _, _ := mime.ParseMediaType(r.header.Get("Content-Type"))
	if kind != "application/json" || r.body == "" {
		return r.body
	}
	var v map[string]any
	d := json.NewDecoder(strings.NewReader(timings.ReplaceAllString(r.body, "${1}0")))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v: %.300q", err, r.body)
	}
	for _, list := range []string{"warnings", "infos"} {
		if l, ok := v[list].([]any); ok {
			sort.Slice(l, func(i, j int) bool { return fmt.Sprint(l[i]) < fmt.Sprint(l[j]) })
		}
	}
	if data, ok := v["data"].(map[string]any); ok {
		if stats, ok := data["stats"].(map[string]any); ok {
			delete(stats, "shale")
		}
	}
	return v
}

// headers are those that must be equal.
var headers = []string{"Access-Control-Allow-Origin", "Access-Control-Allow-Methods", "Access-Control-Allow-Headers", "Access-Control-Expose-Headers"}

func (p *pair) compare(t *testing.T, c exchangeCase) {
	t.Helper()
	if c.method == "" {
		c.method = http.MethodGet
	}
	theirs := send(t, p.prometheus, c.method, c.path, c.params, c.headers)
	ours := send(t, p.shale, c.method, c.path, c.params, c.headers)
	var d []string
	if theirs.status != ours.status {
		d = append(d, fmt.Sprintf("status %d, want %d", ours.status, theirs.status))
	}
	theirKind, _, _ := mime.ParseMediaType(theirs.header.Get("Content-Type"))
	ourKind, _, _ := mime.ParseMediaType(ours.header.Get("Content-Type"))
	if theirKind != ourKind {
		d = append(d, fmt.Sprintf("type %q, want %q", ourKind, theirKind))
	}
	for _, h := range headers {
		if theirs.header.Get(h) != ours.header.Get(h) {
			d = append(d, fmt.Sprintf("%s %q, want %q", h, ours.header.Get(h), theirs.header.Get(h)))
		}
	}
	if text := cmp.Diff(normal(t, theirs), normal(t, ours)); text != "" {
		d = append(d, text)
	}
	name := c.method + " " + c.path + " " + strings.Join(c.params, " & ")
	switch {
	case len(d) > 0 && c.differs == "":
		t.Errorf("%s:\n%s\nours: %.600s\ntheirs: %.600s", name, strings.Join(d, "\n"), ours.body, theirs.body)
	case len(d) == 0 && c.differs != "":
		t.Errorf("%s: does not differ any more: %s", name, c.differs)
	}
	if c.differs == "" && ours.status == 200 && strings.HasPrefix(c.path, "/api/v1/query") && !strings.Contains(strings.Join(c.params, " "), "stats=") {
		p.compareBytes(t, name, theirs.body, ours.body)
	}
}

// compareBytes demands that the results of queries be equal to the byte.
func (p *pair) compareBytes(t *testing.T, name, theirs, ours string) {
	t.Helper()
	result := func(s string) string {
		i, j := strings.Index(s, `"data":`), strings.LastIndex(s, `,"warnings":`)
		if k := strings.LastIndex(s, `,"infos":`); j < 0 {
			j = k
		}
		if j < 0 {
			j = len(s)
		}
		return s[max(i, 0):j]
	}
	// Only upstream's encoder is afraid of HTML, and only in results that are strings.
	theirs = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(theirs)
	if a, b := result(theirs), result(ours); a != b {
		i := 0
		for i < min(len(a), len(b)) && a[i] == b[i] {
			i++
		}
		t.Errorf("%s: bytes differ at %d:\nours   %.200s\ntheirs %.200s", name, i, b[max(0, i-50):], a[max(0, i-50):])
	}
}

func TestAPI(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	p := newPair(t, load(t, now))
	for _, c := range requests(now) {
		p.compare(t, c)
	}
}

func TestQueries(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	p := newPair(t, load(t, now))
	unix := func(d time.Duration) string { return fmt.Sprint(now.Add(d).Unix()) }
	for _, q := range expressions {
		p.compare(t, get("/api/v1/query", "query="+q, "time="+unix(0)))
		p.compare(t, exchangeCase{method: "POST", path: "/api/v1/query", params: []string{"query=" + q, "time=" + unix(-time.Minute) + ".123", "limit=2", "stats=all"}})
		p.compare(t, get("/api/v1/query_range", "query="+q, "start="+unix(-10*time.Minute), "end="+unix(0), "step=60"))
		p.compare(t, exchangeCase{method: "POST", path: "/api/v1/query_range", params: []string{
			"query=" + q, "start=" + unix(-5*time.Minute) + ".5", "end=" + unix(0), "step=1m", "limit=1", "lookback_delta=1m", "stats=true"}})
		p.compare(t, get("/api/v1/format_query", "query="+q))
		p.compare(t, get("/api/v1/parse_query", "query="+q))
		p.compare(t, get("/api/v1/query_exemplars", "query="+q))
	}
}
