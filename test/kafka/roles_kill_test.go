//go:build e2e

package kafka

import (
	"encoding/json"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
)

// Gateways, ingesters and the broker are killed while four writers send samples and lines, and send each
// again until it is acknowledged. Nothing that was acknowledged is missing afterwards. Queries meanwhile are
// answered, or refused with 503.
func testKillRoles(t *testing.T, broker *Broker) {
	in := install(t, broker, "of-killed-roles")
	begin := time.Now().Add(-time.Hour).Truncate(time.Second)
	const writers = 4
	var stop atomic.Bool
	var acked [writers]atomic.Int64
	var refused, answered, unanswered atomic.Int64
	running := group(t)
	for w := range writers {
		running.Go(func() {
			for k := int64(0); !stop.Load(); k++ {
				at := begin.Add(time.Duration(k) * time.Second)
				for try := w; ; try++ {
					err := one(in.gateways[try%2], w, k, at)
					if err == nil {
						break
					}
					if ended(t) {
						return
					}
					refused.Add(1)
					time.Sleep(100 * time.Millisecond)
				}
				acked[w].Store(k + 1)
			}
		})
	}
	running.Go(func() {
		for i := 0; !stop.Load() && !ended(t); i++ {
			switch status, text := in.queries[i%2].get("/api/v1/query?query=count(sent)"); status {
			case 200:
				answered.Add(1)
			case 503:
				unanswered.Add(1)
			default:
				if !ended(t) {
					t.Errorf("a query: status %d: %s", status, text)
				}
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
	// progress waits until each writer has sent some more.
	progress := func(what string) {
		t.Helper()
		var from [writers]int64
		for w := range from {
			from[w] = acked[w].Load()
		}
		waitFor(t, what, func() bool {
			for w := range from {
				if acked[w].Load() < from[w]+20 {
					return false
				}
			}
			return true
		})
	}
	for range 3 {
		for i, g := range in.gateways {
			progress("writes")
			g.kill()
			progress(fmt.Sprint("writes without gateway ", i))
			g.start()
		}
		for _, p := range in.ingesters {
			p.kill()
			p.start()
		}
		progress("writes")
		broker.Kill()
		broker.Restart()
		progress("writes after the broker")
	}
	stop.Store(true)
	running.Wait()
	total := int64(0)
	for w := range writers {
		n := acked[w].Load()
		total += n
		for _, q := range in.queries {
			samples(t, q, w, n, begin)
			lines(t, q, w, n, begin)
		}
	}
	t.Logf("%d samples and %d lines acknowledged, %d requests refused; %d queries answered, %d refused", total, total, refused.Load(), answered.Load(), unanswered.Load())
	if refused.Load() == 0 || answered.Load() == 0 || unanswered.Load() == 0 {
		t.Error("nothing was killed while it was used")
	}
}

// group returns goroutines that a test waits for, however it ends. Each must end soon once the test has
// [ended], as it may not log or fail afterwards.
func group(t *testing.T) *sync.WaitGroup {
	var g sync.WaitGroup
	t.Cleanup(g.Wait)
	return &g
}

// ended reports whether a test has ended, as by a failure.
func ended(t *testing.T) bool { return t.Context().Err() != nil }

// one sends a sample and a line of a writer.
func one(to *process, writer int, k int64, at time.Time) error {
	w := prompb.WriteRequest{Timeseries: []prompb.TimeSeries{{
		Labels:  []prompb.Label{{Name: "__name__", Value: "sent"}, {Name: "writer", Value: fmt.Sprint(writer)}},
		Samples: []prompb.Sample{{Timestamp: at.UnixMilli(), Value: float64(k)}},
	}}}
	data, err := w.Marshal()
	if err != nil {
		return err
	}
	if err := to.post("/api/v1/write", "application/x-protobuf", "anonymous", snappy.Encode(nil, data)); err != nil {
		return err
	}
	line := fmt.Appendf(nil, `{"streams":[{"stream":{"app":"sent","writer":"%d"},"values":[["%d","line %d"]]}]}`, writer, at.UnixNano(), k)
	return to.post("/loki/api/v1/push", "application/json", "anonymous", line)
}

// settled asks until a query is answered: a holder may lag for a moment.
func settled(t *testing.T, q *process, path string, right func(text string) bool) {
	t.Helper()
	var status int
	var text string
	for began := time.Now(); time.Since(began) < patience; time.Sleep(100 * time.Millisecond) {
		if status, text = q.get(path); status == 200 && right(text) {
			return
		}
	}
	t.Errorf("%s: status %d: %.1000s", path, status, text)
}

// samples checks that a process knows each sample of a writer once.
func samples(t *testing.T, q *process, writer int, n int64, begin time.Time) {
	t.Helper()
	v := url.Values{"query": {fmt.Sprintf(`sent{writer="%d"}[%ds]`, writer, n+10)}, "time": {fmt.Sprint(begin.Unix() + n)}}
	settled(t, q, "/api/v1/query?"+v.Encode(), func(text string) bool {
		var found struct {
			Data struct {
				Result []struct{ Values [][2]any }
			}
		}
		if json.Unmarshal([]byte(text), &found) != nil || len(found.Data.Result) != 1 || int64(len(found.Data.Result[0].Values)) != n {
			return false
		}
		for k, x := range found.Data.Result[0].Values {
			if x[0] != float64(begin.Unix()+int64(k)) || x[1] != fmt.Sprint(k) {
				return false
			}
		}
		return true
	})
}

// lines checks that a process knows each line of a writer once.
func lines(t *testing.T, q *process, writer int, n int64, begin time.Time) {
	t.Helper()
	v := url.Values{"query": {fmt.Sprintf(`{app="sent",writer="%d"}`, writer)}, "limit": {"5000"}, "direction": {"forward"},
		"start": {fmt.Sprint(begin.UnixNano())}, "end": {fmt.Sprint(begin.Add(time.Duration(n) * time.Second).UnixNano())}}
	settled(t, q, "/loki/api/v1/query_range?"+v.Encode(), func(text string) bool {
		var found struct {
			Data struct {
				Result []struct{ Values [][2]string }
			}
		}
		if json.Unmarshal([]byte(text), &found) != nil {
			return false
		}
		k := int64(0)
		for _, s := range found.Data.Result {
			for _, x := range s.Values {
				if x[1] != fmt.Sprint("line ", k) {
					return false
				}
				k++
			}
		}
		return k == n
	})
}
