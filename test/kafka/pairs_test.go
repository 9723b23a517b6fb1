//go:build e2e

package kafka

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang/snappy"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
)

const (
	pairFailover = 3 * time.Second
	pairEvery    = 200 * time.Millisecond
)

// pairSender is a Prometheus of an HA pair with one series. It sends a request again, to the next gateway,
// until it is accepted.
type pairSender struct {
	t        *testing.T
	replica  string
	value    float64
	gateways []*process

	mu      sync.Mutex
	first   int // the gateway that it sends to
	running chan struct{}
	done    *sync.WaitGroup
	sent    int
	// last is when a sample was accepted, and pause the longest time between two since [pairSender.longest].
	last  time.Time
	pause time.Duration
	// late is for how long the sender was not scheduled since then, and stalled the longest such time between
	// two samples.
	late, stalled time.Duration
}

// start begins to send. The times of the two replicas differ, as servers scrape at different times.
func (s *pairSender) start() {
	s.mu.Lock()
	s.running = make(chan struct{})
	running := s.running
	s.last = time.Now()
	s.mu.Unlock()
	s.done = group(s.t)
	s.done.Go(func() {
		for {
			s.sleep(pairEvery)
			select {
			case <-running:
				return
			default:
			}
			at := time.Now().UnixMilli()/10*10 + int64(s.value) // no two replicas have a time in common
			for !s.send(at) {
				if ended(s.t) {
					return
				}
				s.mu.Lock()
				s.first++
				s.mu.Unlock()
				s.sleep(50 * time.Millisecond)
			}
			s.mu.Lock()
			s.sent++
			s.pause, s.last = max(s.pause, time.Since(s.last)), time.Now()
			s.stalled, s.late = max(s.stalled, s.late), 0
			s.mu.Unlock()
		}
	})
}

// sleep notes how much longer than asked it takes: a busy machine does not schedule the sender.
func (s *pairSender) sleep(d time.Duration) {
	due := time.Now().Add(d)
	time.Sleep(d)
	s.mu.Lock()
	s.late += time.Since(due)
	s.mu.Unlock()
}

func (s *pairSender) stop() {
	close(s.running)
	s.done.Wait()
}

// longest returns the longest time between two samples that were accepted since it was asked before.
func (s *pairSender) longest() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	pause := max(s.pause, time.Since(s.last))
	s.pause, s.last = 0, time.Now()
	return pause
}

// accepted waits until so many more samples are accepted.
func (s *pairSender) accepted(n int) {
	s.t.Helper()
	count := func() int { s.mu.Lock(); defer s.mu.Unlock(); return s.sent }
	begin := count()
	waitFor(s.t, "samples of "+s.replica, func() bool { return count() >= begin+n })
}

// send sends a sample once. A response of success must say that it is written, whichever replica is stored.
func (s *pairSender) send(at int64) bool {
	r := writev2.Request{
		Symbols:    []string{"", "__name__", "pair", "cluster", "eu", "__replica__", s.replica},
		Timeseries: []writev2.TimeSeries{{LabelsRefs: []uint32{5, 6, 1, 2, 3, 4}, Samples: []writev2.Sample{{Value: s.value, Timestamp: at}}}},
	}
	body, err := r.Marshal()
	if err != nil {
		s.t.Error(err)
		return true
	}
	s.mu.Lock()
	to := s.gateways[s.first%len(s.gateways)]
	s.mu.Unlock()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, "http://"+to.addr+"/api/v1/write", bytes.NewReader(snappy.Encode(nil, body)))
	if err != nil {
		s.t.Error(err)
		return true
	}
	req.Header.Set("Content-Type", "application/x-protobuf;proto=io.prometheus.write.v2.Request")
	req.Header.Set("Content-Encoding", "snappy")
	resp, err := (&http.Client{Timeout: 20 * time.Second}).Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	switch written := resp.Header.Get("X-Prometheus-Remote-Write-Samples-Written"); {
	case resp.StatusCode == http.StatusNoContent && written == "1":
		return true
	case resp.StatusCode == http.StatusNoContent || resp.StatusCode/100 == 4 || written != "0" && written != "":
		s.t.Errorf("replica %s: status %d, %q written", s.replica, resp.StatusCode, written)
		return true
	}
	return false
}

// leads returns which of two replicas with the values 1 and 2 was stored last.
func leads(t *testing.T, query *process) (i int) {
	t.Helper()
	waitFor(t, "the leader of a pair", func() bool {
		_, body := query.get("/api/v1/query?query=last_over_time(pair[1h])", "X-Read-Consistency", "strong")
		var answer struct {
			Data struct {
				Result []struct{ Value [2]any }
			}
		}
		if json.Unmarshal([]byte(body), &answer) != nil || len(answer.Data.Result) != 1 {
			return false
		}
		_, err := fmt.Sscan(fmt.Sprint(answer.Data.Result[0].Value[1]), &i)
		return err == nil
	})
	return i - 1
}

// number returns the value of a metric without labels.
func number(p *process, name string) float64 {
	_, text := p.get("/metrics")
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			n, _ := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			return n
		}
	}
	return 0
}

// Two replicas of an HA pair push through different gateways. The leader is killed, then the gateway that it
// writes to, then both gateways and the broker. One replica is stored at a time, without a gap or a
// repetition, and each response says that the sample is written.
func testPairs(t *testing.T, broker *Broker) {
	c := newCluster(t, broker, "pairs", 2)
	flags := []string{"--ha.deduplicate", "on", "--ha.failover-after", pairFailover.String()}
	gateways := []*process{c.process(t, "gateway", flags...), c.process(t, "gateway", flags...)}
	ingester := c.process(t, "ingest", "--kafka.partitions", "0-1")
	query := c.process(t, "query", "--ingesters", ingester.addr)
	for _, p := range append(gateways, ingester, query) {
		p.start()
	}
	begin := time.Now()
	senders := []*pairSender{{t: t, replica: "a", value: 1, gateways: gateways}, {t: t, replica: "b", value: 2, gateways: gateways, first: 1}}
	for _, s := range senders {
		s.start()
	}
	for _, s := range senders {
		s.accepted(10)
	}
	leader := leads(t, query)
	other := func() *pairSender { return senders[1-leader] }
	// The leader dies. The other one is stored within the failover time, with what it has sent meanwhile.
	before := elections(gateways)
	died := time.Now()
	senders[leader].stop()
	waitFor(t, "an election", func() bool { return elections(gateways) > before })
	t.Logf("the failover took %s", time.Since(died))
	leader = 1 - leader
	other().start()
	other().accepted(10)
	// Its gateway is killed. It goes on through the other one.
	s := senders[leader]
	s.mu.Lock()
	dead := gateways[s.first%2]
	s.mu.Unlock()
	won := elections([]*process{dead})
	dead.kill()
	s.accepted(10)
	dead.start()
	// Both gateways and the broker are killed, and nothing is known but what the topic has.
	won += elections(gateways)
	begun := time.Now()
	broker.Kill()
	for _, g := range gateways {
		g.kill()
	}
	broker.Restart()
	for _, g := range gateways {
		g.start()
	}
	senders[leader].longest()
	for _, s := range senders {
		s.accepted(1)
	}
	away := time.Since(begun)
	// A machine may be so busy that the leader is silent for longer.
	if n := elections(gateways); n != 0 && senders[leader].longest() < pairFailover/2 {
		t.Errorf("%v elections after a restart", n)
	}
	leader = leads(t, query)
	before = elections(gateways)
	senders[leader].stop()
	waitFor(t, "another election", func() bool { return elections(gateways) > before })
	other().accepted(10)
	other().stop()
	checkPair(t, query, begin, 3, int(won+elections(gateways)), away, senders)
}

// elections returns how many elections gateways have won since they started.
func elections(gateways []*process) (n float64) {
	for _, g := range gateways {
		n += number(g, "shale_ha_elections_total")
	}
	return n
}

// checkPair checks that runs of samples of one replica follow each other, no more of them than elections, and
// cover all the time except that in which nothing ran, or a sender was not scheduled. After a failover, what
// the other replica has sent meanwhile is stored, too.
func checkPair(t *testing.T, query *process, begin time.Time, least, elections int, away time.Duration, senders []*pairSender) {
	t.Helper()
	status, body := query.get(fmt.Sprintf("/api/v1/query?query=pair[%ds]", int(time.Since(begin).Seconds())+10), "X-Read-Consistency", "strong")
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Values [][2]any
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK || len(answer.Data.Result) != 1 {
		t.Fatalf("status %d, %v: %.300s", status, err, body)
	}
	series := answer.Data.Result[0]
	if len(series.Metric) != 2 || series.Metric["cluster"] != "eu" {
		t.Errorf("stored labels are %v", series.Metric)
	}
	var gaps []float64
	found, last := 0, ""
	for i, v := range series.Values {
		if value := v[1].(string); value != last {
			found, last = found+1, value
		}
		if i > 0 {
			gaps = append(gaps, v[0].(float64)-series.Values[i-1][0].(float64))
		}
	}
	slices.Sort(gaps)
	n := len(gaps)
	if found < least || found > elections || n < 30 {
		t.Fatalf("%d runs of one replica, want at least %d, and at most one for each of %d elections: %v", found, least, elections, series.Values)
	}
	silent := pairFailover
	for _, s := range senders {
		silent = max(silent, pairFailover+s.stalled)
	}
	t.Logf("%d samples in %d runs; at most %.2f s between two, and %.2f s while nothing ran; %.2f s are allowed, and %.2f s more for that",
		n+1, found, gaps[n-2], gaps[n-1], silent.Seconds(), away.Seconds())
	if gaps[n-2] > silent.Seconds() || gaps[n-1] > silent.Seconds()+away.Seconds() {
		t.Errorf("%.2f s and %.2f s without a sample", gaps[n-2], gaps[n-1])
	}
}
