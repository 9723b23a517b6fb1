package kafka

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestTopicMadeAgainOnce: a topic that was made again is noticed by its identity or by what brokers say to
// the client, and once if it is by both. What is said to the client of before counts no more.
func TestTopicMadeAgainOnce(t *testing.T) {
	s, first, second := &State{}, &kgo.Client{}, &kgo.Client{}
	s.client.Store(first)
	want := func(what, before, id string, want bool) {
		t.Helper()
		if got := s.another(before, id); got != want {
			t.Errorf("%s: another one is %t", what, got)
		}
	}
	want("at first", "", "a", false)
	want("as before", "a", "a", false)
	s.doubt(first, kerr.UnknownTopicOrPartition)
	want("a broker that starts", "a", "a", false)
	s.doubt(first, kerr.UnknownTopicID)
	want("both say so", "a", "b", true)
	s.client.Store(second)
	want("it was noticed", "b", "b", false)
	s.doubt(first, kerr.UnknownTopicID)
	want("an answer to the client of before", "b", "b", false)
	s.doubt(second, kerr.UnknownTopicID)
	want("made again before it was asked", "b", "b", true)
	s.unknown.Store(nil)
	want("the identity alone", "b", "c", true)
}

// TestForeignRecords: what was written by a process that still read the topic from before says nothing in the
// one that was made again. All others do, and so does a process that goes on with it.
func TestForeignRecords(t *testing.T) {
	var taken []string
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "foreign"})
	s := &State{
		o:    StateOptions{Take: func(key string, _ []byte, _ int64) { taken = append(taken, key) }},
		read: prometheus.NewCounter(prometheus.CounterOpts{Name: "read"}), foreign: counter,
	}
	before, now := [16]byte{1}, [16]byte{2}
	fetch := func(id [16]byte, records ...*kgo.Record) {
		s.take(kgo.Fetches{{Topics: []kgo.FetchTopic{{TopicID: id, Partitions: []kgo.FetchPartition{{Records: records}}}}}})
	}
	if h := s.headers(); h != nil {
		t.Errorf("a process that has read nothing names %v", h)
	}
	fetch(before, &kgo.Record{Key: []byte("old")})
	old := s.headers()
	s.told.Store(nil) // the topic was made again
	none := s.headers()
	fetch(now, &kgo.Record{Key: []byte("of none"), Headers: none}, &kgo.Record{Key: []byte("foreign"), Headers: old})
	fetch(now, &kgo.Record{Key: []byte("new"), Headers: s.headers()})
	fetch([16]byte{}, &kgo.Record{Key: []byte("of an old broker"), Headers: old})
	if got := strings.Join(taken, ", "); got != "old, of none, new, of an old broker" || testutil.ToFloat64(counter) != 1 {
		t.Errorf("it was told of %s; %v are foreign", got, testutil.ToFloat64(counter))
	}
}

// TestCounterShared: what several roles of a process write is in one counter.
func TestCounterShared(t *testing.T) {
	r, o := prometheus.NewPedanticRegistry(), prometheus.CounterOpts{Name: "records_total", Help: "Records."}
	counter(r, o).Inc()
	counter(r, o).Add(2)
	counter(nil, o).Inc()
	all, err := r.Gather()
	if err != nil || len(all) != 1 || all[0].GetMetric()[0].GetCounter().GetValue() != 3 {
		t.Errorf("the registry has %v: %v", all, err)
	}
}
