//go:build e2e

package e2e

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// explosions are queries over lines that would take far more memory than one query may have. Each makes more
// of one thing: series, windows, sets of labels, instructions of regular expressions, or text.
var explosions = []struct {
	name, query string
	step        string // of a range query; empty: an instant query
	want        string // in the text of the error
}{
	{"series", `count_over_time({cluster=~".+"} | regexp "(?P<all>.+)" [30m])`, "60", "query.max-"},
	{"series of groups", `sum by (all) (count_over_time({cluster=~".+"} | regexp "(?P<all>.+)" [1m]))`, "5", "query.max-"},
	{"labels of all fields", `count_over_time({cluster=~".+"} | json | logfmt | __error__="" [30m])`, "60", "query.max-"},
	{"windows", `max_over_time({cluster=~".+"} | regexp "(?P<all>.+)" | label_format n="{{ len __line__ }}" | unwrap n [30m])`, "1", "query.max-"},
	{"points", `count_over_time({cluster=~".+"}[1m])`, "0.01", "exceeded maximum resolution of 11,000 points"},
	{"regexps", `count_over_time({cluster=~".+"} |~ "` + strings.Repeat("[a-z]{900}", 400) + `" [1m])`, "60", "regular expressions of the query are too large"},
	{"text", `count_over_time({cluster=~".+"} | line_format "` + strings.Repeat("{{ __line__ }}", 200) + `" | regexp "(?P<all>.+)" [30m])`, "60", "limit"},
	{"instant", `topk(5, count_over_time({cluster=~".+"} | regexp "(?P<all>.+)" [30m]))`, "", "query.max-"},
	{"operands", `count_over_time({cluster=~".+"} | regexp "(?P<all>.+)" [30m]) * on () group_left () sum(count_over_time({cluster=~".+"}[30m]))`, "60", "query.max-"},
}

// TestExplosions sends queries that would explode while 20 clients send usual ones. Each of the first ends
// with an error that names its limit, every one of the others gets its whole result, and the process stays
// inside its bound.
func TestExplosions(t *testing.T) {
	if *serverKind != "shale" {
		t.Skip("limits of Shale")
	}
	s := newServer(t, t.TempDir())
	s.args = append(s.args, "--memory", strconv.Itoa(memoryBudget))
	s.start()
	m := &memoryTest{t: t, s: s, codes: make(map[string]int), peaks: make(map[string]float64)}
	m.load(t.Context(), "logs", "--url", s.url()+"/loki/api/v1/push", "--mb", "60", "--span", "30m")
	end := time.Now()
	begin := end.Add(-31 * time.Minute)

	usual := []string{
		`sum by (level) (count_over_time({cluster=~".+"}[1m]))`,
		`sum(rate({cluster=~".+"} |= "error" [5m]))`,
		`sum by (level) (bytes_over_time({cluster=~".+"}[5m]))`,
		`sum by (app) (count_over_time({cluster=~".+"} | json | __error__="" [5m]))`,
	}
	want := make([]string, len(usual))
	for i, q := range usual {
		code, text := logsQuery(t.Context(), s, q, begin, end, "60")
		if code != http.StatusOK || !strings.Contains(text, `"values"`) {
			t.Fatalf("%s: %d %.300s", q, code, text)
		}
		want[i] = result(text)
	}

	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	var answered atomic.Int64
	for i := range 20 {
		clients.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				q := n % len(usual)
				code, text := logsQuery(ctx, s, usual[q], begin, end, "60")
				switch {
				case ctx.Err() != nil:
				case code != http.StatusOK:
					t.Errorf("%s: %d %.300s", usual[q], code, text)
				case result(text) != want[q]:
					t.Errorf("%s: the result differs from the one before", usual[q])
				default:
					answered.Add(1)
				}
			}
		})
	}
	for _, x := range explosions {
		before := answered.Load()
		began := time.Now()
		code, text := logsQuery(t.Context(), s, x.query, begin, end, x.step)
		t.Logf("%s: %d after %v, others %d: %.200s", x.name, code, time.Since(began).Round(time.Millisecond), answered.Load()-before, text)
		if code < 400 || code >= 500 || !strings.Contains(text, x.want) {
			t.Errorf("%s: expected a refusal with %q, got %d %.300s", x.name, x.want, code, text)
		}
	}
	cancel()
	clients.Wait()
	if s.ended() {
		t.Fatalf("the server ended: %v", s.err)
	}
	if answered.Load() == 0 {
		t.Error("no usual query had a result")
	}
	if peak := highWater(t, s.cmd.Process.Pid); peak > memoryBound {
		t.Errorf("the server took %d MiB, more than %d", peak>>20, memoryBound>>20)
	}
}

// logsQuery sends a query over lines, for a range unless step is empty.
func logsQuery(ctx context.Context, s *server, query string, begin, end time.Time, step string) (code int, text string) {
	form := url.Values{"query": {query}}
	path := "/loki/api/v1/query"
	if step == "" {
		form.Set("time", strconv.FormatInt(end.UnixNano(), 10))
	} else {
		path = "/loki/api/v1/query_range"
		form.Set("start", strconv.FormatInt(begin.UnixNano(), 10))
		form.Set("end", strconv.FormatInt(end.UnixNano(), 10))
		form.Set("step", step)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url()+path+"?"+form.Encode(), nil)
	if err != nil {
		return 0, err.Error()
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(body)
}

// result returns the part of a response that statistics do not change.
func result(text string) string {
	text, _, _ = strings.Cut(text, `"stats"`)
	return text
}
