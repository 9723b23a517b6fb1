package api

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestAgain: a request that fails with an error that may have passed runs once more, with nothing of the
// first attempt. It does not if a part of its response was sent, or with another error.
func TestAgain(t *testing.T) {
	passing, other := errors.New("it was lost"), errors.New("it is wrong")
	for _, c := range []struct {
		name   string
		fails  []error // of each attempt
		sends  bool
		runs   int
		status int
	}{
		{"none fails", nil, false, 1, 200},
		{"the first fails", []error{passing}, false, 2, 200},
		{"both fail", []error{passing, passing}, false, 2, 503},
		{"another error", []error{other}, false, 1, 503},
		{"a part was sent", []error{passing}, true, 1, 0},
	} {
		o := &Options{Again: func(err error) bool { return errors.Is(err, passing) }}
		o.SetDefaults()
		p := NewPipeline(o, &Metrics{
			Requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "requests"}, []string{"handler", "code"}),
			Seconds:  prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "seconds"}, []string{"handler"}), Gate: gateMetrics(),
		})
		mux, runs := http.NewServeMux(), 0
		p.Mount(mux, &Dialect{
			Tenants:    OneTenant,
			Classify:   func(err error, _ bool) *Error { return &Error{Status: http.StatusServiceUnavailable, Err: err} },
			WriteError: func(b *Body, e *Error) { b.SendText(e.Status, e.Error()) },
		}, []Endpoint{{Pattern: "/x", Name: "x", Needs: Form | Turn, Serve: func(r *Request) (*Response, error) {
			runs++
			attempt := runs
			if err := r.Quota.TakeSeries(3, 100); err != nil {
				return nil, err
			}
			r.Cost.Series.Add(3)
			return &Response{Write: func(b *Body) error {
				b.Raw("whole")
				if c.sends {
					b.Flush(http.StatusOK, false)
				}
				if attempt <= len(c.fails) {
					return c.fails[attempt-1]
				}
				return nil
			}}, nil
		}}})
		out := httptest.NewRecorder()
		func() {
			defer func() {
				if cut := recover() != nil; cut != (c.status == 0) {
					t.Errorf("%s: the connection is cut: %t", c.name, cut)
				}
			}()
			mux.ServeHTTP(out, httptest.NewRequest(http.MethodGet, "/x", nil))
		}()
		if runs != c.runs || c.status != 0 && out.Code != c.status {
			t.Errorf("%s: %d attempts, status %d", c.name, runs, out.Code)
		}
		if out.Code == http.StatusOK && c.status == 200 && (out.Body.String() != "whole" || out.Header().Get("Shale-Cost") != "series=3") {
			t.Errorf("%s: %q, %s", c.name, out.Body, out.Header())
		}
	}
}
