package fronts

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// loki answers every request with one of its lines or names, some of them changed.
func loki(t *testing.T, text string, failing int64) string {
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := asked.Add(1); n <= failing {
			http.Error(w, "too many requests", http.StatusTooManyRequests)
			return
		}
		switch {
		case strings.Contains(r.URL.Path, "/label"):
			fmt.Fprintf(w, `{"data":[%q]}`, text)
		case r.FormValue("step") != "":
			fmt.Fprintf(w, `{"data":{"resultType":"matrix","result":[{"metric":{"app":"a"},"values":[[1,%q]]}]}}`, text)
		default:
			fmt.Fprintf(w, `{"data":{"resultType":"streams","result":[{"values":[["1",%q]]}]}}`, text)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestRun: another line, point or name is another response, and a status other than 200 is an error.
func TestRun(t *testing.T) {
	var out strings.Builder
	err := Run(context.Background(), Options{
		Fronts: []Front{{"first", loki(t, "x", 0)}, {"same", loki(t, "x", 0)}, {"other", loki(t, "y", 0)}, {"failing", loki(t, "x", 3)}},
		All:    `{a="b"}`, Some: `{a="c"}`, End: time.Unix(1e9, 0), Spans: []time.Duration{time.Hour}, Asks: 2,
		Clients: []int{2}, Phase: 20 * time.Millisecond, Log: io.Discard,
	}, &out)
	if err != nil {
		t.Fatal(err)
	}
	compared := map[string]int{}
	for _, line := range strings.Split(out.String(), "\n") {
		cells := strings.Split(line, " | ")
		if len(cells) != 8 || cells[1] == "front" {
			continue
		}
		front, failed, like := cells[1], cells[6], strings.Trim(cells[7], " |")
		if like != "" {
			compared[front]++
		}
		switch {
		case front == "same" && like != "" && like != "2 of 2", front == "other" && like != "" && like != "0 of 2":
			t.Errorf("%s", line)
		case strings.HasPrefix(cells[0], "| newest 1,000 lines") && (front == "failing") != (failed == "3"):
			t.Errorf("%s", line)
		}
	}
	if compared["first"] != 0 || compared["same"] < 7 || compared["other"] < 7 {
		t.Errorf("responses that were compared: %v\n%s", compared, out.String())
	}
}

// frontEnv makes the test a front: a server that asks the store for each request that it gets.
const frontEnv = "SHALE_TEST_FRONT"

func TestMain(m *testing.M) {
	if os.Getenv(frontEnv) == "" {
		os.Exit(m.Run())
	}
	listen, store := os.Args[1], os.Args[2]
	kept := map[string]bool{} // by requests one after another
	turn := make(chan struct{}, 1)
	err := http.ListenAndServe(listen, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/ready" {
			return
		}
		turn <- struct{}{}
		defer func() { <-turn }()
		if r.URL.Path == "/loki/api/v1/labels" {
			if kept["labels"] {
				return
			}
			kept["labels"] = true
		}
		resp, err := http.Get(store + "/select/logsql/query")
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		_, _ = io.Copy(w, resp.Body) // whoever asked sees a cut body
	}))
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// TestRunPages: each request to the store is counted, where a front asks for it again after a restart.
func TestRunPages(t *testing.T) {
	t.Setenv(frontEnv, "1")
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, 10_000)) // a front that has gone is counted by its errors
	}))
	defer store.Close()
	program, err := ParseProgram("front=" + os.Args[0] + " {listen} {backend}")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = RunPages(context.Background(), PageOptions{
		Programs: []Program{program}, Backend: store.URL, All: `{a="b"`, Apps: []string{"x", "y", "z", "u"}, Span: 24 * time.Hour,
		Every: time.Millisecond, Refreshes: 2, Fleet: 2, Dir: t.TempDir(), Now: time.Now, Log: io.Discard,
	}, &out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| dashboard of 20 panels | front | cold | 20.0 | 0.20 | 0 |",
		"| Drilldown, all services | front | cold | 11.0 | 0.11 | 0 |",
		"| Drilldown, all services | front | warm | 10.0 | 0.10 | 0 |",
		"| Drilldown, all services | front | after a restart | 11.0 | 0.11 | 0 |",
		"| Drilldown, all services | front | 2 fronts, cold | 11.0 | 0.11 | 0 |",
		"| Drilldown, all services | front | 2 fronts, warm | 10.5 | 0.10 | 0 |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no row %s in\n%s", want, out.String())
		}
	}
}

// TestContent: an empty response has nothing to compare, and one that is not JSON is an error.
func TestContent(t *testing.T) {
	if text, err := content("query_range", []byte(`{"data":{"result":[]}}`)); text != "" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := content("query_range", []byte(`busy`)); err == nil {
		t.Error("no error")
	}
	if _, err := content("query_range", []byte(`{"data":{"result":[{"values":[["1"]]}]}}`)); err == nil {
		t.Error("no error")
	}
}
