package promwrite

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/prompb"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/write"
)

// noNewSeries refuses the series of the name new while it is on, as the brake of a gateway does.
type noNewSeries struct{ on bool }

func (g *noNewSeries) Over(_ context.Context, b *model.Batch, over func(label int)) error {
	any := false
	for i := range b.Labels.Series {
		if g.on && string(b.Labels.At(i).Get("__name__")) == "new" {
			over(i)
			any = true
		}
	}
	if !any {
		return nil
	}
	return &model.LimitError{Limit: "retention.ms", Text: "few series are created"}
}

// TestRefusedRowsAreNotWritten: a leader stores its known series, is to repeat its new ones, and dies before
// it does. The other replica has had a success for them, so they are stored as soon as it is elected.
func TestRefusedRowsAreNotWritten(t *testing.T) {
	for _, v := range []version{v1, v2} {
		p := newPair(t, 1<<20)
		g := &noNewSeries{on: true}
		p.Handler = NewElecting(write.New(write.Options{Seed: seed, Head: p.Store, Journal: p.Store, Limits: testLimits(), Groups: g, Now: func() int64 { return nowMs * 1e6 }}), p.elector, nil)
		send := func(replica string, second int64, status int) {
			t.Helper()
			p.now = time.UnixMilli(nowMs + second*1000)
			if w := p.send(t, v, &prompb.WriteRequest{Timeseries: []prompb.TimeSeries{
				series(sample(nowMs+second*1000, 1), "__name__", "known", "__replica__", replica, "cluster", "eu"),
				series(sample(nowMs+second*1000, 1), "__name__", "new", "__replica__", replica, "cluster", "eu"),
			}}); w.Code != status {
				t.Errorf("%s: %s at %d s gets %d %s", v, replica, second, w.Code, w.Body)
			}
		}
		send("a", 0, 503)
		send("b", 1, 204)
		send("a", 20, 503) // of which the known series is a sign of life
		send("b", 21, 204)
		send("b", 40, 204)
		g.on = false
		send("b", 50, 204)
		rows := p.Rows[`anonymous{__name__="new", cluster="eu"}`]
		if rows == nil {
			t.Fatalf("%s: stored %v", v, p.Rows)
		}
		got := slices.Sorted(slices.Values(rows.Times))
		for i := range got {
			got[i] = got[i]/1e9 - nowMs/1000
		}
		if !slices.Equal(got, []int64{1, 21, 40, 50}) {
			t.Errorf("%s: the new series has the seconds %v", v, got)
		}
	}
}

// TestClockOfTheLeader: a leader whose clock is so far ahead that nothing of it is stored does not keep the
// other replica away. One that only repeats what was stored before stays.
func TestClockOfTheLeader(t *testing.T) {
	for _, ahead := range []int64{3600, 100 * 365 * 86400} {
		p := newPair(t, 1<<20)
		limits := testLimits()
		limits.MaxFuture = 10 * time.Minute
		p.Handler = NewElecting(write.New(write.Options{Seed: seed, Head: p.Store, Journal: p.Store, Limits: limits, Now: func() int64 { return p.now.UnixNano() }}), p.elector, nil)
		for range 20 {
			for i, replica := range []string{"a", "b"} {
				at := p.now.UnixMilli() + int64(1-i)*ahead*1000
				p.send(t, v2, &prompb.WriteRequest{Timeseries: []prompb.TimeSeries{series(sample(at, 1), "__name__", "up", "__replica__", replica, "cluster", "eu")}})
			}
			p.now = p.now.Add(5 * time.Second)
		}
		rows := p.Rows[`anonymous{__name__="up", cluster="eu"}`]
		if rows == nil || rows.Len() != 20 {
			t.Errorf("%d s ahead: stored %v", ahead, p.Rows)
		}
	}
	p := newPair(t, 0)
	send := func(replica string, ms int64) {
		p.send(t, v2, &prompb.WriteRequest{Timeseries: []prompb.TimeSeries{series(sample(ms, 1), "__name__", "up", "__replica__", replica, "cluster", "eu")}})
	}
	send("a", nowMs)
	p.now = p.now.Add(30 * time.Second)
	for range 10 {
		p.now = p.now.Add(10 * time.Second)
		send("b", nowMs-1)
		send("a", p.now.UnixMilli())
	}
	if rows := p.Rows[`anonymous{__name__="up", cluster="eu"}`]; rows.Len() != 1 {
		t.Errorf("a leader that repeats is followed by another one: %v", rows.Times)
	}
}
