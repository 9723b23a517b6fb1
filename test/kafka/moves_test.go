//go:build e2e

package kafka

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Partitions are divided by a group. While four writers send and two processes answer queries, an ingester is
// added, one is stopped, and one is killed. No sender sees an error, and no query a wrong answer: each has
// all that was acknowledged before it, or is refused with 503. In the end every row is there once.
func testGroupMoves(t *testing.T, broker *Broker) {
	const partitions = 8
	c := newCluster(t, broker, "group-moves", partitions)
	gateways := []*process{c.process(t, "gateway", "--gateways", "2"), c.process(t, "gateway", "--gateways", "2")}
	var ingesters []*process
	var addrs []string
	for range 3 {
		p := c.process(t, "ingest", "--ship-every", "30s")
		ingesters, addrs = append(ingesters, p), append(addrs, p.addr)
	}
	peers := strings.Join(addrs, ",")
	queries := []*process{c.process(t, "query", "--ingesters", peers), c.process(t, "query,compact", "--ingesters", peers)}
	for _, p := range [][]*process{gateways, ingesters[:2], queries} {
		for _, p := range p {
			p.start()
		}
	}
	have := func(p *process) (n int) {
		_, text := p.get("/metrics")
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "shale_partition_state{") && strings.Contains(line, `state="ready"`) && strings.HasSuffix(line, " 1\n") {
				n++
			}
		}
		return n
	}
	// even waits until partitions are divided among processes.
	even := func(what string, of ...*process) {
		t.Helper()
		waitFor(t, what, func() bool {
			all := 0
			for _, p := range of {
				n := have(p)
				if n < partitions/len(of) {
					return false
				}
				all += n
			}
			return all == partitions
		})
	}
	even("two ingesters", ingesters[0], ingesters[1])

	begin := time.Now().Add(-2 * time.Hour).Truncate(time.Second)
	w := startWriters(t, gateways, queries, begin)
	w.progress("the first writes")

	event := func(what string, do func(), of ...*process) {
		t.Helper()
		w.refused.Store(0)
		w.lastRefused.Store(0)
		began := time.Now()
		do()
		even(what, of...)
		done := time.Since(began)
		w.progress("writes after " + what)
		time.Sleep(3 * time.Second)
		whole := time.Duration(0)
		if last := w.lastRefused.Load(); last > 0 {
			whole = time.Unix(0, last).Sub(began)
		}
		t.Logf("%s: even after %.1f s; %d queries refused, the last after %.1f s", what, done.Seconds(), w.refused.Load(), whole.Seconds())
	}
	event("an ingester is added", ingesters[2].launch, ingesters...)
	event("an ingester is stopped", ingesters[1].stop, ingesters[0], ingesters[2])
	event("an ingester is killed, and its disk is lost", func() {
		ingesters[2].kill()
		if err := os.RemoveAll(ingesters[2].dir); err != nil {
			t.Fatal(err)
		}
	}, ingesters[0])
	event("it comes back", ingesters[2].launch, ingesters[0], ingesters[2])
	event("a killed ingester starts again within the session", func() {
		ingesters[2].kill()
		ingesters[2].launch()
	}, ingesters[0], ingesters[2])
	w.end(queries)
}

// writers send samples and lines, and ask for them.
type writers struct {
	t       *testing.T
	begin   time.Time
	running *sync.WaitGroup
	stop    atomic.Bool
	// tried and acked count the samples of each writer.
	tried, acked [4]atomic.Int64
	// answered and refused count queries; lastRefused is when one was refused, in Unix nanoseconds.
	answered, refused, lastRefused atomic.Int64
	// slowest is how long the slowest write took, in nanoseconds.
	slowest atomic.Int64
	// again counts writes that were refused and sent again, if the writers do that.
	again    atomic.Int64
	repeated bool
	// pause is the time between two rows of a writer; 0: 20 ms.
	pause time.Duration
	// lost counts queries whose process was killed. It is an error unless writes are repeated.
	lost atomic.Int64
}

// startWriters starts writers that accept no refusal, and queries for what they have sent.
func startWriters(t *testing.T, gateways, queries []*process, begin time.Time) *writers {
	w := &writers{t: t, begin: begin}
	w.start(gateways, queries)
	return w
}

func (w *writers) start(gateways, queries []*process) {
	t, begin := w.t, w.begin
	w.running = group(t)
	if w.pause == 0 {
		w.pause = 20 * time.Millisecond
	}
	for i := range w.acked {
		w.running.Go(func() {
			for k := int64(0); !w.stop.Load(); k++ {
				w.tried[i].Store(k + 1)
				began := time.Now()
				for try := int(k) + i; ; try++ {
					err := one(gateways[try%len(gateways)], i, k, begin.Add(time.Duration(k)*time.Second))
					if err == nil {
						break
					}
					if ended(t) {
						return
					}
					if !w.repeated {
						t.Errorf("writer %d: %v", i, err)
						return
					}
					w.again.Add(1)
					time.Sleep(100 * time.Millisecond)
				}
				w.acked[i].Store(k + 1)
				if took := int64(time.Since(began)); took > w.slowest.Load() {
					w.slowest.Store(took)
				}
				time.Sleep(w.pause)
			}
		})
	}
	for i, q := range queries {
		w.running.Go(func() {
			for n := i; !w.stop.Load() && !ended(t); n++ {
				w.ask(q, n%len(w.acked))
				time.Sleep(w.pause)
			}
		})
	}
}

// ask asks how many samples of a writer there are.
func (w *writers) ask(q *process, writer int) {
	least := w.acked[writer].Load()
	v := url.Values{"query": {fmt.Sprintf(`count_over_time(sent{writer="%d"}[3h])`, writer)}, "time": {fmt.Sprint(w.begin.Add(170 * time.Minute).Unix())}}
	status, text := q.get("/api/v1/query?"+v.Encode(), "X-Read-Consistency", "strong")
	most := w.tried[writer].Load()
	if ended(w.t) { // the question was cut
		return
	}
	switch status {
	case 200:
		w.answered.Add(1)
		n := int64(0)
		var found struct {
			Data struct {
				Result []struct{ Value [2]any }
			}
		}
		if err := json.Unmarshal([]byte(text), &found); err != nil {
			w.t.Errorf("%s: %v", text, err)
			return
		}
		for _, r := range found.Data.Result {
			_, _ = fmt.Sscan(fmt.Sprint(r.Value[1]), &n)
		}
		if n < least || n > most {
			w.t.Errorf("writer %d: a query counts %d samples; %d were acknowledged before it, and %d sent when it was answered", writer, n, least, most)
		}
	case 503:
		if w.refused.Add(1) == 1 {
			w.t.Logf("the first refusal: %.300s", text)
		}
		w.lastRefused.Store(time.Now().UnixNano())
	case 0:
		if w.lost.Add(1); !w.repeated {
			w.t.Errorf("a query: %s", text)
		}
	default:
		w.t.Errorf("a query: status %d: %s", status, text)
	}
}

// progress waits until each writer has sent some more.
func (w *writers) progress(what string) {
	w.t.Helper()
	w.moved(20, what)
}

// moved waits until each writer has sent so many more.
func (w *writers) moved(by int64, what string) {
	w.t.Helper()
	var from [len(w.acked)]int64
	for i := range from {
		from[i] = w.acked[i].Load()
	}
	waitFor(w.t, what, func() bool {
		for i := range from {
			if w.acked[i].Load() < from[i]+by {
				return w.t.Failed()
			}
		}
		return true
	})
}

// end stops, and checks that every row is there once and in order.
func (w *writers) end(queries []*process) {
	w.t.Helper()
	w.stop.Store(true)
	w.running.Wait()
	total := int64(0)
	for i := range w.acked {
		n := w.acked[i].Load()
		total += n
		for _, q := range queries {
			samples(w.t, q, i, n, w.begin)
			lines(w.t, q, i, n, w.begin)
		}
	}
	w.t.Logf("%d samples and as many lines; %d queries answered", total, w.answered.Load())
}
