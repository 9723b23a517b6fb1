package catalog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/bucket/fault"
	"github.com/shaledb/shale/internal/model"
	"github.com/shaledb/shale/internal/racetest"
)

func TestShip(t *testing.T) {
	b := memory(t)
	c := open(t, b, nil)
	uploads := 0
	ship := func(c *Catalog, id string, err error) error {
		_, err = c.Ship(ctx, *shipOf(c, block(id, 0, 1)), func(context.Context, string) error {
			uploads++
			put(t, b, ObjectName(id), "x")
			return err
		})
		return err
	}
	broken := fmt.Errorf("%w: broken", model.ErrTransient)
	if err := ship(c, "a", broken); !errors.Is(err, broken) || len(c.Live()) != 0 {
		t.Fatal(err)
	}
	for range 2 { // the second time it is known
		if err := ship(c, "a", nil); err != nil || uploads != 2 {
			t.Fatal(uploads, err)
		}
	}
	// A block that a merge has replaced does not come back, nor is its object made again.
	m := block("m", 0, 1)
	m.OrderHi = math.MaxInt32
	merge(t, c, m, "a")
	if err := ship(c, "a", nil); err != nil || uploads != 2 || !slices.Equal(ids(c.Live()), []string{"m"}) {
		t.Fatal(uploads, err)
	}
	// A record whose response was lost is found, and keeps its number.
	b.Add(fault.Rule{Kind: fault.LostAck, Op: fault.PutIfAbsent, Prefix: "catalog/", Times: 1})
	b.Add(fault.Rule{Kind: fault.Fail, Op: fault.Get, Prefix: "catalog/", Skip: 1, Times: 1})
	if err := ship(c, "z", nil); !errors.Is(err, model.ErrTransient) || uploads != 3 {
		t.Fatal(uploads, err)
	}
	if err := ship(c, "y", nil); err != nil {
		t.Fatal(err)
	}
	if err := ship(c, "z", nil); err != nil || uploads != 4 {
		t.Fatal(uploads, err)
	}
	orders := map[string]uint64{}
	for _, b := range c.Live() {
		orders[b.ID] = b.Order()
	}
	// The last ship of a had no block, and moved the coverage.
	if orders["m"] != math.MaxInt32 || orders["z"] != orders["m"]+2 || orders["y"] != orders["m"]+3 {
		t.Fatalf("%v", orders)
	}
	if len(c.uploading) != 0 {
		t.Errorf("%v", c.uploading)
	}
}

// TestUploadThatPanics: the collector is not kept away from a block whose upload could not be announced.
func TestUploadThatPanics(t *testing.T) {
	b := &meanwhile{Bucket: memory(t)}
	c := open(t, b, nil)
	b.afterList = func(string) { panic("a fault") }
	err := model.Caught(func() error {
		_, err := c.Uploading(ctx, "x")
		return err
	})
	if model.StackOf(err) == "" || len(c.uploading) != 0 {
		t.Errorf("%v, uploading %v", err, c.uploading)
	}
	if left := objectsBelow(t, b.Bucket, UploadPrefix); len(left) != 0 {
		t.Errorf("the markers %v are left", left)
	}
}

// TestManyRecords measures the memory of a catalogue, and checks that records are read in parallel.
func TestManyRecords(t *testing.T) {
	racetest.SkipSerial(t)
	b := memory(t)
	c := open(t, b, nil)
	const records = 2000
	for i := range records {
		blk := block(fmt.Sprintf("%032x-20260101T000000Z-metrics", i), int64(i), int64(i)+9)
		blk.Tenants = nil
		for k := range 20 {
			blk.Tenants = append(blk.Tenants, fmt.Sprintf("tenant-%04d", (i+k*7)%500))
		}
		blk.TenantCount = 0
		if err := c.put(ctx, &commit{id: blk.ID, blocks: completed([]Block{blk})}); err != nil {
			t.Fatal(err)
		}
	}
	const slow = 10 * time.Millisecond
	b.Add(fault.Rule{Kind: fault.Slow, Op: fault.Get, Delay: slow})
	began := time.Now()
	again := open(t, b, nil)
	t.Logf("%d records, with %s for each read, in %s; %d bytes of memory a record", len(again.records), slow, time.Since(began), again.MemoryBytes()/records)
	if len(again.Live()) != records {
		t.Fatalf("%d blocks", len(again.Live()))
	}
	if got := again.MemoryBytes(); got > records*4000 {
		t.Errorf("%d bytes", got)
	}
}
