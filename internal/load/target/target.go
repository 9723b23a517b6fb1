package target

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

	"github.com/shaledb/shale/internal/load/fleet"
	"github.com/shaledb/shale/internal/load/tally"
)

// Target is a fleet of targets at one address, for real Prometheus servers to scrape:
//
//	/targets/<n>/metrics   the series of target n, as text, OpenMetrics or protobuf: the scraper chooses
//	/sd                    all targets, with the labels that a scraper adds, for Prometheus' http_sd_configs
//
// A scrape is a pure function of the target and the time, so that any number of scrapers and a second process
// see the same samples. Target keeps no state for a series, and writes a scrape while it makes it.
type Target struct {
	Fleet fleet.Fleet
	// Epoch is when values and cycles begin, and Begin when the first target starts; others follow by the
	// rollout.
	Epoch, Begin time.Time
	// Gzip compresses for scrapers that accept it, which Prometheus does.
	Gzip  bool
	Now   func() time.Time
	Tally *tally.Tally
}

// Serve serves scrapes until the context ends, and reports.
func (t *Target) Serve(ctx context.Context, l net.Listener) (*Report, error) {
	if err := t.Fleet.CheckScraped(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	began, cpu := time.Now(), tally.UsedCPU()
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
		err = srv.Close() // a scraper does not read to the end
	}
	took := time.Since(began)
	return &Report{
		Delivery: t.Tally.Deliver("target", t.Fleet.Total(), took), Traffic: t.Tally.Traffic(t.Tally.Sent.Load(), took, tally.UsedCPU()-cpu),
		LastError: t.Tally.Complaint(),
	}, err
}

// lastScrape is how long a scrape may take after the end of the load.
const lastScrape = 2 * time.Second

// ServeHTTP serves one request.
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
		http.Error(w, "this target has not started yet", http.StatusServiceUnavailable)
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
		defer func() { _ = z.Close() }() // a scraper that hangs up is counted by the failed write
		out = z
	}
	e := newExposition(&t.Fleet, format.FormatType(), t.Moment(n, now), n, out)
	samples, size, err := e.write()
	t.Tally.Attempt(size, 0) // countingWriter counts the bytes on the wire
	t.Tally.Sent.Add(samples)
	t.Tally.Respond(http.StatusOK, time.Since(began))
	if err != nil {
		t.Tally.Fault(err.Error())
	}
}

// Moment returns the moment of a target at a time.
func (t *Target) Moment(n int, now time.Time) fleet.Moment {
	c := t.Fleet.Exposed(t.Epoch.UnixNano())
	return c.MomentAt(n, now.UnixNano())
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

// countingWriter counts the bytes on the wire.
type countingWriter struct {
	io.Writer
	tally *tally.Tally
}

func (w *countingWriter) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	w.tally.WireBytes.Add(int64(n))
	return n, err
}

// Group is an element of the list that http_sd_configs reads.
type Group struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// discover writes the list of all targets. The labels are those that shale load remote-write puts on the
// series of a target; a Prometheus takes them over its own.
func (t *Target) discover(w io.Writer, host string) {
	sep := "[\n"
	for n := range t.Fleet.Targets {
		g := Group{[]string{host}, map[string]string{"__metrics_path__": "/targets/" + strconv.Itoa(n) + "/metrics"}}
		for _, l := range t.Fleet.LabelTemplates() {
			if l.OfTarget {
				g.Labels[l.Name] = t.Fleet.LabelValue(l, fleet.Place{Target: n}, 0)
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
