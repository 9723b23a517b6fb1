package oracle

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/grafana/regexp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/notifier"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/util/notifications"
	"github.com/prometheus/prometheus/util/teststorage"
	"github.com/prometheus/prometheus/web"

	"github.com/shaledb/shale/internal/api"
	"github.com/shaledb/shale/internal/api/prom"
	"github.com/shaledb/shale/internal/model"
)

// pair is Prometheus and Shale over the same store.
type pair struct {
	prometheus, shale string // addresses
	store             *teststorage.TestStorage
	parserOptions     parser.Options
}

const (
	readSampleLimit = 2000
	readFrameBytes  = 2000
)

// localStorage adds to the store what the web server of Prometheus asks of it.
type localStorage struct{ *teststorage.TestStorage }

func (s localStorage) BlockMetas() ([]tsdb.BlockMeta, error) { return s.DB.BlockMetas(), nil }
func (s localStorage) Stats(label string, limit int) (*tsdb.Stats, error) {
	return s.Head().Stats(label, limit), nil
}
func (localStorage) WALReplayStatus() (tsdb.WALReplayStatus, error) {
	return tsdb.WALReplayStatus{}, nil
}

func newPair(t *testing.T, load func(storage.Appender)) *pair {
	t.Helper()
	p := &pair{store: teststorage.New(t)}
	app := p.store.Appender(t.Context())
	load(app)
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
	p.parserOptions = parser.Options{EnableExperimentalFunctions: true, ExperimentalDurationExpr: true, EnableExtendedRangeSelectors: true, EnableBinopFillModifiers: true}
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 100_000, Timeout: 10 * time.Second, EnableAtModifier: true, EnableNegativeOffset: true, EnablePerStepStats: true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return 60_000 }, Parser: parser.NewParser(p.parserOptions),
	})
	t.Cleanup(func() { engine.Close() })
	p.startPrometheus(t, engine)
	p.startShale(t, engine)
	return p
}

func (p *pair) startPrometheus(t *testing.T, engine *promql.Engine) {
	logger := promslog.NewNopLogger()
	scraper, err := scrape.NewManager(nil, logger, nil, p.store, nil, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.prometheus = "http://" + listener.Addr().String()
	h := web.New(logger, &web.Options{
		Context: t.Context(), LocalStorage: localStorage{p.store}, Storage: p.store, ExemplarStorage: p.store, QueryEngine: engine,
		LookbackDelta: 5 * time.Minute, ScrapeManager: scraper,
		RuleManager:         rules.NewManager(&rules.ManagerOptions{Logger: logger, Context: t.Context()}),
		Notifier:            notifier.NewManager(&notifier.Options{}, 0, logger),
		Version:             &web.PrometheusVersion{Version: "1.2.3", Revision: "r", Branch: "b", BuildUser: "u", BuildDate: "d", GoVersion: "g"},
		NotificationsGetter: func() []notifications.Notification { return []notifications.Notification{} },
		Flags:               map[string]string{"b.flag": "1", "a<flag": "x"},
		ListenAddresses:     []string{listener.Addr().String()}, CORSOrigin: regexp.MustCompile("^(?:.*)$"),
		ExternalURL: &url.URL{Scheme: "http", Host: "localhost"}, RoutePrefix: "/",
		RemoteReadSampleLimit: readSampleLimit, RemoteReadConcurrencyLimit: 10, RemoteReadBytesInFrame: readFrameBytes,
		Gatherer: prometheus.NewRegistry(), Registerer: prometheus.NewRegistry(), Parser: parser.NewParser(p.parserOptions),
	})
	if err := h.ApplyConfig(&config.Config{}); err != nil {
		t.Fatal(err)
	}
	h.SetReady(web.Ready)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = h.Run(ctx, []net.Listener{listener}, "")
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

func (p *pair) startShale(t *testing.T, engine *promql.Engine) {
	h := prom.New(prom.Options{
		Engine: engine, Parser: parser.NewParser(p.parserOptions),
		Queryable: func(string, *model.Quota, *model.Cost) storage.Queryable { return p.store },
		Exemplars: func(string, *model.Quota, *model.Cost) storage.ExemplarQueryable { return p.store },
		Flags:     func() map[string]string { return map[string]string{"b.flag": "1", "a<flag": "x"} },
		Config:    func() string { return (&config.Config{}).String() },
		Options: api.Options{
			Version:    api.Version{Version: "1.2.3", Revision: "r", Branch: "b", BuildUser: "u", BuildDate: "d", GoVersion: "g"},
			Registerer: prometheus.NewRegistry(),
		},
		MaxReadSamples: readSampleLimit, MaxReadFrameBytes: readFrameBytes,
	})
	mux := http.NewServeMux()
	h.Routes(mux)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	p.shale = s.URL
}

// reply is the response of a server.
type reply struct {
	status int
	header http.Header
	body   string
}

// send sends one request. Params are name=value, unescaped; a POST carries them as a form. Headers are Name:
// value.
func send(t *testing.T, server, method, path string, params, headers []string) reply {
	t.Helper()
	form := url.Values{}
	for _, p := range params {
		name, value, _ := strings.Cut(p, "=")
		form.Add(name, value)
	}
	var body io.Reader
	target := server + path
	switch {
	case method == http.MethodPost:
		body = strings.NewReader(form.Encode())
	case len(form) > 0:
		target += "?" + form.Encode()
	}
	req, err := http.NewRequest(method, target, body)
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	return exchange(t, req)
}

func exchange(t *testing.T, req *http.Request) reply {
	t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(text)}
}
