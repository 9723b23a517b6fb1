package loki

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/read"
	"github.com/shaledb/shale/internal/read/logql"
	"github.com/shaledb/shale/internal/read/logql/syntax"
	"github.com/shaledb/shale/internal/read/readtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is an API over a store in memory.
type world struct {
	options Options
	memory  *readtest.Memory
	reg     *prometheus.Registry
	http.Handler
}

// newWorld builds an API, whose time is 1000 seconds; change may change its options before.
func newWorld(t testing.TB, change func(*Options)) *world {
	t.Helper()
	w := &world{memory: readtest.NewMemory(1), reg: prometheus.NewRegistry()}
	now := func() time.Time { return time.Unix(1000, 0) }
	w.options = Options{
		Engine:     logql.New(logql.Options{Read: read.New(read.Options{Sources: []read.Source{w.memory}}), Workers: 2, Now: now}),
		Version:    Version{Version: "1.2.3", Revision: "r", Branch: "b", BuildUser: "u", BuildDate: "d", GoVersion: "g"},
		Now:        now,
		Registerer: w.reg,
	}
	if change != nil {
		change(&w.options)
	}
	h := New(w.options)
	mux := http.NewServeMux()
	h.Routes(mux)
	w.Handler = mux
	t.Cleanup(func() {
		h.Close()
		if n := w.memory.Open(); n != 0 {
			t.Errorf("%d cursors were not closed", n)
		}
	})
	return w
}

// load adds a line: {labels} seconds {metadata} text, of which the metadata may be left out, and text may be quoted.
func (w *world) load(tenant, line string) error {
	labels, line, err := cutLabels(line)
	if err != nil {
		return err
	}
	at, line, _ := strings.Cut(line, " ")
	seconds, err := strconv.ParseFloat(at, 64)
	if err != nil {
		return err
	}
	l := readtest.Line{Time: int64(seconds*1000) * 1e6}
	if strings.HasPrefix(line, "{") && strings.Contains(line, "} ") {
		if l.Metadata, line, err = cutLabels(line); err != nil {
			return err
		}
	}
	if l.Text = line; strings.HasPrefix(line, `"`) {
		if l.Text, err = strconv.Unquote(line); err != nil {
			return err
		}
	}
	w.memory.AddText(tenant, labels.Key(7, model.Logs), labels, l)
	return nil
}

// cutLabels reads {a="b"} from the beginning of a text.
func cutLabels(text string) (model.Labels, string, error) {
	labels, rest, _ := strings.Cut(text, "} ")
	ms, err := syntax.ParseMatchers(labels+"}", true)
	if err != nil {
		return nil, "", err
	}
	var pairs []string
	for _, m := range ms {
		pairs = append(pairs, m.Name, m.Value)
	}
	return model.LabelsOf(pairs...), rest, nil
}

func (w *world) mustLoad(t testing.TB, tenant string, lines ...string) {
	t.Helper()
	for _, l := range lines {
		if err := w.load(tenant, l); err != nil {
			t.Fatal(err)
		}
	}
}

// do sends a request. Parameters are name=value, not escaped; headers are Name: value.
func (w *world) do(method, path string, params, headers []string) *httptest.ResponseRecorder {
	form := url.Values{}
	for _, p := range params {
		name, value, _ := strings.Cut(p, "=")
		form.Add(name, value)
	}
	var r *http.Request
	if method == http.MethodPost {
		r = httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	} else {
		if len(form) > 0 {
			path += "?" + form.Encode()
		}
		r = httptest.NewRequest(method, path, nil)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	out := httptest.NewRecorder()
	w.ServeHTTP(out, r)
	return out
}

func (w *world) get(path string, params ...string) *httptest.ResponseRecorder {
	return w.do(http.MethodGet, path, params, nil)
}

func show(r *httptest.ResponseRecorder) string {
	return fmt.Sprintf("%d %s\n", r.Code, r.Body)
}
