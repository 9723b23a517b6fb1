package head

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/shaledb/shale/internal/model"
)

// TestShipsGoTogether: windows of both signals are one ship. Late rows that reach into them are the next one,
// as all blocks of a ship count as equally new.
func TestShipsGoTogether(t *testing.T) {
	ctx := context.Background()
	r, b, _ := newAwayRig(t)
	r.push("a", 0, 5, r.now, 1)
	r.pushLines("b", 0, 3, 2, r.now, plainLine)
	b.failures = away(1)
	if err := r.head.Ship(ctx); err == nil {
		t.Fatal("the bucket was not away")
	}
	if b.ships != 0 || len(b.blocks) != 0 {
		t.Fatalf("%d blocks are in the bucket", len(b.blocks))
	}
	r.push("a", 0, 5, r.now, 2) // late, since the window is marked
	r.must(r.head.Ship(ctx))
	if b.ships != 2 || len(b.blocks) != 3 || b.covered != r.head.Covered() {
		t.Errorf("%d ships with %d blocks cover %d of %d batches", b.ships, len(b.blocks), b.covered, r.head.Covered())
	}
	// The first ship covers only the batches before the late rows.
	if want := []bool{false, false}; !slices.Equal(b.rest, want) {
		t.Errorf("the ships leave rows of what they cover in the head: %v, expected %v", b.rest, want)
	}
	r.expect("a", 0, 5, map[int64]float64{r.now: 2})
	r.noLeftovers()
}

// TestBadBlockGoesAlone: of groups that go together, one that the bucket refuses does not stop the others.
func TestBadBlockGoesAlone(t *testing.T) {
	ctx := context.Background()
	r, b, made := newAwayRig(t)
	r.push("a", 0, 5, r.now, 1)
	r.pushLines("b", 0, 3, 2, r.now, plainLine)
	bad := fmt.Errorf("%w: the file does not check out", model.ErrCorrupt)
	b.failures = []error{bad, bad} // of the ship of both, and of that of the samples
	if err := r.head.Ship(ctx); !errors.Is(err, model.ErrCorrupt) {
		t.Fatal(err)
	}
	if b.ships != 1 || len(b.blocks) != 1 {
		t.Errorf("%d ships with %d blocks", b.ships, len(b.blocks))
	}
	if !b.rest[0] || !r.head.coversMore(r.head.Covered(), nil) {
		t.Error("the ship counts as whole, though a block of it is not in the bucket")
	}
	r.must(r.head.Ship(ctx))
	if b.rest[1] || r.head.coversMore(r.head.Covered(), nil) {
		t.Error("the last ship counts as a part")
	}
	if b.ships != 2 || len(b.blocks) != 2 || made() != 3 {
		t.Errorf("%d ships with %d blocks, of which %d were made", b.ships, len(b.blocks), made())
	}
	r.expect("a", 0, 5, map[int64]float64{r.now: 1})
	r.noLeftovers()
}
