package ingest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/model/worldtest"
	"github.com/shaledb/shale/internal/store/topics"
)

// owner runs partitions of the rig, until the test ends.
func (r *rig) owner(reg prometheus.Registerer, change func(*Options)) *Owner {
	r.t.Helper()
	c := r.catalog()
	var all []int32
	for p := range r.epochs[0].Partitions {
		all = append(all, p)
	}
	w := Own(OwnerOptions{Metrics: NewOwnerMetrics(reg), Of: func(p int32, _ int) Options {
		o := r.options(c, p)
		o.Head.Registerer = reg
		if change != nil {
			change(&o)
		}
		return o
	}})
	r.t.Cleanup(w.Stop)
	w.Hold(all...)
	return w
}

// states returns what an owner does with its partitions.
func states(w *Owner) (all []State) {
	w.Each(func(_ int32, _ *Partition, s State, _ error) { all = append(all, s) })
	return all
}

// TestOwnerGoesOn: a partition that stops at a record is named with its offset, holds back no other, and goes
// on once it can.
func TestOwnerGoesOn(t *testing.T) {
	r := newRig(t, 2)
	reg := prometheus.NewPedanticRegistry()
	at := time.Now().UnixNano()
	r.log.append(0, sample("t", 0, 2, at, 1), true)
	r.log.append(1, sample("t", 1, 2, at, 1), true)
	r.log.append(1, sample("other", 1, 2, at, 1), false)
	w := r.owner(reg, nil)
	r.waitFor("the stop", func() bool { s := states(w); return s[0] == Ready && s[1] == Stopped })
	err := w.Ready()
	if !errors.Is(err, model.ErrTransient) || !strings.Contains(err.Error(), "1 of 2") || !strings.Contains(err.Error(), "partition 1 is stopped") || !strings.Contains(err.Error(), "offset 1") {
		t.Errorf("ready: %v", err)
	}
	if n, ok := gauge(t, reg, "shale_partition_covered_offset", "0"); !ok || n > 1 {
		t.Errorf("partition 0 is covered up to %v, %t", n, ok)
	}
	// An operator cannot do this to a topic; a gateway that sends labels again does so later in the log.
	r.log.mu.Lock()
	r.log.records[1] = r.log.records[1][:1]
	r.log.mu.Unlock()
	r.log.append(1, sample("other", 1, 2, at, 1), true)
	r.waitFor("the way on", func() bool { return w.Ready() == nil })
	w.Stop()
	if s := states(w); s[0] != Ended || s[1] != Ended {
		t.Errorf("the states are %v", s)
	}
	c := r.catalog()
	if a, b := c.Covered(topics.Node(0), 1).To, c.Covered(topics.Node(1), 1).To; a != 1 || b != 2 {
		t.Errorf("after the end %d and %d records are covered", a, b)
	}
}

// TestOldLabels: if the labels of a series are in blocks that are older than those that are usually read, the
// partition stops once, and then reads all.
func TestOldLabels(t *testing.T) {
	r := newRig(t, 1)
	c := r.catalog()
	now := time.Now()
	want := worldtest.Content{}
	push := func(tenant string, at time.Time, labels bool) {
		b := sample(tenant, 0, 1, at.UnixNano(), 1)
		want.Push(b)
		r.log.append(0, b, labels)
	}
	for i, at := range []time.Time{now.Add(-48 * time.Hour), now.Add(-time.Minute)} {
		o := r.options(c, 0)
		o.Head.Now = at.UnixNano
		p := r.open(o)
		push([]string{"old", "young"}[i], at, true)
		stop := r.running(p)
		r.waitFor("the ship", func() bool { return p.Shipped() == int64(i+1) })
		if err := errors.Join(stop(), p.Close()); err != nil {
			t.Fatal(err)
		}
	}
	push("young", now, false)
	push("old", now, false)
	w := r.owner(prometheus.NewPedanticRegistry(), nil)
	r.waitFor("the way on", func() bool { return w.Ready() == nil })
	w.Stop()
	if d := want.Diff(r.content(r.catalog())); d != "" {
		t.Error(d)
	}
}
