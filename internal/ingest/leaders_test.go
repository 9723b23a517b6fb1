package ingest

import (
	"context"
	"testing"

	"github.com/shaledb/shale/internal/journal/kafka"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/topics"
)

// TestLeaders: the leader of a record is that of the last change before it.
func TestLeaders(t *testing.T) {
	var l leaders
	for seq, epoch := range []int32{4, 4, 4, 7, 7, -1, 9} {
		l.note(uint64(10+seq), epoch)
	}
	for seq, want := range map[uint64]uint64{9: 0, 10: 5, 12: 5, 13: 8, 14: 8, 15: 0, 16: 10, 99: 10} {
		if got := l.of(seq); got != want {
			t.Errorf("record %d: got leader %d, expected %d", seq, got, want)
		}
	}
	for n := range int32(3 * mostLed) {
		l.note(uint64(100+n), n)
	}
	if got := l.of(100 + 3*mostLed - 1); got != 3*mostLed || len(l.all) > mostLed {
		t.Errorf("got leader %d of %d that are remembered", got, len(l.all))
	}
}

// TestLeaderAcross: a ship names the leader of its last record, and whoever goes on with the partition asks
// brokers for that. It does not if an operator has given records up since.
func TestLeaderAcross(t *testing.T) {
	r := newRig(t, 1)
	c := r.catalog()
	var asked []*int32
	options := func() Options {
		o := r.options(c, 0)
		o.open = func(ctx context.Context, ro kafka.ReaderOptions) (reader, error) {
			asked = append(asked, ro.FromEpoch)
			return r.log.open(ctx, ro)
		}
		return o
	}
	r.log.leader = 6
	r.log.append(0, sample("t", 0, 1, 1, 1), true)
	p := r.open(options())
	stop := r.running(p)
	r.waitFor("a ship", func() bool { return p.Shipped() == 1 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if got := c.Covered(topics.Node(0), 1).Leaders; got != 7 {
		t.Errorf("the ship has leader %d, expected 7", got)
	}
	if _, err := c.Ship(t.Context(), catalog.Ship{Covered: []catalog.Coverage{{Node: topics.Node(0), Epoch: 1, From: 2, To: 1, Leaders: 9}}}, nil); err != nil {
		t.Fatal(err)
	}
	p = r.open(options())
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Ship(t.Context(), catalog.Ship{Covered: []catalog.Coverage{{Node: topics.Node(0), Epoch: 1, From: 2, To: 2}}}, nil); err != nil {
		t.Fatal(err)
	}
	p = r.open(options())
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if len(asked) != 3 || asked[0] != nil || asked[1] == nil || *asked[1] != 8 || asked[2] != nil {
		t.Errorf("asked for the leaders %v", asked)
	}
}
