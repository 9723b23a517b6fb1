package catalog

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/shaledb/shale/internal/bucket"
	"github.com/shaledb/shale/internal/bucket/fault"
	"github.com/shaledb/shale/internal/repair"
)

// meanwhile is a bucket in which something happens during a request.
type meanwhile struct {
	*fault.Bucket
	afterList, beforeDelete func(name string)
}

func (m *meanwhile) List(ctx context.Context, prefix string, fn func(string, int64) error) error {
	err := m.Bucket.List(ctx, prefix, fn)
	if m.afterList != nil {
		m.afterList(prefix)
	}
	return err
}

func (m *meanwhile) Delete(ctx context.Context, name string) error {
	if m.beforeDelete != nil {
		m.beforeDelete(name)
	}
	return m.Bucket.Delete(ctx, name)
}

// shipSized ships a block whose record has the size of its object.
func shipSized(t fataler, b bucket.Bucket, c *Catalog, id string) {
	t.Helper()
	x := block(id, 5, 6)
	x.Bytes = int64(len("block " + id))
	if _, err := c.Ship(ctx, *shipOf(c, x), func(context.Context, string) error { put(t, b, ObjectName(id), "block "+id); return nil }); err != nil {
		t.Fatal(err)
	}
}

// TestSurveyDuringShip: a block that is committed while a survey lists the bucket is in order.
func TestSurveyDuringShip(t *testing.T) {
	now := int64(1e18)
	b := &meanwhile{Bucket: memory(t)}
	c := openWith(t, b.Bucket, nil, &now)
	if _, err := EnsureSeed(ctx, b); err != nil {
		t.Fatal(err)
	}
	shipSized(t, b, c, "a")
	b.afterList = func(prefix string) {
		if prefix == "" {
			b.afterList = nil
			shipSized(t, b, c, "x")
		}
	}
	s, err := ReadSurvey(ctx, b, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Problems) > 0 || len(s.Blocks) != 2 {
		t.Errorf("%d blocks, problems: %v", len(s.Blocks), s.Problems)
	}
}

// TestRepairOfBlockIsOutdated: a block that was missing is put back before the operator accepts the loss.
func TestRepairOfBlockIsOutdated(t *testing.T) {
	now := int64(1e18)
	b := memory(t)
	c := openWith(t, b, nil, &now)
	if _, err := EnsureSeed(ctx, b); err != nil {
		t.Fatal(err)
	}
	shipSized(t, b, c, "a")
	for _, before := range []string{"", "block"} {
		remove(t, b, "blocks/a")
		if before != "" {
			put(t, b, "blocks/a", before)
		}
		s, err := ReadSurvey(ctx, b, nil)
		if err != nil {
			t.Fatal(err)
		}
		plan, _ := (&Repairer{Bucket: b, Now: now}).Propose(ctx, s)
		if len(plan) != 1 || plan[0].Object != "blocks/a" {
			t.Fatalf("plan: %+v", plan)
		}
		put(t, b, "blocks/a", "block a")
		if err := plan[0].Do(ctx); !errors.Is(err, repair.ErrOutdated) {
			t.Errorf("with %q: %v", before, err)
		}
		now += int64(time.Hour)
		refresh(t, c)
		collect(t, c)
		if !slices.Equal(ids(c.Live()), []string{"a"}) || len(objectsBelow(t, b, BlockPrefix)) != 1 {
			t.Errorf("with %q: live are %v", before, ids(c.Live()))
		}
	}
}
