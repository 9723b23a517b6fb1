package cluster

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// TestReport gives the table of the report: 200 instances of 6 GB became 33 nodes of 1.5 TB.
func TestReport(t *testing.T) {
	memory, err := FindNode("memory")
	if err != nil {
		t.Fatal(err)
	}
	ssd, err := FindNode("ssd")
	if err != nil {
		t.Fatal(err)
	}
	before := NewPlan(memory, Need{Bytes: 1.2e12})
	after := NewPlan(ssd, Need{Bytes: 49.5e12, Gbps: 500})
	line := func(p Plan) string {
		return fmt.Sprintf("%d nodes, %.1f TB, %.0f of %.0f Gbps, $%.0f, by %s", p.Nodes, p.Bytes/1e12, p.Need.Gbps, p.Gbps, p.Dollars, p.Bound())
	}
	if got, want := line(before), "200 nodes, 1.2 TB, 0 of 200 Gbps, $8860, by bytes"; got != want {
		t.Errorf("before: got %s, expected %s", got, want)
	}
	if got, want := line(after), "33 nodes, 49.5 TB, 500 of 528 Gbps, $8708, by bytes"; got != want {
		t.Errorf("after: got %s, expected %s", got, want)
	}
	if after.ByGbps != 32 {
		t.Errorf("the network needs %d nodes, expected 32", after.ByGbps)
	}
}

func TestTheLargestNeedDecides(t *testing.T) {
	n := Node{Bytes: 100, Gbps: 10, IOPS: 1000}
	for _, c := range []struct {
		need  Need
		nodes int
		bound string
	}{
		{Need{Bytes: 950, Gbps: 10, IOPS: 1000}, 10, "bytes"},
		{Need{Bytes: 100, Gbps: 51, IOPS: 1000}, 6, "network"},
		{Need{Bytes: 100, Gbps: 10, IOPS: 3001}, 4, "disk reads"},
	} {
		if p := NewPlan(n, c.need); p.Nodes != c.nodes || p.Bound() != c.bound {
			t.Errorf("%+v: %d nodes by %s, expected %d by %s", c.need, p.Nodes, p.Bound(), c.nodes, c.bound)
		}
	}
}

// TestLoss: at a hit ratio of 90 %, the loss of one of 33 nodes makes 27 % more requests, and with a jump
// hash more than 5 times as many.
func TestLoss(t *testing.T) {
	ssd, err := FindNode("ssd")
	if err != nil {
		t.Fatal(err)
	}
	p := NewPlan(ssd, Need{Bytes: 49.5e12, Gbps: 500})
	l := p.Lose(Load{Reads: 1000, HitRatio: 0.9, ValueBytes: 500e3})
	near := func(name string, got, want float64) {
		if math.Abs(got-want) > 0.01*want {
			t.Errorf("%s: got %g, expected %g", name, got, want)
		}
	}
	near("requests", l.Gets, 100)
	near("more", l.MoreGets, 1.27)
	near("more with a jump hash", l.JumpMoreGets, 5.64)
	near("refill", l.RefillGets, 3e6)
	near("dollars", l.RefillDollars, 1.2)
	if l.Refill != 750*time.Second {
		t.Errorf("refill takes %s, expected 12m30s", l.Refill)
	}
	if l = p.Lose(Load{HitRatio: 0.9, ValueBytes: 500e3, GetBudget: 1000}); l.Refill != 3000*time.Second {
		t.Errorf("refill at 1,000 requests a second takes %s, expected 50m", l.Refill)
	}
}
