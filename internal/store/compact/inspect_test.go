package compact

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/repair"
	"github.com/shaledb/shale/internal/store/catalog"
	"github.com/shaledb/shale/internal/store/deletion"
)

func TestInspect(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.now = 20_000 * int64(day)
	inspect := func(wrong int, wants ...string) {
		t.Helper()
		var out bytes.Buffer
		got, err := Inspect(ctx, &out, w.bucket, InspectOptions{Check: true})
		if err != nil || got.Wrong != wrong {
			t.Fatalf("%d things are wrong, should be %d; %v\n%s", got.Wrong, wrong, err, out.String())
		}
		for _, want := range wants {
			if !strings.Contains(out.String(), want) {
				t.Errorf("lacks %q:\n%s", want, out.String())
			}
		}
	}
	put := func(name, data string) {
		t.Helper()
		if err := w.bucket.Put(ctx, name, strings.NewReader(data), int64(len(data))); err != nil {
			t.Fatal(err)
		}
	}
	inspect(1, "0 records, 0 blocks", "WRONG: seed: corrupt: the object is missing: the bucket was not made by Shale")
	w.plantSeed(t)
	inspect(0, "0 records, 0 blocks")
	ship := func() catalog.Block {
		s := w.shipment()
		for i := range 5 {
			s.addFloat("a", labelsOf(i), w.now-int64(i)*int64(time.Hour), math.Float64bits(1))
		}
		return s.ship(t)
	}
	ship()
	w.now += int64(time.Hour)
	ship()
	w.remove(t, catalog.Deletion{Deletion: deletion.Deletion{
		Signal: model.Metrics, Tenant: "a", Range: model.Always(),
		Matchers: []catalog.Matcher{{Name: "i", Op: model.MatchEqual, Value: "3"}},
	}})
	inspect(0, "counts, in order", "shipped", "3 records, 2 blocks", `deletion 1: {i="3"} of tenant a ever to ever`)
	w.now += 2 * int64(day)
	if _, err := w.compactor(t, w.c, nil).RunOnce(ctx); err != nil {
		t.Fatal(err)
	}
	put("uploads/lost.1", "lost")
	put("blocks/lost", "hello")
	put("notes/x", "hello")
	inspect(0, "replaced by merged-", "settled", "blocks/lost: 5 bytes, uploaded and not committed", "notes/x: 5 bytes, not an object of Shale")

	live := w.c.Live()[0]
	data, err := w.bucket.Get(ctx, catalog.ObjectName(live.ID))
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(data)
	damaged[20] ^= 1
	put(catalog.ObjectName(live.ID), string(damaged))
	inspect(1, "counts, damaged", "WRONG: block "+live.ID)
	put(catalog.ObjectName(live.ID), string(data[:100]))
	inspect(1, "is damaged: expected 569 bytes, got 100")
	if err := w.bucket.Delete(ctx, catalog.ObjectName(live.ID)); err != nil {
		t.Fatal(err)
	}
	inspect(1, "has no object")
	put("catalog/broken.json", "{")
	inspect(2, "catalog/broken.json")
	if err := w.bucket.Delete(ctx, "seed"); err != nil {
		t.Fatal(err)
	}
	inspect(3, "seed:", "seed unknown")
}

// TestInspectCompares writes records that do not match their blocks.
func TestInspectCompares(t *testing.T) {
	for what, change := range map[string]func(*catalog.Block){
		"series":  func(b *catalog.Block) { b.Series++ },
		"samples": func(b *catalog.Block) { b.Samples++ },
		"lines":   func(b *catalog.Block) { b.Lines++ },
		"times":   func(b *catalog.Block) { b.Range.Max++ },
		"tenant":  func(b *catalog.Block) { b.Tenants = []string{"b"} },
		"tenants": func(b *catalog.Block) { b.Tenants = []string{"a", "b"} },
		"keys":    func(b *catalog.Block) { b.KeyMin = b.KeyMax },
		"first":   func(b *catalog.Block) { b.FirstKey, b.LastKey = b.KeyMax, b.KeyMax },
		"source":  func(b *catalog.Block) { b.Node = "n2" },
		"signal":  func(b *catalog.Block) { b.Signal = model.Logs },
	} {
		w := newWorld(t, vfs.NewMem())
		w.now = 20_000 * int64(day)
		w.plantSeed(t)
		s := w.shipment()
		s.addFloat("a", labelsOf(1), w.now, 1)
		s.addFloat("a", labelsOf(2), w.now, 1)
		b, data := s.block(t)
		change(&b)
		if err := w.bucket.Put(ctx, catalog.ObjectName(b.ID), bytes.NewReader(data), int64(len(data))); err != nil {
			t.Fatal(err)
		}
		if err := commit(w.c, b); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if n, err := Inspect(ctx, &out, w.bucket, InspectOptions{Check: true}); err != nil || n.Wrong != 1 || !strings.Contains(out.String(), "WRONG: block") {
			t.Errorf("%s: %d things are wrong, %v\n%s", what, n.Wrong, err, out.String())
		}
	}
}

// TestRepairOfLostSeed: without the seed and its copy, intact blocks stay, and the seed is rebuilt from them.
func TestRepairOfLostSeed(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.now = 20_000 * int64(day)
	s := w.shipment()
	s.addFloat("a", labelsOf(1), w.now, 1)
	s.ship(t)
	inspect := func() *Inspection {
		t.Helper()
		found, err := Inspect(ctx, &bytes.Buffer{}, w.bucket, InspectOptions{Check: true})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	plan, _ := inspect().Repairs(ctx, w.bucket, time.Unix(0, w.now), true)
	for _, p := range plan {
		if p.Object != "seed" || p.Loss != "" {
			t.Fatalf("%s: %s: %s; loss %q", p.Object, p.Why, p.Action, p.Loss)
		}
		if err := p.Do(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := catalog.Seed(ctx, w.bucket); err != nil || got != seed || inspect().Wrong != 0 {
		t.Errorf("the seed is %x, %v", got, err)
	}
	for _, p := range plan {
		if err := p.Do(ctx); !errors.Is(err, repair.ErrOutdated) {
			t.Errorf("done twice: %v", err)
		}
	}
	// A block is not given up because of the seed of another bucket.
	for _, name := range []string{"seed", "copies/seed"} {
		if err := w.bucket.Delete(ctx, name); err != nil {
			t.Fatal(err)
		}
	}
	other := newWorld(t, vfs.NewMem())
	if _, err := catalog.EnsureSeed(ctx, other.bucket); err != nil {
		t.Fatal(err)
	}
	data, err := other.bucket.Get(ctx, "seed")
	if err == nil {
		err = w.bucket.Put(ctx, "seed", bytes.NewReader(data), int64(len(data)))
	}
	if err != nil {
		t.Fatal(err)
	}
	found := inspect()
	if plan, _ := found.Repairs(ctx, w.bucket, time.Unix(0, w.now), true); len(plan) != 0 || found.Wrong != 1 {
		t.Errorf("%d things are wrong, plan: %+v", found.Wrong, plan)
	}
}
