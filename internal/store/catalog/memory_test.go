package catalog

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/bucket/fault"
)

// collectAway lets a process collect block a, whose record its memory cannot forget, and then work for longer
// than lists of collected records are kept.
func collectAway(t *testing.T, now *int64, b, mem *fault.Bucket, fails int) *Catalog {
	c := openWith(t, b, mem, now)
	ship(t, c, block("a", 1, 2))
	ship(t, c, block("b", 3, 4))
	merge(t, c, merged("c", 1, 2), "a")
	*now += int64(25 * time.Hour)
	mem.Add(fault.Rule{Kind: fault.Fail, Op: fault.Delete, Times: fails})
	collect(t, c)
	for range 2*int(listsKept/(24*time.Hour)) + 2 {
		*now += int64(24 * time.Hour)
		refresh(t, c)
		collect(t, c)
	}
	if got := objectsBelow(t, b, CollectedPrefix); len(got) > 0 {
		t.Fatalf("old lists are left: %v", got)
	}
	return c
}

// TestForgetIsRetried: a memory that could not forget a collected record forgets it later. If it never can,
// the next process knows that the memory is old.
func TestForgetIsRetried(t *testing.T) {
	for _, fails := range []int{1, math.MaxInt32} {
		now := int64(1e18)
		b, mem := memory(t), memory(t)
		collectAway(t, &now, b, mem, fails)
		mem.Clear()
		if got := objectsBelow(t, mem, RecordPrefix); len(got) != 2 && fails == 1 {
			t.Errorf("the memory has %v", got)
		}
		c := openWith(t, b, mem, &now)
		if len(c.lost) > 0 {
			t.Errorf("%d failures: a false loss of %v", fails, lostOf(c))
		}
		if got := objectsBelow(t, mem, RecordPrefix); len(got) != 2 {
			t.Errorf("%d failures: the memory has %v in the end", fails, got)
		}
	}
}

// TestRememberIsRetried: a record that the memory could not take is remembered later, so that its loss is
// noticed after a restart.
func TestRememberIsRetried(t *testing.T) {
	now := int64(1e18)
	b, mem := memory(t), memory(t)
	c := openWith(t, b, mem, &now)
	mem.Add(fault.Rule{Kind: fault.Fail, Op: fault.Put, Times: 1})
	ship(t, c, block("a", 1, 2))
	now += int64(2 * time.Hour)
	refresh(t, c)
	remove(t, b, shipA, "copies/"+shipA)
	if c = openWith(t, b, mem, &now); !slices.Equal(lostOf(c), []string{shipID(1)}) {
		t.Errorf("lost are %v", lostOf(c))
	}
}

// TestLongAbsenceIsLoggedOnce: a process that was away for long logs one line about the records that are
// gone.
func TestLongAbsenceIsLoggedOnce(t *testing.T) {
	now := int64(1e18)
	b, mem := memory(t), memory(t)
	c := openWith(t, b, mem, &now)
	for i := range 50 {
		ship(t, c, block(fmt.Sprint("b", i), 1, 2))
	}
	remove(t, b, objectsBelow(t, b, "")...)
	now += 2 * int64(listsKept)
	var log bytes.Buffer
	if _, err := Open(ctx, b, Options{Memory: mem, Now: func() int64 { return now }, Logger: slog.New(slog.NewTextHandler(&log, nil))}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), "away for too long"); n != 1 || !strings.Contains(log.String(), "count=50") {
		t.Errorf("%d lines:\n%s", n, log.String())
	}
}

// TestLossDuringHeal: a record is lost while its missing copy is written. The copy stays: it is what is left
// of the record.
func TestLossDuringHeal(t *testing.T) {
	now := int64(1e18)
	b := memory(t)
	i := &interrupted{Bucket: b}
	c := openWith(t, i, nil, &now)
	ship(t, c, block("a", 1, 2))
	remove(t, b, "copies/"+shipA)
	refresh(t, c)
	i.left, i.then = 1, func() { remove(t, b, shipA) }
	if err := c.heal(ctx); err != nil {
		t.Fatal(err)
	}
	if other := openWith(t, b, nil, &now); !slices.Equal(lostOf(other), []string{shipID(1)}) || !other.Has("a") {
		t.Errorf("another process has lost %v, and knows %v", lostOf(other), ids(other.Live()))
	}
}

// TestSearchedLists: a search of the lists of collected records for one lost record does not hide a list from
// a search for another one.
func TestSearchedLists(t *testing.T) {
	now := int64(1e18)
	b := memory(t)
	c := openWith(t, b, nil, &now)
	for _, id := range []string{"x", "y"} {
		ship(t, c, block(id, 1, 2))
	}
	x, y := c.records[shipID(1)], c.records[shipID(2)]
	remove(t, b, shipA, "copies/"+shipA, shipB, "copies/"+shipB)
	refresh(t, c)
	if !slices.Equal(lostOf(c), []string{shipID(1), shipID(2)}) {
		t.Fatalf("lost are %v", lostOf(c))
	}
	if err := putCollected(ctx, b, now, []*commit{y}, true); err != nil {
		t.Fatal(err)
	}
	// A refresh that began before y was lost ends now.
	if _, err := c.judge(context.Background(), map[string]*commit{x.id: x}, false); err != nil {
		t.Fatal(err)
	}
	if refresh(t, c); !slices.Equal(lostOf(c), []string{shipID(1)}) {
		t.Errorf("y was given up, and lost are %v", lostOf(c))
	}
}
