package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/prometheus/common/expfmt"

	"github.com/shaledb/shale/internal/model"
)

// Target is a fleet of targets behind one address, for real Prometheus servers to scrape:
//
//	/targets/<n>/metrics   the series of target n, as text, OpenMetrics or protobuf, whatever the scraper prefers
//	/sd                    all targets, with the labels that a scraper adds, for Prometheus' http_sd_configs
//
// What a scrape shows is a pure function of the target and of the time, so that any number of scrapers see the same, and
// so does a second process. Nothing is kept for a series, and a scrape is written while it is made.
type Target struct {
	Fleet Fleet
	// Epoch is when values and cycles begin, and Begin when the first target is there; others follow by the rollout.
	Epoch, Begin time.Time
	// Gzip compresses for scrapers that accept it, which Prometheus does.
	Gzip  bool
	Now   func() time.Time
	Tally *Tally
}

// Check returns an error of class [model.ErrInvalid] unless the fleet can be scraped.
func (t *Target) Check() error {
	switch {
	case t.Fleet.Churn.ValueInterval <= 0:
		return fmt.Errorf("%w: load: targets need to know how long a value stays", model.ErrInvalid)
	case t.Fleet.Churn.Jitter > 0 || t.Fleet.Churn.StaleMarkers || t.Fleet.scrapers() > 1 || t.Fleet.tenants() > 1:
		return fmt.Errorf("%w: load: jitter, stale markers, scrapers and tenants are the matter of who scrapes", model.ErrInvalid)
	}
	return t.Fleet.Check()
}

// Serve answers until the context ends, and reports.
func (t *Target) Serve(ctx context.Context, l net.Listener) (*Report, error) {
	if err := t.Check(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	began, cpu := time.Now(), usedCPU()
	srv := &http.Server{Handler: t, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	ended := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.Background(), lastScrape)
		defer cancel()
		ended <- srv.Shutdown(grace)
	})
	err := srv.Serve(l)
	if !stop() {
		err = <-ended
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = srv.Close() // a scrape that nobody reads to its end
	}
	return t.Tally.report(kindTarget, t.Fleet.Total(), time.Since(began), usedCPU()-cpu), err
}

// lastScrape is how long a scrape may still take when the time is over.
const lastScrape = 2 * time.Second

// ServeHTTP answers one request.
func (t *Target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "want GET", http.StatusMethodNotAllowed)
		return
	}
	if r.URL.Path == "/sd" {
		w.Header().Set("Content-Type", "application/json")
		t.discover(w, r.Host)
		return
	}
	number, isMetrics := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/targets/"), "/metrics")
	n, err := strconv.Atoi(number)
	if !isMetrics || err != nil || n < 0 || n >= t.Fleet.Targets || number != strconv.Itoa(n) {
		http.Error(w, fmt.Sprintf("want /targets/<0 to %d>/metrics, or /sd for a list of them", t.Fleet.Targets-1), http.StatusNotFound)
		return
	}
	now := t.Now()
	if now.Before(t.Begin.Add(time.Duration(n) * t.Fleet.Churn.Rollout)) {
		http.Error(w, "this target is not there yet", http.StatusServiceUnavailable)
		return
	}
	t.scrape(w, r, n, now)
}

// scrape writes the series of a target.
func (t *Target) scrape(w http.ResponseWriter, r *http.Request, n int, now time.Time) {
	began := time.Now()
	format := expfmt.NegotiateAccept(r.Header, expfmt.FmtProtoDelim, expfmt.FmtText, expfmt.FmtOpenMetrics_1_0_0, expfmt.FmtOpenMetrics_0_0_1)
	w.Header().Set("Content-Type", string(format))
	var out io.Writer = &countingWriter{w, t.Tally}
	if t.Gzip && acceptsGzip(r.Header) {
		w.Header().Set("Content-Encoding", "gzip")
		z, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
		if err != nil {
			panic("BUG: gzip level: " + err.Error())
		}
		defer func() { _ = z.Close() }() // who hangs up is counted by its failed write
		out = z
	}
	e := newExposition(&t.Fleet, format.FormatType(), t.moment(n, now), n, out)
	samples, size, err := e.write()
	t.Tally.requests.Add(1)
	t.Tally.sent.Add(samples)
	t.Tally.rawBytes.Add(size)
	t.Tally.codes[http.StatusOK].Add(1)
	t.Tally.latency.Observe(time.Since(began))
	if err != nil {
		t.Tally.faults.Add(1)
		t.Tally.complain(err.Error())
	}
}

// moment returns where in their lives the series of a target are.
func (t *Target) moment(n int, now time.Time) moment {
	c := t.Fleet.exposed(t.Epoch.UnixNano())
	return c.at(n, now.UnixNano())
}

// exposed is the course of a fleet that is scraped. When a target is first there changes nothing about its values.
func (f *Fleet) exposed(epoch int64) course {
	c := f.course(Timeline{Start: epoch, Step: int64(f.Churn.ValueInterval)})
	c.Rollout = 0
	return c
}

func acceptsGzip(h http.Header) bool {
	for _, field := range h.Values("Accept-Encoding") {
		for coding := range strings.SplitSeq(field, ",") {
			name, weight, _ := strings.Cut(strings.TrimSpace(coding), ";")
			if name == "gzip" && strings.TrimSpace(weight) != "q=0" {
				return true
			}
		}
	}
	return false
}

// countingWriter counts what goes over the wire.
type countingWriter struct {
	io.Writer
	tally *Tally
}

func (w *countingWriter) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	w.tally.wireBytes.Add(int64(n))
	return n, err
}

// group is an element of the list that http_sd_configs reads.
type group struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// discover writes the list of all targets. The labels are those that shale load remote-write puts on the series of a
// target; a Prometheus takes them over its own.
func (t *Target) discover(w io.Writer, host string) {
	sep := "[\n"
	for n := range t.Fleet.Targets {
		g := group{[]string{host}, map[string]string{"__metrics_path__": "/targets/" + strconv.Itoa(n) + "/metrics"}}
		for _, l := range t.Fleet.labels() {
			if l.ofTarget {
				g.Labels[l.name] = t.Fleet.text(l, place{target: n}, 0)
			}
		}
		line, err := json.Marshal(g)
		if err != nil {
			panic("BUG: a list of targets has no JSON: " + err.Error())
		}
		if _, err := w.Write(append([]byte(sep), line...)); err != nil {
			return
		}
		sep = ",\n"
	}
	_, _ = io.WriteString(w, "\n]\n")
}
