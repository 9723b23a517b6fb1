package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shaledb/shale/bench/system"
)

// crowdOfTwo returns the responses of two clients that send requests for a tenth of a second.
func crowdOfTwo(t *testing.T, h http.HandlerFunc) *responses {
	s := httptest.NewServer(h)
	defer s.Close()
	p := &pressure{srv: &system.Server{HTTP: strings.TrimPrefix(s.URL, "http://")}}
	all := new(responses)
	for _, got := range p.crowd(t.Context(), 100*time.Millisecond, 2, 0, func(int) shape {
		return shape{name: "x", path: func(time.Time) string { return "/" }}
	}) {
		all.add(got)
	}
	return all
}

// TestLateResponses: a refusal that comes after the time of a cell counts.
func TestLateResponses(t *testing.T) {
	got := crowdOfTwo(t, func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(200 * time.Millisecond)
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	if got.codes[http.StatusServiceUnavailable] != 2 || got.wrong != 2 || got.err() == nil {
		t.Errorf("%+v, want two responses 503 without Retry-After", got)
	}
}

// TestCutResponses: a response that is cut shows in its column, and fails the command.
func TestCutResponses(t *testing.T) {
	got := crowdOfTwo(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	if got.cut < 2 || len(got.codes) > 0 {
		t.Errorf("%+v, want only cut responses", got)
	}
	one := cell{got: *got, seconds: 1}
	if err := judge([]cell{one, {seconds: 1}}); err == nil || !strings.HasPrefix(err.Error(), "1 cells") || !strings.Contains(err.Error(), "EOF") {
		t.Errorf("the verdict is %v", err)
	}
}

// TestAwaitZero waits until queries hold no memory, for a bounded time.
func TestAwaitZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := []float64{700, 1, 0, 1}
		next := func() (float64, error) {
			n := held[0]
			held = held[min(1, len(held)-1):]
			return n, nil
		}
		if err := awaitZero(t.Context(), next); err != nil || len(held) != 1 {
			t.Errorf("%v, with %d values left", err, len(held))
		}
		if err := awaitZero(t.Context(), next); err == nil || !strings.Contains(err.Error(), queryBytesMetric+" is 1 after 30s") {
			t.Errorf("memory that stays held: %v", err)
		}
	})
}
