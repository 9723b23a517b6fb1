package gateway

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	bucketfs "github.com/shaledb/shale/internal/bucket/fs"
	"github.com/shaledb/shale/internal/journal/state"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/topics"
)

// TestShipLog: the log of ships says of each partition what the catalogue says, and later reads only what is
// new. It does not read on once it knows all that it was asked for, or what was committed before that began.
func TestShipLog(t *testing.T) {
	b, err := bucketfs.New(vfs.NewMem(), "/b")
	if err != nil {
		t.Fatal(err)
	}
	now := int64(1_000_000)
	c, err := catalog.Open(t.Context(), b, catalog.Options{Now: func() int64 { return now }})
	if err != nil {
		t.Fatal(err)
	}
	cover := func(partition int32, from, to uint64, closed bool) {
		t.Helper()
		now++
		s := catalog.Ship{Covered: []catalog.Coverage{{Node: topics.Node(partition), Epoch: 3, From: from, To: to, Closed: closed}}}
		if _, err := c.Ship(t.Context(), s, nil); err != nil {
			t.Fatal(err)
		}
	}
	cover(7, 1, 9, false) // an old one
	middle := now + 1
	for n := range uint64(3 * atOnce) {
		cover(int32(n%3), n/3+1, n/3+1, false)
	}
	at := func(partition int32) state.Partition { return state.Partition{Epoch: 3, Number: partition} }
	all := []state.Partition{at(0), at(1), at(2)}
	check := func(s *shipLog, of ...state.Partition) {
		t.Helper()
		for _, p := range of {
			if got, want := s.covered[p], c.Covered(topics.Node(p.Number), p.Epoch); got != want {
				t.Errorf("%v: %+v, want %+v", p, got, want)
			}
		}
	}
	s := newShipLog(b)
	if err := s.poll(t.Context(), all, 0); err != nil {
		t.Fatal(err)
	}
	check(s, all...)
	if s.covered[at(7)].To != 0 {
		t.Error("it has read more than it was asked for")
	}
	cover(1, atOnce+1, atOnce+5, true)
	cover(8, 1, 2, false)
	if err := s.poll(t.Context(), all, 0); err != nil {
		t.Fatal(err)
	}
	check(s, append(all, at(8))...)
	for _, x := range []struct {
		since int64
		found bool
	}{{0, true}, {middle, true}, {now - 1, false}} {
		s := newShipLog(b)
		if err := s.poll(t.Context(), append(all, at(7), at(9)), x.since); err != nil {
			t.Fatal(err)
		}
		if (s.covered[at(7)].To == 9) != x.found {
			t.Errorf("since %d: %+v", x.since, s.covered[at(7)])
		}
	}
}
