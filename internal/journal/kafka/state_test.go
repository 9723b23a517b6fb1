package kafka

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
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
