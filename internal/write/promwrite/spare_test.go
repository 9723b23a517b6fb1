package promwrite

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/prometheus/prompb"

	"github.com/shaledb/shale/internal/model"
)

// TestTakeOver: the requests that a new leader sent before its election are stored after its next one. Those
// that cannot be stored then are stored after the one that follows, and an election changes nothing about
// the responses.
func TestTakeOver(t *testing.T) {
	for _, v := range []version{v1, v2} {
		p := newPair(t, 1<<20)
		at := func(replica string, second int64) *prompb.WriteRequest {
			return &prompb.WriteRequest{Timeseries: []prompb.TimeSeries{
				series(sample(nowMs+second*1000, float64(second)), "__name__", "up", "__replica__", replica, "cluster", "eu"),
				series(sample(nowMs+second*1000, float64(second)), "__name__", "plain", "second", fmt.Sprint(second)),
			}}
		}
		want := func(what, replica string, second int64, status int) {
			t.Helper()
			if w := p.send(t, v, at(replica, second)); w.Code != status || status == 204 && v == v2 && saysWritten(w) != "2" {
				t.Errorf("%s, %s: %d %s, %s written", v, what, w.Code, w.Body, saysWritten(w))
			}
		}
		stored := func(what string, n int) {
			t.Helper()
			if rows := p.Rows[`anonymous{__name__="up", cluster="eu"}`]; rows.Len() != n {
				t.Errorf("%s, %s: %d rows are stored, want %d: %v", v, what, rows.Len(), n, rows)
			}
		}
		want("the leader", "a", 0, 204)
		for second := range int64(4) {
			want("the other one", "b", second, 204) // the first has been reached
		}
		stored("before the election", 1)
		p.now = p.now.Add(30 * time.Second)
		p.Err = fmt.Errorf("%w: the disk is busy", model.ErrTransient)
		want("while nothing can be stored", "b", 4, 503)
		stored("while nothing can be stored", 1)
		p.Err = nil
		want("the new leader", "b", 4, 204)
		stored("after the election", 5)
		if n := p.dropped(t, "shale_ha_spare_stored_requests_total"); n != 3 {
			t.Errorf("%s: %v requests were taken over", v, n)
		}
		// A request that mixes replicas is not kept.
		mixed := at("a", 5)
		mixed.Timeseries = append(mixed.Timeseries, series(sample(nowMs+5000, 5), "__name__", "up", "__replica__", "c", "cluster", "eu"))
		if w := p.send(t, v, mixed); w.Code != 204 {
			t.Errorf("%s: mixed: %d %s", v, w.Code, w.Body)
		}
		p.now = p.now.Add(30 * time.Second)
		want("the leader from before", "a", 6, 204)
		stored("at the end", 6)
	}
}

// TestTakeOverIsNoLife: a leader that stops while its kept request cannot be stored is followed by the other
// replica, and what is tried again is not what keeps it elected.
func TestTakeOverIsNoLife(t *testing.T) {
	p := newPair(t, 1<<20)
	at := func(replica string, second int64) *prompb.WriteRequest {
		return &prompb.WriteRequest{Timeseries: []prompb.TimeSeries{
			series(sample(nowMs+second*1000, float64(second)), "__name__", "up", "__replica__", replica, "cluster", "eu"),
		}}
	}
	p.send(t, v1, at("a", 0))
	p.send(t, v1, at("b", 1))
	p.now = p.now.Add(30 * time.Second)
	c := p.elector.Judge("anonymous", []byte("eu"), []byte("b")).Cluster // and b stops
	p.Err = fmt.Errorf("%w: the disk is busy", model.ErrTransient)
	for range 6 {
		p.now = p.now.Add(5 * time.Second)
		p.TakeOver(t.Context(), c)
	}
	p.Err = nil
	p.send(t, v1, at("a", 31))
	if rows := p.Rows[`anonymous{__name__="up", cluster="eu"}`]; rows.Len() != 2 {
		t.Errorf("a is not stored again: %v", rows)
	}
}

// TestFutureSampleLeavesNoGap: one target of the leader has a clock that is ahead. A failover leaves no gap,
// also if the sample is one that can not be stored.
func TestFutureSampleLeavesNoGap(t *testing.T) {
	for _, ahead := range []int64{300, 100 * 365 * 86400} {
		p := newPair(t, 1<<20)
		send := func(replica string, second int64, status int) {
			t.Helper()
			w := p.send(t, v2, &prompb.WriteRequest{Timeseries: []prompb.TimeSeries{
				series(sample(nowMs+second*1000, float64(second)), "__name__", "up", "__replica__", replica, "cluster", "eu"),
				series(sample(nowMs+(second+ahead)*1000, 1), "__name__", "ahead", "__replica__", replica, "cluster", "eu"),
			}})
			if w.Code != status {
				t.Errorf("%s, %d s: %d %s", replica, second, w.Code, w.Body)
			}
		}
		status := 204
		if ahead > 3600 {
			status = 400
		}
		send("a", 0, status)
		for second := int64(5); second < 30; second += 5 {
			p.now = p.now.Add(5 * time.Second)
			send("b", second, 204)
		}
		p.now = p.now.Add(5 * time.Second)
		send("b", 30, status)
		if rows := p.Rows[`anonymous{__name__="up", cluster="eu"}`]; rows.Len() != 7 {
			t.Errorf("%d s ahead: %d rows are stored, want 7: %v", ahead, rows.Len(), rows.Times)
		}
	}
}

// TestRepeatedCountAsWritten: a new leader whose clock is slow gets the counts of what the one before has
// written. Prometheus takes it for a failure if nothing is.
func TestRepeatedCountAsWritten(t *testing.T) {
	p := newPair(t, 0)
	at := func(replica string, second int64) *prompb.WriteRequest {
		return &prompb.WriteRequest{Timeseries: []prompb.TimeSeries{
			series(sample(nowMs+second*1000, float64(second)), "__name__", "up", "__replica__", replica, "cluster", "eu"),
		}}
	}
	p.send(t, v2, at("a", 0))
	p.now = p.now.Add(30 * time.Second)
	if w := p.send(t, v2, at("b", -10)); w.Code != 204 || saysWritten(w) != "1" {
		t.Errorf("%d %s, %s written", w.Code, w.Body, saysWritten(w))
	}
	if rows := p.Rows[`anonymous{__name__="up", cluster="eu"}`]; rows.Len() != 1 {
		t.Errorf("stored %v", rows.Times)
	}
}
