//go:build e2e

package kafka

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/prompb"
)

// deleting is a writer that also deletes what it has written, one step after the other, and knows what is
// left.
type deleting struct {
	t      *testing.T
	in     *installation
	number int
	begin  time.Time
	random *rand.Rand
	n      int64            // how many times have had a row
	left   map[int64]string // values by time
	// deleted, answered and refused count requests.
	deleted, answered, refused int
}

func (w *deleting) failed(err error) bool {
	if err == nil || ended(w.t) {
		return false
	}
	if strings.Contains(err.Error(), "status 4") {
		w.t.Error(err)
		return false
	}
	w.refused++
	time.Sleep(20 * time.Millisecond)
	return true
}

// send writes a sample and a line with a value, until they are acknowledged.
func (w *deleting) send(k int64, value string) {
	at := w.begin.Add(time.Duration(k) * time.Second)
	var v float64
	_, _ = fmt.Sscan(value, &v)
	write := prompb.WriteRequest{Timeseries: []prompb.TimeSeries{{
		Labels:  []prompb.Label{{Name: "__name__", Value: "deleted"}, {Name: "writer", Value: fmt.Sprint(w.number)}},
		Samples: []prompb.Sample{{Timestamp: at.UnixMilli(), Value: v}},
	}}}
	data, err := write.Marshal()
	if err != nil {
		panic(err)
	}
	line := fmt.Appendf(nil, `{"streams":[{"stream":{"app":"deleted","writer":"%d"},"values":[["%d","line %s"]]}]}`, w.number, at.UnixNano(), value)
	gateway := func() *process { return w.in.gateways[w.random.IntN(2)] }
	for w.failed(gateway().post("/api/v1/write", "application/x-protobuf", "anonymous", snappy.Encode(nil, data))) {
	}
	for w.failed(gateway().post("/loki/api/v1/push", "application/json", "anonymous", line)) {
	}
	w.left[k] = value
}

// drop deletes the rows of a range of times, until both deletions are acknowledged.
func (w *deleting) drop(from, to int64) {
	at := func(k int64) string { return fmt.Sprint(w.begin.Unix() + k) }
	samples := url.Values{"match[]": {fmt.Sprintf(`deleted{writer="%d"}`, w.number)}, "start": {at(from)}, "end": {at(to)}}
	lines := url.Values{"query": {fmt.Sprintf(`{app="deleted",writer="%d"} |= "line"`, w.number)}, "start": {at(from)}, "end": {at(to)}}
	const form = "application/x-www-form-urlencoded"
	for w.failed(w.in.queries[w.random.IntN(2)].post("/api/v1/admin/tsdb/delete_series", form, "anonymous", []byte(samples.Encode()))) {
	}
	for w.failed(w.in.queries[w.random.IntN(2)].post("/loki/api/v1/delete?"+lines.Encode(), form, "anonymous", nil)) {
	}
	for k := from; k <= to; k++ {
		delete(w.left, k)
	}
	w.deleted++
}

// check asks a process for all rows, once. It may refuse to answer, but it must not be wrong.
func (w *deleting) check(q *process) (answered bool) {
	end := w.begin.Unix() + w.n + 10
	v := url.Values{"query": {fmt.Sprintf(`deleted{writer="%d"}[%ds]`, w.number, w.n+20)}, "time": {fmt.Sprint(end)}}
	status, text := q.get("/api/v1/query?"+v.Encode(), "X-Read-Consistency", "strong")
	if status != http.StatusOK || ended(w.t) {
		w.refused++
		return false
	}
	var samples struct {
		Data struct{ Result []struct{ Values [][2]any } }
	}
	if err := json.Unmarshal([]byte(text), &samples); err != nil {
		w.t.Error(err)
	}
	got := map[int64]string{}
	for _, s := range samples.Data.Result {
		for _, x := range s.Values {
			got[int64(x[0].(float64))-w.begin.Unix()] = x[1].(string)
		}
	}
	if diff := cmp.Diff(w.left, got); diff != "" {
		w.t.Errorf("writer %d: samples after %d deletions: %s", w.number, w.deleted, diff)
	}
	v = url.Values{"query": {fmt.Sprintf(`{app="deleted",writer="%d"}`, w.number)}, "limit": {"5000"}, "start": {fmt.Sprint(w.begin.UnixNano())}, "end": {fmt.Sprint(end) + "000000000"}}
	status, text = q.get("/loki/api/v1/query_range?"+v.Encode(), "X-Read-Consistency", "strong")
	if status != http.StatusOK || ended(w.t) {
		w.refused++
		return false
	}
	var lines struct {
		Data struct {
			Result []struct{ Values [][2]string }
		}
	}
	if err := json.Unmarshal([]byte(text), &lines); err != nil {
		w.t.Error(err)
	}
	got = map[int64]string{}
	for _, s := range lines.Data.Result {
		for _, x := range s.Values {
			var at int64
			_, _ = fmt.Sscan(x[0], &at)
			got[at/1e9-w.begin.Unix()] = strings.TrimPrefix(x[1], "line ")
		}
	}
	if diff := cmp.Diff(w.left, got); diff != "" {
		w.t.Errorf("writer %d: lines after %d deletions: %s", w.number, w.deleted, diff)
	}
	w.answered++
	return true
}

// step does one thing.
func (w *deleting) step() {
	switch w.random.IntN(8) {
	case 0:
		if w.n > 4 {
			from := w.random.Int64N(w.n)
			to := from + 1 + w.random.Int64N(w.n-from)
			w.drop(from, to)
			w.check(w.in.queries[w.random.IntN(2)])
			if w.random.IntN(2) == 0 { // one that comes later has a time of the range
				w.send(from, fmt.Sprint(1000*w.deleted+int(from)+1))
			}
		}
	case 1:
		w.check(w.in.queries[w.random.IntN(2)])
	default:
		// A sample in a place that had none, so that the journal has no order among equal times to keep.
		w.send(w.n, fmt.Sprint(w.n))
		w.n++
	}
}

// testDeletions deletes ranges of rows under writes, while processes of all roles and the broker are killed.
// After the answer to a deletion, no process shows a row from before it, and all show each row that came
// later. At the end all deletions are listed as carried out, and answers are the same.
func testDeletions(t *testing.T, broker *Broker) {
	in := install(t, broker, "of-deletions", "--limits.deletion-cancel-period", "0s")
	begin := time.Now().Add(-time.Hour).Truncate(time.Second)
	var stop atomic.Bool
	running := group(t)
	var all []*deleting
	for i := range 3 {
		w := &deleting{t: t, in: in, number: i, begin: begin, random: rand.New(rand.NewPCG(uint64(i), 7)), left: map[int64]string{}}
		all = append(all, w)
		running.Go(func() {
			for !stop.Load() && !t.Failed() && !ended(t) {
				w.step()
			}
		})
	}
	for range 2 {
		for _, p := range []*process{in.queries[0], in.ingesters[0], in.gateways[0], in.queries[1], in.ingesters[1], in.gateways[1]} {
			time.Sleep(2 * time.Second)
			p.kill()
			p.start()
		}
		broker.Kill()
		broker.Restart()
	}
	time.Sleep(3 * time.Second)
	stop.Store(true)
	running.Wait()
	settle := func() {
		for _, w := range all {
			for _, q := range in.queries {
				waitFor(t, "an answer", func() bool { return w.check(q) })
			}
		}
	}
	settle()
	for _, p := range in.ingesters {
		p.stop() // it ships everything
	}
	settle()
	// Compaction begins with the process.
	in.queries[1].stop()
	in.queries[1].start()
	waitFor(t, "deletions that are carried out", func() bool {
		status, text := in.queries[1].get("/loki/api/v1/delete", "X-Scope-OrgID", "anonymous")
		return status == http.StatusOK && strings.Contains(text, `"processed"`) && !strings.Contains(text, `"received"`) && !strings.Contains(text, `%`)
	})
	settle()
	deleted, answered, refused := 0, 0, 0
	for _, w := range all {
		deleted, answered, refused = deleted+w.deleted, answered+w.answered, refused+w.refused
	}
	t.Logf("%d ranges deleted, %d right answers, %d requests refused", deleted, answered, refused)
	if deleted < 5 || answered < 10 {
		t.Error("too little was done")
	}
}
