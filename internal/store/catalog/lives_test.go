package catalog

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/shaledb/shale/internal/bucket/fault"
	"github.com/shaledb/shale/internal/model"
)

// life ships a journal that others may ship too.
type life struct {
	c    *Catalog
	name string
	at   Progress
}

func newLife(c *Catalog, name string) *life { return &life{c, name, c.Progress("p1", 1)} }

// ship ships a block with the rows up to a record, or a part of them: then the coverage stays.
func (l *life) ship(t fataler, id string, to uint64, part bool) error {
	b := block(id, 0, 1)
	b.Node, b.Epoch, b.SeqLo, b.SeqHi, b.Sources = "p1", 1, l.at.To+1, to, nil
	if part {
		to = l.at.To
	}
	s := Ship{Blocks: []Block{b}, Covered: []Coverage{{Node: "p1", Epoch: 1, From: l.at.To + 1, To: to}}, Life: l.name, After: l.at.Ship}
	reached, err := l.c.Ship(ctx, s, uploader(t, l.c, new(int)))
	if err == nil {
		l.at = reached[0]
	}
	return err
}

// TestLivesOfOneProcess: two lives that share a catalogue fence each other off, also by a ship that moves no
// coverage.
func TestLivesOfOneProcess(t *testing.T) {
	b := memory(t)
	c := open(t, b, nil)
	old, young := newLife(c, "old"), newLife(c, "young")
	if err := young.ship(t, "a", 5, true); err != nil {
		t.Fatal(err)
	}
	for _, part := range []bool{true, false} {
		if err := old.ship(t, "b", 5, part); !errors.Is(err, ErrStale) {
			t.Errorf("part %t: %v", part, err)
		}
	}
	if err := young.ship(t, "c", 5, false); err != nil || young.at.To != 5 {
		t.Fatal(young.at, err)
	}
	// A third one that has read the catalogue goes on, and then the second one may not.
	third := newLife(open(t, b, nil), "third")
	if err := third.ship(t, "d", 9, true); err != nil {
		t.Fatal(err)
	}
	if err := young.ship(t, "e", 9, false); !errors.Is(err, ErrStale) || !strings.Contains(err.Error(), ".third/") {
		t.Fatal(err)
	}
	if got := ids(third.c.Live()); strings.Join(got, " ") != "a c d" {
		t.Errorf("live are %v", got)
	}
	two := Ship{Covered: []Coverage{{Node: "p1", Epoch: 1, From: 6}, {Node: "p2", Epoch: 1, From: 1}}, Life: "third", After: third.at.Ship}
	if _, err := third.c.Ship(ctx, two, nil); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("a life with two journals: %v", err)
	}
}

// TestLifeKnowsItsLostShips: ships of a life whose responses were lost, one after the other, do not stop it.
func TestLifeKnowsItsLostShips(t *testing.T) {
	b := memory(t)
	l := newLife(open(t, b, nil), "one")
	for i, id := range []string{"a", "b"} {
		b.Add(fault.Rule{Kind: fault.LostAck, Op: fault.PutIfAbsent, Prefix: RecordPrefix, Times: 1})
		b.Add(fault.Rule{Kind: fault.Fail, Op: fault.Get, Prefix: RecordPrefix, Skip: 1 + 2*i, Times: 1})
		if err := l.ship(t, id, uint64(5+i), false); !errors.Is(err, model.ErrTransient) {
			t.Fatal(id, err)
		}
		b.Clear()
	}
	if err := l.ship(t, "c", 9, false); err != nil || l.at.To != 9 {
		t.Fatal(l.at, err)
	}
	if got := ids(l.c.Live()); strings.Join(got, " ") != "a b c" {
		t.Errorf("live are %v", got)
	}
}

// TestLostShipStopsALife: if the last ship of a life is lost from the bucket, the life does not go on from
// the one before.
func TestLostShipStopsALife(t *testing.T) {
	b := memory(t)
	l := newLife(open(t, b, nil), "one")
	for i, id := range []string{"a", "b"} {
		if err := l.ship(t, id, uint64(5+5*i), false); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Delete(context.Background(), recordName(shipID(2))); err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(context.Background(), copyName(recordName(shipID(2)))); err != nil {
		t.Fatal(err)
	}
	other := newLife(open(t, b, nil), "two")
	l.c = other.c
	if other.at.To != 5 {
		t.Fatalf("covered is %+v", other.at)
	}
	if err := l.ship(t, "c", 15, false); !errors.Is(err, ErrStale) {
		t.Error(err)
	}
}
