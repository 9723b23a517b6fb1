package catalog

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/shaledb/shale/internal/bucket/fault"
	"github.com/shaledb/shale/internal/model"
)

// shipsOf returns how many attempts to commit a ship had a result.
func shipsOf(c *Catalog, result string) int {
	var m dto.Metric
	if err := c.metrics.ships.WithLabelValues(result).Write(&m); err != nil {
		panic(err)
	}
	return int(m.Counter.GetValue())
}

// uploader writes objects of blocks, and counts them.
func uploader(t fataler, c *Catalog, n *int) func(context.Context, string) error {
	return func(_ context.Context, id string) error {
		*n++
		put(t, c.b, ObjectName(id), "block "+id)
		return nil
	}
}

// TestZombie: a process that slept while another one has shipped its journal may not ship. When it has read
// how far the journal is, it may.
func TestZombie(t *testing.T) {
	b := memory(t)
	zombie := open(t, b, nil)
	ship(t, zombie, block("a", 1, 2))
	old := shipOf(zombie, block("c", 5, 6))
	heir := open(t, b, nil)
	ship(t, heir, block("b", 3, 4))
	uploads := 0
	for range 2 {
		_, err := zombie.Ship(ctx, *old, uploader(t, zombie, &uploads))
		if !errors.Is(err, ErrStale) || !strings.Contains(err.Error(), "n1/0") || !strings.Contains(err.Error(), shipID(2)) {
			t.Fatal(err)
		}
	}
	if got := ids(zombie.Live()); !slices.Equal(got, []string{"a", "b"}) || shipsOf(zombie, shipStale) != 2 {
		t.Errorf("live are %v, %d times stale", got, shipsOf(zombie, shipStale))
	}
	if _, err := zombie.Ship(ctx, *shipOf(zombie, block("c", 5, 6)), uploader(t, zombie, &uploads)); err != nil {
		t.Error(err)
	}
	if got := zombie.Live(); !slices.Equal(ids(got), []string{"a", "b", "c"}) || got[2].Order() != 3 || uploads != 1 {
		t.Errorf("live are %v after %d uploads", got, uploads)
	}
	_, err := heir.Ship(ctx, Ship{Blocks: []Block{block("d", 1, 2)}}, uploader(t, heir, &uploads))
	if !errors.Is(err, model.ErrInvalid) {
		t.Errorf("a ship that covers nothing: %v", err)
	}
}

// TestShipIsOne: all blocks of a ship appear with one record, in one order. Blocks that are committed are
// left out of later ships, and a ship may move nothing but the coverage.
func TestShipIsOne(t *testing.T) {
	b := memory(t)
	c := open(t, b, nil)
	uploads := 0
	logs := block("l", 1, 2)
	logs.Signal = model.Logs
	if _, err := c.Ship(ctx, *shipOf(c, block("a", 1, 2), block("b", 3, 4), logs), uploader(t, c, &uploads)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Ship(ctx, *shipOf(c, block("b", 3, 4), block("d", 5, 6)), uploader(t, c, &uploads)); err != nil {
		t.Fatal(err)
	}
	idle := Ship{Covered: []Coverage{{Node: "n1", From: 19, To: 20, Appended: 7, Closed: true}, {Node: "n2", From: 1}}}
	for range 2 { // the second has nothing left to say
		if _, err := c.Ship(ctx, idle, uploader(t, c, &uploads)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []*Catalog{c, open(t, b, nil)} {
		orders := map[string]uint64{}
		for _, b := range c.Live() {
			orders[b.ID] = b.Order()
		}
		if len(orders) != 4 || orders["a"] != 1 || orders["b"] != 1 || orders["l"] != 1 || orders["d"] != 2 {
			t.Errorf("orders %v", orders)
		}
		if v := c.Covered("n1", 0); v.To != 20 || v.Appended != 7 || !v.Closed || c.Covered("n2", 0).To != 0 || c.lastShip != 3 {
			t.Errorf("covered are %+v and %+v by %d ships", v, c.Covered("n2", 0), c.lastShip)
		}
	}
	if uploads != 4 || len(objectsBelow(t, b, UploadPrefix)) != 0 {
		t.Errorf("%d uploads, markers %v", uploads, objectsBelow(t, b, UploadPrefix))
	}
}

// TestLostShipIsNotRepeated: a ship whose response was lost is merged and its objects are collected, before
// its process, or the next one, ships the blocks once more. They do not come back.
func TestLostShipIsNotRepeated(t *testing.T) {
	for _, restart := range []bool{false, true} {
		now := int64(1e18)
		b := memory(t)
		c, other := openWith(t, b, nil, &now), openWith(t, b, nil, &now)
		uploads := 0
		lost := shipOf(c, block("x", 1, 2))
		b.Add(fault.Rule{Kind: fault.LostAck, Op: fault.PutIfAbsent, Prefix: RecordPrefix, Times: 1})
		b.Add(fault.Rule{Kind: fault.Fail, Op: fault.Get, Prefix: RecordPrefix, Skip: 1, Times: 1})
		if _, err := c.Ship(ctx, *lost, uploader(t, c, &uploads)); !errors.Is(err, model.ErrTransient) || uploads != 1 {
			t.Fatal(uploads, err)
		}
		refresh(t, other)
		merge(t, other, merged("m", 1, 2), "x")
		for i, id := range []string{"y", "z"} {
			next := Ship{Blocks: completed([]Block{block(id, 3, 4)}), Covered: []Coverage{{Node: "n2", From: uint64(i) + 1, To: uint64(i) + 1}}}
			if _, err := other.Ship(ctx, next, uploader(t, other, new(int))); err != nil {
				t.Fatal(err)
			}
		}
		for range 4 {
			now += int64(20 * time.Hour)
			collect(t, other)
		}
		if got := objectsBelow(t, b, BlockPrefix); slices.Contains(got, ObjectName("x")) || !slices.Contains(objectsBelow(t, b, RecordPrefix), shipA) {
			t.Fatalf("restart %v: there are %v and %v", restart, got, objectsBelow(t, b, RecordPrefix))
		}
		if restart {
			c = openWith(t, b, nil, &now)
		}
		if _, err := c.Ship(ctx, *lost, uploader(t, c, &uploads)); restart != errors.Is(err, ErrStale) || err != nil && !restart {
			t.Fatalf("restart %v: %v", restart, err)
		}
		lost.Covered[0].From, lost.Covered[0].To = 10, 9 // as a process reads at its start
		if _, err := c.Ship(ctx, *lost, uploader(t, c, &uploads)); err != nil {
			t.Fatal(err)
		}
		if got := ids(c.Live()); slices.Contains(got, "x") || uploads != 1 || c.lastShip != 13 {
			t.Errorf("restart %v: live are %v after %d uploads and %d ships", restart, got, uploads, c.lastShip)
		}
	}
}

// TestPoll finds the ships of others, with one request if there are none, and lists when the last listing is
// old.
func TestPoll(t *testing.T) {
	now := int64(1e18)
	b := memory(t)
	i := &interrupted{Bucket: b, then: func() {}}
	c, other := openWith(t, i, nil, &now), openWith(t, b, nil, &now)
	poll := func() int {
		i.left = 0
		if err := c.Poll(ctx); err != nil {
			t.Fatal(err)
		}
		return -i.left
	}
	if n := poll(); n != 1 {
		t.Errorf("%d requests for nothing", n)
	}
	for _, id := range []string{"a", "b", "c"} {
		ship(t, other, block(id, 1, 2))
	}
	if n := poll(); n != 5 || len(c.Live()) != 3 {
		t.Errorf("%d requests for %v", n, ids(c.Live()))
	}
	if _, err := other.Delete(ctx, deletion("a", 1, 2)); err != nil {
		t.Fatal(err)
	}
	if poll(); len(c.view.Load().deletions) != 0 {
		t.Error("a request for the next ship has found a deletion")
	}
	if err := c.PollDeletions(ctx); err != nil || len(c.view.Load().deletions) != 1 {
		t.Errorf("a deletion is not found: %v", err)
	}
	if _, err := other.Delete(ctx, deletion("a", 1, 2)); err != nil {
		t.Fatal(err)
	}
	ship(t, other, block("d", 3, 4))
	if poll(); len(c.view.Load().deletions) != 2 || len(c.Live()) != 4 {
		t.Error("a ship is known, and the deletion before it is not")
	}
	if _, err := other.Delete(ctx, deletion("a", 1, 2)); err != nil {
		t.Fatal(err)
	}
	now += int64(pollFor) + 1
	if poll(); len(c.view.Load().deletions) != 3 {
		t.Error("there was no listing")
	}
}

// TestNumberOfLostShip: a process that does not know of a lost ship takes its number. Another one that did
// know it drops what it knew, and the block of the lost ship is unknown.
func TestNumberOfLostShip(t *testing.T) {
	now := int64(1e18)
	b := memory(t)
	c := openWith(t, b, nil, &now)
	ship(t, c, block("a", 1, 2))
	remove(t, b, shipA, "copies/"+shipA)
	refresh(t, c)
	if !slices.Equal(lostOf(c), []string{shipID(1)}) {
		t.Fatalf("lost are %v", lostOf(c))
	}
	ship(t, openWith(t, b, nil, &now), block("b", 3, 4))
	refresh(t, c)
	collect(t, c)
	if got := ids(c.Live()); !slices.Equal(got, []string{"b"}) || len(c.lost) != 0 || len(c.strays) != 1 {
		t.Errorf("live are %v, lost %v, strays %v", got, lostOf(c), c.strays)
	}
}
